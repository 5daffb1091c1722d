package tests

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// A write hold whose lease has ended is over for everybody, although the reads of its owner keep
// the lock alive: readers come in, and in the end nothing is left.
func TestWriteLeaseEndsBesideARenewedRead(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	rw := connect(t, server, byMessageOnly).NewRWLock(name)
	write := mustLock(t, rw.Writer(), latchkey.Lease(3*time.Second))
	read, err := rw.Reader().Lock(write.Context(within(t, soon)))
	require.NoError(t, err)
	others := connect(t, server, byMessageOnly).NewRWLock(name)

	other := mustLock(t, others.Reader())
	assert.ErrorIs(t, write.Err(), latchkey.ErrLost, "it was told before")
	require.NoError(t, read.Err(), "the read goes on")
	_, err = others.Writer().TryLock(t.Context())
	assert.ErrorIs(t, err, latchkey.ErrNotAcquired)
	mustUnlock(t, read)
	mustUnlock(t, other)
	assert.ErrorIs(t, write.Unlock(t.Context()), latchkey.ErrNotHeld)
	rig.Eventually(t, soon, "nothing is left", free(rig.NewAdmin(t, server), name))
}

// This does not need the process of that writer: the next caller cleans up.
func TestWriteLeaseEndsBesideTheReadOfADeadProcess(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	admin, link := rig.NewAdmin(t, server), rig.NewLink(t, server)
	rw := connectVia(t, server, link.Addr()).NewRWLock(name)
	write := mustLock(t, rw.Writer(), latchkey.Lease(3*time.Second))
	_, err := rw.Reader().Lock(write.Context(within(t, soon)), latchkey.Lease(time.Minute))
	require.NoError(t, err)
	link.Cut()

	others := connect(t, server).NewRWLock(name)
	mustUnlock(t, mustLock(t, others.Reader()))
	assert.Equal(t, "read", admin.Dump(name)[name].Hash["mode"])
	_, err = others.Writer().TryLock(t.Context())
	assert.ErrorIs(t, err, latchkey.ErrNotAcquired, "somebody reads")
}

// A server without memory refuses new holds, and lets existing holds be released or downgraded.
func TestReadWriteLockWithoutMemory(t *testing.T) {
	rig.Need(t, rig.Settings)
	server := rig.Fresh(t)
	admin, client := rig.NewAdmin(t, server), connect(t, server)
	rw := client.NewRWLock("busy")
	read := mustLock(t, rw.Reader())
	write := mustLock(t, client.NewRWLock("written").Writer())
	mustUnlock(t, mustLock(t, client.NewRWLock("free").Reader()))
	admin.Do("CONFIG", "SET", "maxmemory", "1")

	for _, name := range []string{"busy", "free"} {
		_, err := connect(t, server).NewRWLock(name).Reader().TryLock(t.Context()) // nobody reads there
		assert.ErrorContains(t, err, "OOM")
	}
	read2, err := write.Downgrade(t.Context())
	require.NoError(t, err)
	mustUnlock(t, read2)
	mustUnlock(t, read)
	assert.Empty(t, admin.Dump("busy"))
}

// Under a read that is nested in a write, the write side can be re-entered.
func TestWriteUnderANestedRead(t *testing.T) {
	rw := connect(t, rig.Shared()).NewRWLock(rig.Name(t))
	write := mustLock(t, rw.Writer())
	read, err := rw.Reader().Lock(write.Context(within(t, soon)))
	require.NoError(t, err)
	again, err := rw.Writer().TryLock(read.Context(context.Background()))
	require.NoError(t, err)
	assert.Equal(t, 2, countOf(write))
	mustUnlock(t, again)
	mustUnlock(t, write)
	_, err = rw.Writer().TryLock(read.Context(context.Background()))
	assert.ErrorIs(t, err, latchkey.ErrUpgrade, "now it would be an upgrade")
	mustUnlock(t, read)
}

func TestDowngradeKeepsTheLimit(t *testing.T) {
	t.Parallel()
	rw := connect(t, rig.Shared()).NewRWLock(rig.Name(t))
	write := mustLock(t, rw.Writer(), latchkey.MaxHold(2*time.Second))
	read, err := write.Downgrade(t.Context())
	require.NoError(t, err)
	assert.LessOrEqual(t, read.ValidFor(), 2*time.Second)
	rig.Await(t, soon, "the end of the read", read.Lost())
	assert.ErrorIs(t, read.Err(), latchkey.ErrMaxHold)
}

// ForceUnlock ends the holds of its side: all readers, even more than one script removes, or the
// writer with its own reads. It leaves the other side alone.
func TestForceUnlockOfReadersAndWriters(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	rw := connect(t, server).NewRWLock(name)
	holdForReaders(t, server, name, 500)
	freed, err := rw.Writer().ForceUnlock(t.Context())
	require.NoError(t, err)
	assert.False(t, freed, "nobody writes")

	writer := lockInBackground(within(t, soon), connect(t, server, byMessageOnly).NewRWLock(name).Writer())
	awaitWaiter(t, rig.NewAdmin(t, server), name)
	freed, err = rw.Reader().ForceUnlock(t.Context())
	require.NoError(t, err)
	assert.True(t, freed)
	got := rig.Await(t, soon, "the writer", writer)
	require.NoError(t, got.err, "it was woken")

	// A context of another client's hold enters nothing.
	_ = refused(t, func(wait latchkey.WaitOption) error {
		return firstOf(rw.Reader().Lock(got.hold.Context(t.Context()), wait))
	})
	freed, err = rw.Reader().ForceUnlock(t.Context())
	require.NoError(t, err)
	assert.False(t, freed, "somebody writes")
	freed, err = rw.Writer().ForceUnlock(t.Context())
	require.NoError(t, err)
	assert.True(t, freed)
	assert.ErrorIs(t, got.hold.Unlock(t.Context()), latchkey.ErrNotHeld)
}

// The record of a nested read hold stays for as long as its lease, even when another reader was
// refused.
func TestNotesOutliveTheLeaseOfANestedRead(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	lock := connect(t, server).NewRWLock(name)
	writer := mustLock(t, lock.Writer(), latchkey.Lease(time.Hour))
	reader, err := lock.Reader().Lock(writer.Context(t.Context()), latchkey.Lease(time.Hour))
	require.NoError(t, err)
	other := connect(t, server).NewRWLock(name).Reader()
	_ = refused(t, func(wait latchkey.WaitOption) error { return firstOf(other.Lock(t.Context(), wait)) })
	assert.Greater(t, rig.NewAdmin(t, server).PTTL("latchkey_rw:{"+name+"}"), 59*time.Minute)
	mustUnlock(t, writer)
	mustUnlock(t, reader)
}

// A downgrade that fails leaves nothing in memory, whatever the reason.
func TestFailedDowngradesLeaveNothingInMemory(t *testing.T) {
	rig.Need(t, rig.Speed)
	client, name := connect(t, rig.Shared()), rig.Name(t)
	for what, fail := range map[string]func(lock *latchkey.Lock, hold *latchkey.Hold){
		"released": func(_ *latchkey.Lock, hold *latchkey.Hold) {
			mustUnlock(t, hold)
			_, err := hold.Downgrade(t.Context())
			require.ErrorIs(t, err, latchkey.ErrNotHeld)
		},
		"entered again": func(lock *latchkey.Lock, hold *latchkey.Hold) {
			again, err := lock.Lock(hold.Context(t.Context()))
			require.NoError(t, err)
			_, err = hold.Downgrade(t.Context())
			require.ErrorIs(t, err, latchkey.ErrInvalid)
			mustUnlock(t, again)
			mustUnlock(t, hold)
		},
	} {
		t.Run(what, func(t *testing.T) {
			repeat := func(n int) {
				for range n {
					lock := client.NewRWLock(name).Writer()
					hold, err := lock.Lock(t.Context()) // mustLock would leave a context behind
					require.NoError(t, err)
					fail(lock, hold)
				}
			}
			const n = 600
			repeat(100)
			before := heapInUse()
			repeat(n)
			grown := int64(heapInUse()) - int64(before)
			t.Logf("the heap grew by %d bytes over %d failures", grown, n)
			assert.Less(t, grown, int64(n*500), "bytes for each failure")
		})
	}
}
