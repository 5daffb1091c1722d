package rw_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/primitive/rw"
	"github.com/latchkey-go/latchkey/internal/testredis"
)

// writers are the writers that wait in the queue on the server.
type writers struct{ rwScripts }

// newWriters returns a lock that ownerA holds for writing, with waiting writers in that order.
func newWriters(t *testing.T, waiting ...string) writers {
	t.Helper()
	w := writers{newRWScripts(t)}
	require.Nil(t, w.write(ownerA, 1, ""))
	for _, owner := range waiting {
		w.wait(owner)
	}
	return w
}

func (writers) entry(owner string) string { return owner + " 5000 0w" }

// wait makes an attempt to write that is refused and waits.
func (w writers) wait(owner string) {
	w.t.Helper()
	reply := testredis.RunScript(w.c, script.RWWriteAcquire, w.withQueue(), owner, "30000", "1", "5000", w.entry(owner), "", w.keys.Queue())
	require.Len(w.t, reply, 5, "since when it waits as well: %v", reply)
}

// release ends a write. next joins the end of the queue, unless it is "".
func (w writers) release(owner, next string) any {
	w.t.Helper()
	return testredis.RunScript(w.c, script.RWWriteRelease, w.withQueue(), w.unwriteArgs(owner, 0, "0", "", next)...)
}

// hears returns the messages to the client of an owner, without stamps.
func (w writers) hears(owner string) func() string {
	client, _, _ := strings.Cut(owner, ":")
	heard := testredis.Hear(w.t, w.c, "latchkey:{"+client+"}")
	return func() string { return testredis.Unstamped(<-heard) }
}

// check checks who holds the lock and who waits, in order.
func (w writers) check(lock map[string]string, waiting ...string) {
	w.t.Helper()
	require.Equal(w.t, lock, w.state().lock)
	var entries []string
	for _, owner := range waiting {
		entries = append(entries, w.entry(owner))
	}
	require.Equal(w.t, entries, append([]string(nil), w.strings("ZRANGE", w.keys.Queue(), "0", "-1")...))
}

func writtenBy(owner string) map[string]string {
	return map[string]string{"mode": "write", owner + ":write": "1"}
}

// The release of a write makes the first waiter the writer, and notifies only its client. The
// second copy changes nothing.
func TestRWHandover_to_the_next_writer(t *testing.T) {
	w := newWriters(t, ownerB, ownerC)
	heard := w.hears(ownerB)
	w.check(writtenBy(ownerA), ownerB, ownerC)
	require.Equal(t, []any{ownerB, "0"}, w.release(ownerA, ""))
	require.Equal(t, "grant w "+ownerB+" 0 "+w.keys.Key, heard())
	w.check(writtenBy(ownerB), ownerC)
	require.LessOrEqual(t, testredis.PTTLOf(t, w.c, w.keys.Key), int64(5000), "a short lease")
	require.Nil(t, w.release(ownerA, ""))
	w.check(writtenBy(ownerB), ownerC)
	require.Nil(t, testredis.RunScript(w.c, script.RWWriteAcquire, w.withQueue(), ownerB, "30000", "1", "5000", w.entry(ownerB), w.entry(ownerB), w.keys.Queue()))
	w.check(writtenBy(ownerB), ownerC)
	require.Greater(t, testredis.PTTLOf(t, w.c, w.keys.Key), int64(20000), "it asks for the whole lease")
}

// A writer whose client is gone is passed over, and the next owner of the releasing client gets the
// lock.
func TestRWHandover_to_the_next_owner_of_the_client(t *testing.T) {
	w := newWriters(t, ownerC)
	require.Equal(t, []any{ownerA2, "0"}, w.release(ownerA, w.entry(ownerA2)), "nobody hears of the grant to the other")
	w.check(writtenBy(ownerA2))
	require.Greater(t, testredis.PTTLOf(t, w.c, w.keys.Key), int64(20000), "with the lease that it wants")
	require.Equal(t, int64(0), w.release(ownerA2, ""))
	w.nothingLeft()
}

// Readers that have waited for the end of a write go first. The first writer gets a message to try
// after their turn, and the last reader hands the lock over.
func TestRWHandover_after_the_turn_of_readers(t *testing.T) {
	w := newWriters(t)
	heard := w.hears(ownerB)
	require.IsType(t, int64(0), w.read(ownerC, 1, ""))
	w.wait(ownerB)
	require.Equal(t, int64(0), w.release(ownerA, ""))
	require.Equal(t, "ask 100 "+ownerB+" "+w.keys.Key, heard())
	w.check(map[string]string{}, ownerB)
	w.do("HINCRBY", rw.Keys(w.keys.Key)[3], "open", "60000") // their turn may be over before the next command comes
	w.do("HINCRBY", rw.Keys(w.keys.Key)[3], "since", "60000")
	require.Nil(t, w.readAgain(ownerC))
	args := append([]string{ownerC, "0", ""}, w.unreadArgs()...)
	keys := rw.AppendLeaseKeys(w.withQueue(), w.keys.Key, ownerC, 1)
	require.Equal(t, []any{ownerB, "0"}, testredis.RunScript(w.c, script.RWReadRelease, keys, args...))
	require.Equal(t, "grant w "+ownerB+" 0 "+w.keys.Key, heard())
	w.check(writtenBy(ownerB))
	require.Nil(t, testredis.RunScript(w.c, script.RWReadRelease, keys, args...), "twice")
	w.check(writtenBy(ownerB))
}

// Without the queue among the keys, nothing is handed over and all listeners are notified.
func TestRWHandover_without_the_queue(t *testing.T) {
	w := newWriters(t, ownerB)
	heard := testredis.Hear(t, w.c, rw.Channel(w.keys.Key))
	require.Equal(t, int64(1), testredis.RunScript(w.c, script.RWWriteRelease, rw.Keys(w.keys.Key), w.unwriteArgs(ownerA, 0, "0", "", "")...))
	require.Equal(t, "1", <-heard)
	require.Equal(t, "0", <-heard)
	w.check(map[string]string{}, ownerB)
}

// If the first writer gives up and its release finds the lock free, the next writer gets the lock.
func TestRWHandover_heals_what_was_lost(t *testing.T) {
	w := newWriters(t, ownerB, ownerC)
	heard := w.hears(ownerC)
	w.do("DEL", w.keys.Key, rw.Keys(w.keys.Key)[1])
	require.Nil(t, testredis.RunScript(w.c, script.RWWriteRelease, w.withQueue(), w.unwriteArgs(ownerB, 0, "1", w.entry(ownerB), "")...))
	require.Equal(t, "grant w "+ownerC+" 0 "+w.keys.Key, heard())
	w.check(writtenBy(ownerC))
}

// A caller that finds the lock free takes it and leaves the queue.
func TestRWHandover_of_a_free_lock(t *testing.T) {
	w := newWriters(t, ownerB, ownerC)
	w.do("DEL", w.keys.Key, rw.Keys(w.keys.Key)[1])
	require.Nil(t, testredis.RunScript(w.c, script.RWWriteAcquire, w.withQueue(), ownerC, "30000", "1", "5000", w.entry(ownerC), w.entry(ownerC), w.keys.Queue()))
	w.check(writtenBy(ownerC), ownerB)
	require.Equal(t, []string{ownerB}, w.strings("ZRANGE", rw.Keys(w.keys.Key)[2], "0", "-1"))
}
