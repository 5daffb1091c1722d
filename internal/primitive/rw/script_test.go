package rw_test

import (
	"strconv"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/primitive/rw"
	"github.com/latchkey-go/latchkey/internal/testredis"
	"github.com/latchkey-go/latchkey/internal/transport"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

const (
	ownerA  = testredis.OwnerA
	ownerA2 = testredis.OwnerA2
	ownerB  = testredis.OwnerB
	ownerC  = testredis.OwnerC
)

// rwScripts drives one read/write lock by its bare scripts. It sends every call twice, and the
// second must change nothing, as after a lost reply.
type rwScripts struct {
	t    *testing.T
	c    *core.Parts
	keys *keyspace.Keys
}

func newRWScripts(t *testing.T) rwScripts {
	t.Helper()
	c := testredis.NewEngine(t)
	names := c.Config.Names(testredis.UniqueName(t, c))
	require.NoError(t, names.Invalid)
	return rwScripts{t, c, names}
}

func (s rwScripts) do(words ...string) rueidis.RedisResult {
	return testredis.Do(s.c, words...)
}

func (s rwScripts) strings(words ...string) []string {
	s.t.Helper()
	values, err := s.do(words...).AsStrSlice()
	require.NoError(s.t, err)
	return values
}

type rwState struct {
	lock            map[string]string
	readers, leases []string
}

func (s rwScripts) state() rwState {
	s.t.Helper()
	return rwState{
		lock:    testredis.HashOf(s.t, s.c, s.keys.Key),
		readers: s.strings("ZRANGE", rw.Keys(s.keys.Key)[1], "0", "-1"),
		leases:  s.strings("KEYS", "*"+s.keys.Key+"*rwlock_timeout*"),
	}
}

func (s rwScripts) twice(cmd transport.Command, keys []string, args ...string) any {
	s.t.Helper()
	first := testredis.RunScript(s.c, cmd, keys, args...)
	state := s.state()
	second := testredis.RunScript(s.c, cmd, keys, args...)
	require.ElementsMatch(s.t, state.leases, s.state().leases)
	require.Equal(s.t, state.lock, s.state().lock, "the second time changes nothing")
	require.ElementsMatch(s.t, state.readers, s.state().readers)
	if _, is := first.(error); is {
		return first
	}
	switch _, is := first.(int64); {
	case (cmd == script.RWWriteAcquire || cmd == script.RWReadAcquire) && first != nil:
		require.InDelta(s.t, first.([]any)[0], second.([]any)[0], 4000, "a refusal")
		require.Equal(s.t, first.([]any)[1:], second.([]any)[1:], "a refusal")
	case is && cmd == script.RWDowngrade:
		require.Equal(s.t, int64(-2), second)
	case cmd == script.RWEvict:
		require.Nil(s.t, second, "they are gone")
	case is || cmd == script.RWReadRelease && first != nil && args[1] == "0":
		require.Nil(s.t, second, "a release that has happened finds nothing")
	default:
		require.Equal(s.t, first, second)
	}
	return first
}

func (s rwScripts) read(owner string, count int, number string, lease ...string) any {
	s.t.Helper()
	return s.readOnce(owner, count, number, append(lease, "30000")[0], "1")
}

// readAgain makes an attempt of a reader that was refused before.
func (s rwScripts) readAgain(owner string) any {
	s.t.Helper()
	return s.readOnce(owner, 1, "", "30000", "2")
}

func (s rwScripts) readOnce(owner string, count int, number, lease, waits string) any {
	s.t.Helper()
	holds := strconv.Itoa(count)
	return s.left(s.twice(script.RWReadAcquire, append(rw.Keys(s.keys.Key), rw.LeaseKeys(s.keys.Key, owner)+holds), owner, lease, holds, number, waits, "5000"))
}

// withQueue returns the keys with the queue of the writers.
func (s rwScripts) withQueue() []string { return append(rw.Keys(s.keys.Key), s.keys.Queue()) }

func (s rwScripts) unread(owner string, count int, number string) any {
	s.t.Helper()
	const most = 3 // holds in these tests
	return s.twice(script.RWReadRelease, rw.AppendLeaseKeys(s.withQueue(), s.keys.Key, owner, most),
		append([]string{owner, strconv.Itoa(count), number}, s.unreadArgs()...)...)
}

// unreadArgs returns the further arguments of the release of a read hold.
func (s rwScripts) unreadArgs() []string {
	return []string{"PUBLISH", rw.Channel(s.keys.Key), "0", "latchkey:{", "}", "1", line.PresenceChannel(s.keys.Key), s.keys.Queue()}
}

func (s rwScripts) write(owner string, count int, stale string, lease ...string) any {
	s.t.Helper()
	return s.left(s.twice(script.RWWriteAcquire, rw.Keys(s.keys.Key), s.writeArgs(owner, append(lease, "30000")[0], count, stale)...))
}

// writeArgs returns the arguments of an attempt to write that does not wait in the queue.
func (s rwScripts) writeArgs(owner, lease string, count int, stale string) []string {
	return []string{owner, lease, strconv.Itoa(count), stale, "", "", s.keys.Queue()}
}

// left returns the time after which to try again, if an owner is refused because of others of this
// library, and otherwise the reply.
func (rwScripts) left(reply any) any {
	if refusal, is := reply.([]any); is && refusal[3] != rw.InRedisson {
		return refusal[0]
	}
	return reply
}

func (s rwScripts) unwrite(owner string, count int, waiting string) any {
	s.t.Helper()
	return s.twice(script.RWWriteRelease, s.withQueue(), s.unwriteArgs(owner, count, waiting, "", "")...)
}

// unwriteArgs returns the arguments of the release of a write hold, with the entries of the owner
// and of the next owner.
func (s rwScripts) unwriteArgs(owner string, count int, waiting, own, next string) []string {
	return []string{owner, strconv.Itoa(count), waiting, "PUBLISH", rw.Channel(s.keys.Key), "0",
		own, next, "latchkey:{", "}", "1", "30000", line.PresenceChannel(s.keys.Key), "5000", s.keys.Queue()}
}

func (s rwScripts) downgrade(owner, number string) any {
	s.t.Helper()
	return s.twice(script.RWDowngrade, append(rw.Keys(s.keys.Key), rw.LeaseKeys(s.keys.Key, owner)+"1"),
		owner, "30000", "1", number, "PUBLISH", rw.Channel(s.keys.Key), line.PresenceChannel(s.keys.Key))
}

func (s rwScripts) renew(owner, side, number, lease string) any {
	s.t.Helper()
	all, reads := rw.Keys(s.keys.Key), 0
	if side == "read" {
		reads, _ = strconv.Atoi(testredis.HashOf(s.t, s.c, s.keys.Key)[owner])
	}
	keys := rw.AppendLeaseKeys(all[:2:2], s.keys.Key, owner, reads)
	if number != "" {
		keys = append(keys, all[3])
	}
	return testredis.RunScript(s.c, script.RWRenew, keys, owner, side, number, lease, strconv.Itoa(reads))
}

func (s rwScripts) evict(fields ...string) any {
	s.t.Helper()
	return s.twice(script.RWEvict, s.withQueue(), append(s.evictArgs(), fields...)...)
}

// evictArgs returns the arguments of a forced release, after the holders.
func (s rwScripts) evictArgs() []string {
	return []string{"PUBLISH", rw.Channel(s.keys.Key), "latchkey:{", "}", "1", s.keys.Queue()}
}

// nothingLeft checks that no key of the lock is left.
func (s rwScripts) nothingLeft() {
	s.t.Helper()
	require.Empty(s.t, s.strings("KEYS", "*"+s.keys.Key+"*"))
}

func TestRWScripts_readers_share(t *testing.T) {
	s := newRWScripts(t)
	require.Nil(t, s.read(ownerA, 1, ""))
	require.Nil(t, s.read(ownerA, 2, ""))
	require.Nil(t, s.read(ownerB, 1, ""))
	require.InDelta(t, 30000, s.write(ownerC, 1, ""), 4000)
	state := s.state()
	require.Equal(t, map[string]string{"mode": "read", ownerA: "2", ownerB: "1"}, state.lock)
	require.ElementsMatch(t, []string{
		rw.LeaseKeys(s.keys.Key, ownerA) + "1", rw.LeaseKeys(s.keys.Key, ownerA) + "2", rw.LeaseKeys(s.keys.Key, ownerB) + "1",
	}, state.leases)
	require.Equal(t, "HELD", s.unread(ownerA, 1, ""))
	require.Equal(t, "HELD", s.unread(ownerA, 0, ""))
	require.Nil(t, s.unread(ownerC, 0, ""))
	require.Equal(t, int64(0), s.unread(ownerB, 0, ""))
	s.nothingLeft()
}

func TestRWScripts_writer_enters_again_and_reads(t *testing.T) {
	s := newRWScripts(t)
	require.Nil(t, s.write(ownerA, 1, ""))
	require.Nil(t, s.write(ownerA, 2, ""))
	require.LessOrEqual(t, testredis.PTTLOf(t, s.c, s.keys.Key), int64(30000), "leases do not add up")
	require.Nil(t, s.read(ownerA, 1, "8"))
	require.InDelta(t, 30000, s.read(ownerB, 1, ""), 4000)
	require.Equal(t, map[string]string{"mode": "write", ownerA + ":write": "2", ownerA: "1"}, s.state().lock)
	require.Equal(t, "HELD", s.unwrite(ownerA, 1, "0"))
	require.Equal(t, int64(0), s.unwrite(ownerA, 0, "0"))
	require.Equal(t, map[string]string{"mode": "read", ownerA: "1"}, s.state().lock)
	require.Nil(t, s.read(ownerB, 1, ""), "it reads only")
	require.Equal(t, "HELD", s.unread(ownerA, 0, "8"))
	require.Equal(t, int64(0), s.unread(ownerB, 0, ""))
	s.nothingLeft()
}

func TestRWScripts_upgrade_is_refused(t *testing.T) {
	s := newRWScripts(t)
	require.Nil(t, s.read(ownerA, 1, ""))
	refused := testredis.RunScript(s.c, script.RWWriteAcquire, rw.Keys(s.keys.Key), s.writeArgs(ownerA, "30000", 1, "5000")...)
	require.True(t, outcome.HasCode(refused.(error), "LATCHKEY_UPGRADE"), "%v", refused)
	require.Equal(t, map[string]string{"mode": "read", ownerA: "1"}, s.state().lock)
}

func TestRWScripts_downgrade(t *testing.T) {
	s := newRWScripts(t)
	require.Nil(t, s.write(ownerA, 1, ""))
	require.Equal(t, int64(0), s.downgrade(ownerA, "8"))
	require.Equal(t, map[string]string{"mode": "read", ownerA: "1"}, s.state().lock)
	require.Equal(t, []any{int64(1)}, s.renew(ownerA, "read", "8", "30000"))
	require.Equal(t, []any{int64(0)}, s.renew(ownerA, "write", "", "30000"))
	require.Equal(t, int64(0), s.unread(ownerA, 0, "8"))
	s.nothingLeft()
	require.Nil(t, testredis.RunScript(s.c, script.RWDowngrade, append(rw.Keys(s.keys.Key), rw.LeaseKeys(s.keys.Key, ownerA)+"1"),
		ownerA, "30000", "1", "8", "PUBLISH", rw.Channel(s.keys.Key), line.PresenceChannel(s.keys.Key)), "nothing to downgrade")
	s.nothingLeft()
}

// A refused writer learns whether a writer of Redisson holds the lock. The lease of that writer is
// not noted.
func TestRWScripts_writer_of_Redisson(t *testing.T) {
	s := newRWScripts(t)
	require.NoError(t, s.do("HSET", s.keys.Key, "mode", "write", ownerC+":write", "1").Error())
	require.NoError(t, s.do("PEXPIRE", s.keys.Key, "30000").Error())
	for range 2 {
		refused := testredis.RunScript(s.c, script.RWWriteAcquire, rw.Keys(s.keys.Key), s.writeArgs(ownerA, "30000", 1, "5000")...)
		require.IsType(t, []any{}, refused)
		require.InDelta(t, 30000, refused.([]any)[0], 4000)
		require.Equal(t, []any{"write", ownerC + ":write", rw.InRedisson}, refused.([]any)[1:])
	}
	require.NoError(t, s.do("DEL", s.keys.Key).Error())
	require.Nil(t, s.write(ownerA, 1, "5000"))
	require.IsType(t, int64(0), s.write(ownerB, 1, "5000"), "this one is of this library")
}

// A refusal names the holder with the longest lease, says whether others hold the lock too, and
// whether the waiting owners of the other side go first.
func TestRWScripts_refusals_name_the_holder(t *testing.T) {
	s := newRWScripts(t)
	refusal := func(reply any) []any {
		t.Helper()
		require.IsType(t, []any{}, reply)
		return reply.([]any)[1:]
	}
	read := func(owner string) any {
		return testredis.RunScript(s.c, script.RWReadAcquire, append(rw.Keys(s.keys.Key), rw.LeaseKeys(s.keys.Key, owner)+"1"), owner, "30000", "1", "", "1", "5000")
	}
	write := func(owner, stale string) any {
		return testredis.RunScript(s.c, script.RWWriteAcquire, rw.Keys(s.keys.Key), s.writeArgs(owner, "30000", 1, stale)...)
	}
	require.Nil(t, s.write(ownerA, 1, ""))
	held := []any{"write", ownerA + ":write", ""}
	require.Equal(t, held, refusal(write(ownerB, "")))
	require.Equal(t, held, refusal(read(ownerB)))
	require.Nil(t, s.read(ownerA, 1, "8", "60000"), "the writer also reads")
	require.Equal(t, []any{"write", ownerA, ""}, refusal(write(ownerB, "")))
	require.Equal(t, "HELD", s.unread(ownerA, 0, "8"))
	s.do("DEL", rw.Keys(s.keys.Key)[3]) // the readers that have waited
	require.IsType(t, int64(0), s.unwrite(ownerA, 0, ""))

	require.Nil(t, s.read(ownerA, 1, "", "20000"))
	require.Equal(t, []any{"read", ownerA, ""}, refusal(write(ownerC, "")))
	require.Nil(t, s.read(ownerB, 1, ""))
	require.Equal(t, []any{"read", ownerB, "others"}, refusal(write(ownerC, "")))
	require.Equal(t, []any{"read", ownerB, "others"}, refusal(write(ownerC, "5000")))
	require.Equal(t, []any{"", "", ""}, refusal(read(ownerC[:len(ownerC)-1]+"99")), "a writer waits")
	require.NoError(t, s.do("HSET", s.keys.Key, ownerC[:len(ownerC)-1]+"98", "1").Error(), "a reader of Redisson")
	require.Equal(t, []any{"read", ownerB, rw.InRedisson}, refusal(write(ownerC, "5000")))
}

// The release of a nested read touches neither the write lease nor the write hold.
func TestRWScripts_nested_read_leaves_the_write_lease(t *testing.T) {
	s := newRWScripts(t)
	require.Nil(t, s.write(ownerA, 1, "", "60000"))
	require.Nil(t, s.read(ownerA, 1, "8", "1000"))
	require.Nil(t, s.read(ownerA, 2, "8", "1000"))
	require.Equal(t, "HELD", s.unread(ownerA, 1, "8"))
	require.Equal(t, "HELD", s.unread(ownerA, 0, "8"))
	require.Greater(t, testredis.PTTLOf(t, s.c, s.keys.Key), int64(55000))
	require.Equal(t, []any{int64(1)}, s.renew(ownerA, "write", "", "30000"))
	require.Greater(t, testredis.PTTLOf(t, s.c, s.keys.Key), int64(55000), "nor does a renewal shorten it")
}

// A late copy of an earlier nested read does not touch the next one.
func TestRWScripts_late_copies_of_nested_reads(t *testing.T) {
	s := newRWScripts(t)
	require.Nil(t, s.write(ownerA, 1, ""))
	require.Nil(t, s.read(ownerA, 1, "8"))
	require.Equal(t, "HELD", s.unread(ownerA, 0, "8"))
	require.Nil(t, s.read(ownerA, 1, "9"))
	require.Nil(t, s.unread(ownerA, 0, "8"), "a late release")
	gone := testredis.RunScript(s.c, script.RWReadAcquire, append(rw.Keys(s.keys.Key), rw.LeaseKeys(s.keys.Key, ownerA)+"2"), ownerA, "30000", "2", "8", "1", "5000")
	require.True(t, outcome.HasCode(gone.(error), "LATCHKEY_GONE"), "a late acquisition: %v", gone)
	require.Equal(t, map[string]string{"mode": "write", ownerA + ":write": "1", ownerA: "1"}, s.state().lock)
	require.Equal(t, []any{int64(0)}, s.renew(ownerA, "read", "8", "30000"))
	require.Equal(t, []any{int64(1)}, s.renew(ownerA, "read", "9", "30000"))
}

// Each reader has its own lease. A reader whose lease is over no longer blocks a writer, whatever
// others renew. The lock lasts as long as its longest remaining lease.
func TestRWScripts_leases_of_readers(t *testing.T) {
	s := newRWScripts(t)
	require.Nil(t, s.read(ownerA, 1, "", "60000"))
	require.Nil(t, s.read(ownerB, 1, "", "1000"))
	require.Greater(t, testredis.PTTLOf(t, s.c, s.keys.Key), int64(55000), "the shorter does not shorten the longer")
	require.Equal(t, []any{int64(1)}, s.renew(ownerB, "read", "", "2000"))
	require.Greater(t, testredis.PTTLOf(t, s.c, s.keys.Key), int64(55000))
	require.Equal(t, "HELD", s.unread(ownerA, 0, ""))
	require.LessOrEqual(t, testredis.PTTLOf(t, s.c, s.keys.Key), int64(2000), "the longest that is left")

	require.Nil(t, s.read(ownerA, 1, "", "60000"))
	s.do("ZADD", rw.Keys(s.keys.Key)[1], "1", ownerB) // its lease is over
	require.Equal(t, []any{int64(1)}, s.renew(ownerA, "read", "", "60000"))
	require.InDelta(t, 60000, s.write(ownerC, 1, ""), 4000)
	require.Equal(t, map[string]string{"mode": "read", ownerA: "1"}, s.state().lock, "it is gone")
	s.do("ZADD", rw.Keys(s.keys.Key)[1], "1", ownerA)
	require.Nil(t, s.write(ownerC, 1, ""))
}

// A reader of Redisson is in the hash but not among our leases. It is never removed, and the TTL of
// the lock is never shortened below its lease.
func TestRWScripts_readers_of_Redisson(t *testing.T) {
	s := newRWScripts(t)
	stranger := "99999999-9999-4999-8999-999999999999:1"
	require.Nil(t, s.read(ownerA, 1, "", "60000"))
	s.do("HSET", s.keys.Key, stranger, "1")
	require.Equal(t, "HELD", s.unread(ownerA, 0, ""))
	require.Greater(t, testredis.PTTLOf(t, s.c, s.keys.Key), int64(55000))
	require.Greater(t, s.write(ownerC, 1, ""), int64(55000))
	require.Equal(t, map[string]string{"mode": "read", stranger: "1"}, s.state().lock)
}

func TestRWScripts_waiting_writer_bars_new_readers(t *testing.T) {
	s := newRWScripts(t)
	require.Nil(t, s.read(ownerA, 1, ""))
	require.IsType(t, int64(0), s.write(ownerC, 1, ""), "it does not wait, and bars nobody")
	require.Nil(t, s.read(ownerB, 1, ""))
	require.Equal(t, "HELD", s.unread(ownerB, 0, ""))

	require.IsType(t, int64(0), s.write(ownerC, 1, "5000"))
	require.InDelta(t, 5000, s.read(ownerB, 1, ""), 2000, "kept out for a bar")
	require.Nil(t, s.read(ownerA, 2, ""), "not who reads already")
	s.do("HINCRBY", rw.Keys(s.keys.Key)[3], "since", "-5500")
	require.Nil(t, s.read(ownerB, 1, ""), "the pause after the bar")
	require.Equal(t, "HELD", s.unread(ownerB, 0, ""))
	s.do("HINCRBY", rw.Keys(s.keys.Key)[3], "since", "-1000")
	require.InDelta(t, 9500, s.read(ownerB, 1, ""), 2000, "the next bar is twice as long")

	require.Nil(t, s.unwrite(ownerC, 0, "1"), "the writer gives up")
	require.Nil(t, s.read(ownerB, 1, ""))
	require.IsType(t, int64(0), s.write(ownerC, 1, "5000"))
	require.IsType(t, int64(0), s.read(ownerC+"1", 1, ""))
	s.do("ZADD", rw.Keys(s.keys.Key)[2], "1", ownerC) // it is dead
	require.Nil(t, s.read(ownerC+"1", 1, ""))
}

// The owner goes on reading after its write, and nobody waits to write at the end of it. Readers
// that have waited go before a writer that comes just after that.
func TestRWScripts_readers_turn_beside_the_owner(t *testing.T) {
	for what, end := range map[string]func(rwScripts) any{
		"downgrade": func(s rwScripts) any { return s.downgrade(ownerA, "8") },
		"release": func(s rwScripts) any {
			require.Nil(t, s.read(ownerA, 1, "8"))
			return s.unwrite(ownerA, 0, "0")
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := newRWScripts(t)
			require.Nil(t, s.write(ownerA, 1, "5000"))
			require.IsType(t, int64(0), s.read(ownerB, 1, ""))
			require.Equal(t, int64(0), end(s))
			s.do("HINCRBY", rw.Keys(s.keys.Key)[3], "open", "60000") // their turn may be over before the next command arrives
			require.IsType(t, int64(0), s.write(ownerC, 1, "5000"))
			require.IsType(t, int64(0), s.read(ownerC+"1", 1, ""), "it has come after the write")
			require.Nil(t, s.readAgain(ownerB), "though a writer waits")
		})
	}
}

// After a write, readers that have been waiting go before the next writer, and other readers do
// not.
func TestRWScripts_readers_turn_after_a_write(t *testing.T) {
	s := newRWScripts(t)
	require.Nil(t, s.write(ownerA, 1, "5000"))
	require.IsType(t, int64(0), s.read(ownerB, 1, ""))
	require.IsType(t, int64(0), s.write(ownerC, 1, "5000"))
	require.Equal(t, int64(0), s.unwrite(ownerA, 0, "0"))
	const longer = 60000 // the turn of the readers, 100 ms, may be over before the next command arrives
	for _, end := range []string{"open", "since"} {
		s.do("HINCRBY", rw.Keys(s.keys.Key)[3], end, strconv.Itoa(longer))
	}
	require.InDelta(t, longer, s.write(ownerC, 1, "5000"), 10000)
	require.IsType(t, int64(0), s.read(ownerC+"1", 1, ""), "it has come after the write")
	require.Nil(t, s.readAgain(ownerB), "though a writer waits")
	s.do("HSET", rw.Keys(s.keys.Key)[3], "open", "1", "since", "1")
	require.Equal(t, int64(0), s.unread(ownerB, 0, ""))
	require.Nil(t, s.write(ownerC, 1, "5000"), "now it is the writer's turn")
	require.Equal(t, int64(0), s.unwrite(ownerC, 0, "0"))
	s.nothingLeft()
}

// A write hold ends with its own lease even if a read of its owner goes on. Other readers come in,
// and the last of them frees the lock.
func TestRWScripts_write_lease_ends_beside_a_read(t *testing.T) {
	s := newRWScripts(t)
	lapse := func() { s.do("ZADD", rw.Keys(s.keys.Key)[1], "1", ownerA+":write") }
	require.Nil(t, s.write(ownerA, 1, ""))
	require.Nil(t, s.read(ownerA, 1, "8"))
	require.Equal(t, []any{int64(1)}, s.renew(ownerA, "write", "", "30000"))
	require.InDelta(t, 30000, s.read(ownerB, 1, ""), 4000)
	lapse()
	require.InDelta(t, 30000, s.write(ownerC, 1, ""), 4000, "somebody reads")
	require.Equal(t, map[string]string{"mode": "read", ownerA: "1"}, s.state().lock)
	require.Equal(t, []any{int64(0)}, s.renew(ownerA, "write", "", "30000"))
	require.Nil(t, s.read(ownerB, 1, ""))
	require.Nil(t, s.unwrite(ownerA, 0, "0"))
	require.Equal(t, "HELD", s.unread(ownerA, 0, "8"))
	require.Equal(t, int64(0), s.unread(ownerB, 0, ""))
	s.nothingLeft()

	require.Nil(t, s.write(ownerA, 1, ""))
	require.Nil(t, s.read(ownerA, 1, "9", "60000"))
	require.Equal(t, "HELD", s.unread(ownerA, 0, "9"))
	require.LessOrEqual(t, testredis.PTTLOf(t, s.c, s.keys.Key), int64(30000), "the write lease is left")
	lapse()
	require.Nil(t, s.read(ownerB, 1, ""))
	require.Equal(t, map[string]string{"mode": "read", ownerB: "1"}, s.state().lock)
}

// The old lease of an owner that Redisson has removed says nothing about the next writer.
func TestRWScripts_stale_leases(t *testing.T) {
	s := newRWScripts(t)
	require.Nil(t, s.write(ownerA, 1, ""))
	s.do("ZADD", rw.Keys(s.keys.Key)[1], "1", ownerA+":write")
	s.do("DEL", s.keys.Key)
	stranger := "99999999-9999-4999-8999-999999999999:1:write"
	s.do("HSET", s.keys.Key, "mode", "write", stranger, "1")
	s.do("PEXPIRE", s.keys.Key, "30000")
	require.InDelta(t, 30000, s.read(ownerB, 1, ""), 4000)
	require.Equal(t, map[string]string{"mode": "write", stranger: "1"}, s.state().lock)
}

func TestRWScripts_evict(t *testing.T) {
	s := newRWScripts(t)
	require.Nil(t, s.read(ownerA, 1, "", "60000"))
	require.Nil(t, s.read(ownerB, 1, ""))
	require.Nil(t, s.evict(ownerC))
	require.Equal(t, "OK", s.evict(ownerA, ownerC))
	require.Equal(t, map[string]string{"mode": "read", ownerB: "1"}, s.state().lock)
	require.LessOrEqual(t, testredis.PTTLOf(t, s.c, s.keys.Key), int64(30000), "the longest lease that is left")
	require.Equal(t, "OK", s.evict(ownerB))
	require.Empty(t, s.state().lock)

	require.Nil(t, s.write(ownerA, 1, ""))
	require.Nil(t, s.read(ownerA, 1, "8"))
	require.Equal(t, "OK", s.evict(ownerA+":write"))
	require.Equal(t, map[string]string{"mode": "read", ownerA: "1"}, s.state().lock)
	require.Equal(t, "OK", s.evict(ownerA))
	require.Empty(t, s.state().lock)
}

func TestRWScripts_other_kinds_are_left_alone(t *testing.T) {
	s := newRWScripts(t)
	s.do("HSET", s.keys.Key, ownerB, "1")
	for _, try := range []func() any{
		func() any { return s.read(ownerA, 1, "") },
		func() any { return s.write(ownerA, 1, "") },
		func() any { return s.unread(ownerB, 0, "") },
		func() any { return s.unwrite(ownerB, 0, "0") },
		func() any { return s.evict(ownerB) },
	} {
		require.True(t, outcome.HasCode(try().(error), "WRONGTYPE"))
	}
	require.Equal(t, map[string]string{ownerB: "1"}, s.state().lock)
}

// A writer that is refused because a key beside the lock is another kind of object does not leave
// the lock taken.
func TestRWScripts_other_kind_beside_the_lock(t *testing.T) {
	s := newRWScripts(t)
	s.do("SADD", rw.Keys(s.keys.Key)[2], "x") // the waiting writers
	require.True(t, outcome.HasCode(s.write(ownerA, 1, "").(error), "WRONGTYPE"))
	require.Empty(t, s.state().lock)
}
