package tests

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
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

// byMessageOnly rules out polling for the duration of a test.
var byMessageOnly = latchkey.Options{PollCeiling: time.Minute, Lease: 2 * time.Minute, StaleWaiterTimeout: 2 * time.Minute}

// goldenRW compares what Redisson sees of a read/write lock: the hash and the lease keys. This
// library stores its own index of the leases next to them.
func goldenRW(t *testing.T, admin *rig.Admin, name string, fields map[string]string, leases ...string) {
	t.Helper()
	found := admin.Dump(name)
	delete(found, "latchkey_rw_leases:{"+name+"}")
	delete(found, "latchkey_rw:{"+name+"}")
	if len(fields) > 0 {
		assert.Equal(t, fields, found[name].Hash)
		assert.InDelta(t, goldenLease, found[name].TTL, float64(3*time.Second))
		delete(found, name)
	}
	for _, key := range leases {
		assert.Equal(t, "1", found[key].String, key)
		assert.InDelta(t, goldenLease, found[key].TTL, float64(3*time.Second), key)
		delete(found, key)
	}
	assert.Empty(t, found, "nothing else")
}

func TestGoldenReadWriteLock(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	admin, heard := rig.NewAdmin(t, server), subscribeRaw(t, server, rwChannelOf(name))
	rw := connect(t, server).NewRWLock(name)

	first := mustLock(t, rw.Reader())
	a := first.Owner().String()
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

// wokenAll receives the messages at the end of a write: '1' for all waiters, and '0' for a Redisson
// thread that is about to sleep.
func wokenAll(t *testing.T, heard <-chan string) {
	t.Helper()
	assert.Equal(t, "1", rig.Await(t, soon, "the message of a write", heard))
	assert.Equal(t, "0", rig.Await(t, soon, "the one after it", heard))
}

// A downgrade is one step: readers come in at once, writers do not, and the hold is renewed.
func TestDowngrade(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	options := byMessageOnly
	options.Lease, options.PollCeiling = 3*time.Second, 2900*time.Millisecond
	rw := connect(t, server, options).NewRWLock(name)
	other := connect(t, server, byMessageOnly).NewRWLock(name)
	writer := mustLock(t, rw.Writer())
	writing := writer.Context(t.Context())
	reader := lockInBackground(within(t, soon), other.Reader())
	parked(t, rig.NewAdmin(t, server), name)

	hold, err := writer.Downgrade(t.Context())
	require.NoError(t, err)
	came := rig.Await(t, soon, "the reader", reader)
	require.NoError(t, came.err)
	assert.Equal(t, writer.Owner(), hold.Owner())
	assert.ErrorIs(t, context.Cause(writing), latchkey.ErrNotHeld)
	require.ErrorIs(t, writer.Unlock(t.Context()), latchkey.ErrNotHeld, "it is over")
	_, err = writer.Downgrade(t.Context())
	require.ErrorIs(t, err, latchkey.ErrNotHeld)
	mustUnlock(t, came.hold)

	rig.Throughout(t, 2*options.Lease, "it reads, and nobody writes", func() error {
		_, err := other.Writer().TryLock(t.Context())
		if !errors.Is(err, latchkey.ErrNotAcquired) {
			return fmt.Errorf("a writer: %w", err)
		}
		return hold.Err()
	})
	mustUnlock(t, mustLock(t, other.Reader()))
	_, err = rw.Writer().TryLock(hold.Context(t.Context()))
	require.ErrorIs(t, err, latchkey.ErrUpgrade)
	mustUnlock(t, hold)
	mustUnlock(t, mustLock(t, other.Writer()))
}

// The reply to each command of a downgrade is lost in turn: the caller still learns the true
// outcome.
func TestDowngradeWithALostReply(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	tap := rig.NewTap(t, server)
	rw := connectVia(t, server, tap.Addr()).NewRWLock(name)
	other := connect(t, server).NewRWLock(name)
	writer := mustLock(t, rw.Writer())
	tap.Lose(1, rig.Mentions(name), rig.Cut)
	hold, err := writer.Downgrade(t.Context())
	require.NoError(t, err)
	mustUnlock(t, mustLock(t, other.Reader()))
	_, err = other.Writer().TryLock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
	mustUnlock(t, hold)
	assert.NoError(t, free(rig.NewAdmin(t, server), name)())
}

func TestDowngradeIsForTheOnlyWriteHold(t *testing.T) {
	rw := connect(t, rig.Shared()).NewRWLock(rig.Name(t))
	reader := mustLock(t, rw.Reader())
	_, err := reader.Downgrade(t.Context())
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	mustUnlock(t, reader)
	outer := mustLock(t, rw.Writer())
	inner, err := rw.Writer().Lock(outer.Context(t.Context()))
	require.NoError(t, err)
	_, err = outer.Downgrade(t.Context())
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	mustUnlock(t, inner)
	read, err := rw.Reader().Lock(outer.Context(t.Context()))
	require.NoError(t, err)
	hold, err := outer.Downgrade(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 2, hold.Count(), "the one that read before, and the new one")
	mustUnlock(t, read)
	mustUnlock(t, hold)
}

// Two readers request the write lock, under the context of their hold and by their owner: both are
// refused without waiting.
func TestUpgradeIsRefusedAtOnce(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	var all sync.WaitGroup
	for range 2 {
		client := connect(t, server)
		rw := client.NewRWLock(name)
		ctx := latchkey.WithOwner(t.Context(), client.NewOwner())
		hold, err := rw.Reader().Lock(ctx)
		require.NoError(t, err)
		for _, upgrade := range []context.Context{hold.Context(t.Context()), ctx} {
			all.Go(func() {
				start := time.Now()
				_, err := rw.Writer().Lock(upgrade)
				assert.ErrorIs(t, err, latchkey.ErrUpgrade)
				_, err = rw.Writer().Lock(upgrade, latchkey.Wait(time.Minute))
				assert.ErrorIs(t, err, latchkey.ErrUpgrade)
				assert.Less(t, time.Since(start), leeway)
			})
		}
		defer func() { mustUnlock(t, hold) }()
	}
	all.Wait()
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

// The lease of each reader is its own: two seconds after the readers arrived, the longer lease
// still protects the lock, in whatever order they came.
func TestLeasesOfReadersDoNotTouchEachOther(t *testing.T) {
	t.Parallel()
	for _, leases := range [][2]time.Duration{{10 * time.Second, time.Second}, {time.Second, 10 * time.Second}} {
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
			rig.Throughout(t, 2*time.Second, "no writer comes in", func() error {
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

// evictionPeriod is the minimum time between two searches of arriving readers for dead readers.
const evictionPeriod = time.Second

// A reader is killed while two others read in overlapping turns and renew: one of them removes it
// when its lease has ended, and a writer comes in when the others have left.
func TestKilledReaderIsForgotten(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	child := holderProcess.Start(t, "ReadLock", name, server.Ticket())
	child.Line(t, soon, "held")
	admin := rig.NewAdmin(t, server)
	options := latchkey.Options{Lease: 2 * crashLease}
	rw := connect(t, server, options).NewRWLock(name)
	hold := mustLock(t, rw.Reader())
	child.Kill()
	killed := time.Now()
	for len(admin.Strings("HKEYS", name)) > 2 { // the mode, the last reader that came, and the dead one
		require.Less(t, time.Since(killed), crashLease+evictionPeriod+leeway, "a reader that comes removes the dead one")
		next := mustLock(t, rw.Reader())
		rest(crashLease / 4)
		mustUnlock(t, hold)
		hold = next
	}
	writer := lockInBackground(within(t, soon), connect(t, server).NewRWLock(name).Writer())
	parked(t, admin, name)
	mustUnlock(t, hold)
	start := time.Now()
	next := rig.Await(t, soon, "the writer", writer)
	require.NoError(t, next.err)
	assert.Less(t, next.at.Sub(start), leeway)
	mustUnlock(t, next.hold)
}

// A read inside a write is released: the write hold keeps its lease and is renewed.
func TestNestedReadDoesNotCutTheWrite(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	rw := connect(t, server, latchkey.Options{Lease: 10 * time.Second}).NewRWLock(name)
	other := connect(t, server).NewRWLock(name).Reader()
	writer := mustLock(t, rw.Writer())
	for range 3 {
		read, err := rw.Reader().Lock(writer.Context(t.Context()), latchkey.Lease(time.Second)) // ends before the write is renewed
		require.NoError(t, err)
		mustUnlock(t, read)
	}
	rig.Throughout(t, 3*time.Second, "it writes", func() error {
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
	assert.LessOrEqual(t, rig.NewAdmin(t, server).PTTL(name), latchkey.DefaultLease)
	for _, hold := range holds {
		mustUnlock(t, hold)
	}
}

// Readers come and go without end, and overlap. A writer that arrives gets in as soon as the
// readers that were inside have left.
func TestEndlessReadersLetAWriterIn(t *testing.T) {
	t.Parallel()
	const reads = 200 * time.Millisecond
	server, name := rig.Shared(), rig.Name(t)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var entered atomic.Int64
	for range 4 {
		read := connect(t, server).NewRWLock(name).Reader()
		for range 3 {
			all.Go(func() {
				for ctx.Err() == nil {
					_ = read.Do(ctx, func(context.Context) error {
						entered.Add(1)
						rest(reads)
						return nil
					})
				}
			})
		}
	}
	rest(2 * reads)
	write := connect(t, server).NewRWLock(name).Writer()
	for range 5 {
		start, before := time.Now(), entered.Load()
		hold := mustLock(t, write)
		took := time.Since(start)
		t.Logf("in after %v, %d readers came meanwhile", took.Round(time.Millisecond), entered.Load()-before)
		assert.Less(t, took, reads+leeway, "the longest read, and no more")
		mustUnlock(t, hold)
		rig.Eventually(t, soon, "readers come in between", func() error {
			if entered.Load() == before {
				return errors.New("none")
			}
			return nil
		})
	}
	cancel()
	all.Wait()
}

// A process that waits to write is killed. Readers are kept out for one stale period.
func TestDeadWaitingWriterBarsForOnePeriod(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	rw := connect(t, server).NewRWLock(name)
	hold := mustLock(t, rw.Reader())
	child := holderProcess.Start(t, "WriteLock", name, server.Ticket())
	rig.Eventually(t, soon, "the writer keeps readers out", func() error {
		other, err := rw.Reader().TryLock(t.Context())
		if err == nil {
			return errors.Join(errors.New("a reader came in"), other.Unlock(t.Context()))
		}
		return nil
	})
	child.Kill()
	killed := time.Now()
	reader := rig.Await(t, soon, "a reader", lockInBackground(within(t, soon), rw.Reader()))
	require.NoError(t, reader.err)
	t.Logf("in %v after the death of the writer", reader.at.Sub(killed).Round(time.Millisecond))
	assert.Less(t, reader.at.Sub(killed), latchkey.DefaultStaleWaiterTimeout+leeway)
	mustUnlock(t, reader.hold)
	mustUnlock(t, hold)
}

// A writer gives up: the readers that it kept out come in at once.
func TestWriterThatGivesUpLetsReadersIn(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	admin := rig.NewAdmin(t, server)
	hold := mustLock(t, connect(t, server).NewRWLock(name).Reader())
	ctx, cancel := context.WithCancel(t.Context())
	writer := lockInBackground(ctx, connect(t, server, byMessageOnly).NewRWLock(name).Writer())
	parked(t, admin, name)
	reader := lockInBackground(within(t, soon), connect(t, server, byMessageOnly).NewRWLock(name).Reader())
	rig.Eventually(t, soon, "both wait", func() error {
		if admin.Subscribers(rwChannelOf(name)) != 1 || inQueue(admin, name) != 1 {
			return errors.New("not yet")
		}
		return nil
	})
	rest(100 * time.Millisecond)
	require.Empty(t, reader)
	cancel()
	require.ErrorIs(t, rig.Await(t, soon, "the writer", writer).err, context.Canceled)
	came := rig.Await(t, 2*time.Second, "the reader", reader)
	require.NoError(t, came.err)
	mustUnlock(t, came.hold)
	mustUnlock(t, hold)
}

// A write hold is released. All waiting readers, of all clients, come in at once.
func TestAllReadersComeInTogether(t *testing.T) {
	const clients, each = 4, 25
	server, name := rig.Shared(), rig.Name(t)
	writer := mustLock(t, connect(t, server).NewRWLock(name).Writer())
	acquired := make(chan acquisition, clients*each)
	for range clients {
		read := connect(t, server, byMessageOnly).NewRWLock(name).Reader()
		for range each {
			waiter := lockInBackground(within(t, soon), read)
			go func() { acquired <- <-waiter }()
		}
	}
	admin := rig.NewAdmin(t, server)
	rig.Eventually(t, soon, "all clients wait", func() error {
		if admin.Subscribers(rwChannelOf(name)) != clients {
			return errors.New("not yet")
		}
		return nil
	})
	rest(100 * time.Millisecond)
	start := time.Now()
	mustUnlock(t, writer)
	var holds []*latchkey.Hold
	var last time.Duration
	for range clients * each {
		came := rig.Await(t, soon, "a reader", acquired)
		require.NoError(t, came.err)
		holds, last = append(holds, came.hold), max(last, came.at.Sub(start))
	}
	t.Logf("%d readers in, the last after %v", len(holds), last)
	assert.Less(t, last, 2*leeway)
	for _, hold := range holds {
		mustUnlock(t, hold)
	}
}

// The last of many readers leaves, and its message wakes a writer.
func TestLastReaderWakesAWriter(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	var holds []*latchkey.Hold
	for range 10 {
		holds = append(holds, mustLock(t, connect(t, server).NewRWLock(name).Reader()))
	}
	writer := lockInBackground(within(t, soon), connect(t, server, byMessageOnly).NewRWLock(name).Writer())
	parked(t, rig.NewAdmin(t, server), name)
	for _, hold := range holds {
		require.Empty(t, writer, "somebody reads")
		mustUnlock(t, hold)
	}
	came := rig.Await(t, 2*time.Second, "the writer", writer)
	require.NoError(t, came.err)
	mustUnlock(t, came.hold)
}

// Writers follow each other without end, and a reader gets its turn between them.
func TestEndlessWritersLetReadersIn(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 3 {
		write := connect(t, server).NewRWLock(name).Writer()
		for range 2 {
			all.Go(func() {
				for ctx.Err() == nil {
					_ = write.Do(ctx, func(context.Context) error { rest(20 * time.Millisecond); return nil })
				}
			})
		}
	}
	rest(200 * time.Millisecond)
	read := connect(t, server).NewRWLock(name).Reader()
	for range 10 {
		start := time.Now()
		hold := mustLock(t, read)
		assert.Less(t, time.Since(start), 2*time.Second)
		t.Logf("in after %v", time.Since(start).Round(time.Millisecond))
		mustUnlock(t, hold)
	}
	cancel()
	all.Wait()
}

// IsLocked, Inspect and ForceUnlock of the two sides.
func TestSidesOfAReadWriteLock(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	client := connect(t, server)
	rw := client.NewRWLock(name)
	locked := func(read, write bool) {
		t.Helper()
		is, err := rw.Reader().IsLocked(t.Context())
		require.NoError(t, err)
		assert.Equal(t, read, is, "read")
		is, err = rw.Writer().IsLocked(t.Context())
		require.NoError(t, err)
		assert.Equal(t, write, is, "write")
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
