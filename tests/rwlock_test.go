package tests

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

func rwChannelOf(name string) string { return "redisson_rwlock:{" + name + "}" }

func leaseKeyOf(name, owner string, hold int) string {
	return "{" + name + "}:" + owner + ":rwlock_timeout:" + strconv.Itoa(hold)
}

// goldenRW compares what Redisson sees of a read/write lock: the hash and the lease keys. This
// library stores its own index of the leases next to them.
func goldenRW(t *testing.T, admin *rig.Admin, name string, fields map[string]string, leases ...string) {
	t.Helper()
	found := admin.Dump(name)
	delete(found, "latchkey_rw_leases:{"+name+"}")
	delete(found, "latchkey_rw:{"+name+"}")
	if len(fields) > 0 {
		assert.Equal(t, fields, found[name].Hash)
		assert.InDelta(t, goldenLease, found[name].TTL, float64(leeway))
		delete(found, name)
	}
	for _, key := range leases {
		assert.Equal(t, "1", found[key].String, key)
		assert.InDelta(t, goldenLease, found[key].TTL, float64(leeway), key)
		delete(found, key)
	}
	assert.Empty(t, found, "nothing else")
}

func TestGoldenReadWriteLock(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	admin, heard := rig.NewAdmin(t, server), subscribeRaw(t, server, rwChannelOf(name))
	rw := connect(t, server).NewRWLock(name)

	first := mustLock(t, rw.Reader())
	a := first.Share().String() // so that the next is a reader of its own
	requireOwner(t, a)
	second, err := rw.Reader().Lock(first.Context(t.Context()))
	require.NoError(t, err)
	other := mustLock(t, rw.Reader())
	b := other.Owner().String()
	goldenRW(t, admin, name, map[string]string{"mode": "read", a: "2", b: "1"},
		leaseKeyOf(name, a, 1), leaseKeyOf(name, a, 2), leaseKeyOf(name, b, 1))
	mustUnlock(t, second)
	goldenRW(t, admin, name, map[string]string{"mode": "read", a: "1", b: "1"}, leaseKeyOf(name, a, 1), leaseKeyOf(name, b, 1))
	mustUnlock(t, first)
	assert.Empty(t, heard, "others read still")
	mustUnlock(t, other)
	assert.Empty(t, admin.Dump(name))
	assert.Equal(t, "0", rig.Await(t, soon, "the message of the last read", heard))

	writer := mustLock(t, rw.Writer())
	a = writer.Owner().String()
	nested, err := rw.Reader().Lock(writer.Context(t.Context()))
	require.NoError(t, err)
	goldenRW(t, admin, name, map[string]string{"mode": "write", a + ":write": "1", a: "1"}, leaseKeyOf(name, a, 1))
	mustUnlock(t, writer)
	goldenRW(t, admin, name, map[string]string{"mode": "read", a: "1"}, leaseKeyOf(name, a, 1))
	wokenAll(t, heard) // Redisson does not do this
	mustUnlock(t, nested)
	assert.Equal(t, "0", rig.Await(t, soon, "the last read", heard))

	mustUnlock(t, mustLock(t, rw.Writer()))
	wokenAll(t, heard)
	assert.Empty(t, heard)
	assert.Empty(t, admin.Dump(name), "nothing is left")
}

// A handle of one kind on a hold of another kind gets ErrWrongKind, and not a byte changes.
func TestReadWriteLockIsNoOtherLock(t *testing.T) {
	server, client := rig.Shared(), connect(t, rig.Shared())
	admin := rig.NewAdmin(t, server)
	open := map[string]func(name string) anyLock{
		"lock":  func(name string) anyLock { return client.NewLock(name) },
		"fair":  func(name string) anyLock { return client.NewFairLock(name) },
		"mutex": func(name string) anyLock { return client.NewMutex(name) },
		"read":  func(name string) anyLock { return client.NewRWLock(name).Reader() },
		"write": func(name string) anyLock { return client.NewRWLock(name).Writer() },
	}
	related := map[string]bool{"lock fair": true, "fair lock": true, "read write": true, "write read": true}
	for held := range open {
		for asked := range open {
			if held == asked || related[held+" "+asked] {
				continue
			}
			t.Run(held+" "+asked, func(t *testing.T) {
				name := rig.Name(t)
				hold := mustLock(t, open[held](name), latchkey.Lease(time.Minute))
				before := admin.Dump(name)
				_, err := open[asked](name).TryLock(t.Context())
				assert.ErrorIs(t, err, latchkey.ErrWrongKind)
				_, err = open[asked](name).ForceUnlock(t.Context())
				assert.ErrorIs(t, err, latchkey.ErrWrongKind)
				after := admin.Dump(name)
				assert.Len(t, after, len(before))
				for key := range before {
					assert.Equal(t, before[key].Hash, after[key].Hash)
					assert.Equal(t, before[key].String, after[key].String)
				}
				mustUnlock(t, hold)
			})
		}
	}
}

// The lease of each reader is its own: when the shorter lease is over, the longer lease
// still protects the lock, in whatever order they came.
func TestLeasesOfReadersDoNotTouchEachOther(t *testing.T) {
	t.Parallel()
	for _, leases := range [][2]time.Duration{{time.Minute, time.Second}, {time.Second, time.Minute}} {
		t.Run(fmt.Sprint(leases), func(t *testing.T) {
			t.Parallel()
			server, name := rig.Shared(), rig.Name(t)
			var long *latchkey.Hold
			for _, lease := range leases {
				hold := mustLock(t, connect(t, server).NewRWLock(name).Reader(), latchkey.Lease(lease))
				if lease > time.Second {
					long = hold
				}
			}
			writer := connect(t, server).NewRWLock(name).Writer()
			rig.Throughout(t, 1500*time.Millisecond, "no writer comes in", func() error {
				_, err := writer.TryLock(t.Context())
				if !errors.Is(err, latchkey.ErrNotAcquired) {
					return fmt.Errorf("a writer: %w", err)
				}
				return long.Err()
			})
			mustUnlock(t, long)
			mustUnlock(t, mustLock(t, writer, latchkey.Wait(soon)))
		})
	}
}

// A reader is killed while two others read in overlapping turns: one of them removes it
// when its lease has ended, and a writer comes in when the others have left.
func TestKilledReaderIsForgotten(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	child := holderProcess.Start(t, "ReadLock", name, server.Ticket())
	child.Line(t, soon, "held")
	admin := rig.NewAdmin(t, server)
	rw := connect(t, server).NewRWLock(name)
	hold := mustLock(t, rw.Reader())
	child.Kill()
	killed := time.Now()
	for len(admin.Strings("HKEYS", name)) > 2 { // the mode, the last reader that came, and the dead one
		require.Less(t, time.Since(killed), soon, "a reader that comes removes the dead one")
		next := mustLock(t, rw.Reader())
		rest(crashLease / 4)
		mustUnlock(t, hold)
		hold = next
	}
	writer := lockInBackground(within(t, soon), connect(t, server).NewRWLock(name).Writer())
	awaitWaiter(t, admin, name)
	mustUnlock(t, hold)
	next := rig.Await(t, soon, "the writer", writer)
	require.NoError(t, next.err)
	mustUnlock(t, next.hold)
}

// A read inside a write is released: the write hold keeps its lease and is renewed.
func TestNestedReadDoesNotCutTheWrite(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	rw := connect(t, server, latchkey.Options{Lease: 20 * time.Second}).NewRWLock(name)
	other := connect(t, server).NewRWLock(name).Reader()
	writer := mustLock(t, rw.Writer())
	for range 3 {
		read, err := rw.Reader().Lock(writer.Context(t.Context()), latchkey.Lease(2*time.Second)) // ends before the write is renewed
		require.NoError(t, err)
		mustUnlock(t, read)
	}
	rig.Throughout(t, 2500*time.Millisecond, "it writes", func() error {
		_, err := other.TryLock(t.Context())
		if !errors.Is(err, latchkey.ErrNotAcquired) {
			return fmt.Errorf("a reader: %w", err)
		}
		return writer.Err()
	})
	mustUnlock(t, writer)
	assert.NoError(t, free(rig.NewAdmin(t, server), name)())
}

// The write lock is entered ten times: the remaining time is one lease, not ten.
func TestWriteLeasesDoNotAddUp(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	write := connect(t, server).NewRWLock(name).Writer()
	holds := []*latchkey.Hold{mustLock(t, write)}
	for range 9 {
		inner, err := write.Lock(holds[0].Context(t.Context()))
		require.NoError(t, err)
		holds = append(holds, inner)
	}
	assert.LessOrEqual(t, rig.NewAdmin(t, server).PTTL(name), defaultLease)
	for _, hold := range holds {
		mustUnlock(t, hold)
	}
}

// Inspect and ForceUnlock of the two sides.
func TestSidesOfAReadWriteLock(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	client := connect(t, server)
	rw := client.NewRWLock(name)
	locked := func(read, write bool) {
		t.Helper()
		for _, side := range []*latchkey.Lock{rw.Reader(), rw.Writer()} {
			found, err := side.Inspect(t.Context())
			require.NoError(t, err)
			reads := slices.ContainsFunc(found.Holders, func(h latchkey.Holder) bool { return !h.Write })
			writes := slices.ContainsFunc(found.Holders, func(h latchkey.Holder) bool { return h.Write })
			assert.Equal(t, []bool{read, write}, []bool{reads, writes})
		}
	}
	force := func(lock anyLock, want bool) {
		t.Helper()
		freed, err := lock.ForceUnlock(t.Context())
		require.NoError(t, err)
		assert.Equal(t, want, freed)
	}
	locked(false, false)
	force(rw.Reader(), false)
	reader := mustLock(t, rw.Reader())
	locked(true, false)
	force(rw.Writer(), false)
	force(rw.Reader(), true)
	require.ErrorIs(t, reader.Unlock(t.Context()), latchkey.ErrLost)
	locked(false, false)

	writer := mustLock(t, rw.Writer())
	locked(false, true)
	nested, err := rw.Reader().Lock(writer.Context(t.Context()))
	require.NoError(t, err)
	locked(true, true)
	inspection, err := client.Inspect(t.Context(), name)
	require.NoError(t, err)
	assert.ElementsMatch(t, []latchkey.Holder{
		{Owner: writer.Owner(), Count: 1}, {Owner: writer.Owner(), Count: 1, Write: true},
	}, inspection.Holders)
	force(rw.Reader(), false)
	freed, err := client.ForceUnlock(t.Context(), name)
	require.NoError(t, err)
	assert.True(t, freed)
	locked(false, false)
	require.ErrorIs(t, writer.Unlock(t.Context()), latchkey.ErrLost)
	require.ErrorIs(t, nested.Unlock(t.Context()), latchkey.ErrLost)
}
