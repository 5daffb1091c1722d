package tests

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// How readers and writers take turns.

// byMessageOnly rules out polling for the duration of a test.
var byMessageOnly = latchkey.Options{Tuning: latchkey.Tuning{PollCeiling: time.Minute, StaleWaiterTimeout: 2 * time.Minute}, Lease: 2 * time.Minute}

// wokenAll receives the messages at the end of a write: '1' for all waiters, and '0' for a Redisson
// thread that is about to sleep.
func wokenAll(t *testing.T, heard <-chan string) {
	t.Helper()
	assert.Equal(t, "1", rig.Await(t, soon, "the message of a write", heard))
	assert.Equal(t, "0", rig.Await(t, soon, "the one after it", heard))
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
	rig.Eventually(t, soon, "readers come", func() error {
		if entered.Load() < 4 {
			return errors.New("few are in")
		}
		return nil
	})
	write := connect(t, server).NewRWLock(name).Writer()
	for range 3 {
		start, before := time.Now(), entered.Load()
		hold := mustLock(t, write)
		took := time.Since(start)
		t.Logf("in after %v, %d readers came meanwhile", took.Round(time.Millisecond), entered.Load()-before)
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
	assert.Less(t, reader.at.Sub(killed), defaultStale+leeway)
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
	awaitWaiter(t, admin, name)
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
	came := rig.Await(t, soon, "the reader", reader)
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
	awaitWaiter(t, rig.NewAdmin(t, server), name)
	for _, hold := range holds {
		require.Empty(t, writer, "somebody reads")
		mustUnlock(t, hold)
	}
	came := rig.Await(t, soon, "the writer", writer)
	require.NoError(t, came.err)
	mustUnlock(t, came.hold)
}

// Writers follow each other without end, and a reader gets its turn between them.
func TestEndlessWritersLetReadersIn(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var once sync.Once
	writing := make(chan struct{})
	for range 3 {
		write := connect(t, server).NewRWLock(name).Writer()
		for range 2 {
			all.Go(func() {
				for ctx.Err() == nil {
					_ = write.Do(ctx, func(context.Context) error {
						once.Do(func() { close(writing) })
						rest(20 * time.Millisecond)
						return nil
					})
				}
			})
		}
	}
	rig.Await(t, soon, "a writer", writing)
	read := connect(t, server).NewRWLock(name).Reader()
	for range 5 {
		start := time.Now()
		hold := mustLock(t, read)
		t.Logf("in after %v", time.Since(start).Round(time.Millisecond))
		mustUnlock(t, hold)
	}
	cancel()
	all.Wait()
}
