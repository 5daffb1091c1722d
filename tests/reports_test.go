package tests

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// logFunc is a slog.Handler that is a function.
type logFunc func(slog.Record)

func (f logFunc) Enabled(context.Context, slog.Level) bool           { return true }
func (f logFunc) Handle(_ context.Context, record slog.Record) error { f(record); return nil }
func (f logFunc) WithAttrs([]slog.Attr) slog.Handler                 { return f }
func (f logFunc) WithGroup(string) slog.Handler                      { return f }

// stuck returns a function that blocks every caller until the test ends, and a channel that reports
// the first call.
func stuck(t *testing.T) (called chan struct{}, block func()) {
	t.Helper()
	called, end := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(end) })
	var once sync.Once
	return called, func() {
		once.Do(func() { close(called) })
		<-end
	}
}

// renewedSince waits until every hold has received its whole lease after a time.
func renewedSince(t *testing.T, since time.Time, lease time.Duration, holds ...*latchkey.Hold) {
	t.Helper()
	rig.Eventually(t, soon, "every hold is renewed", func() error {
		for _, hold := range holds {
			require.NoError(t, hold.Err())
			if had := time.Since(since) + hold.ValidFor(); had < lease*95/100 { // the rest is the margin
				return fmt.Errorf("it had %v of %v then", had, lease)
			}
		}
		return nil
	})
}

// The log blocks, like a pipe that nobody reads, while renewals fail for a while. They work again
// when the server is back, and so does everything else. Close does not wait for the log forever.
func TestLogThatBlocksStopsNothing(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Speed)
	const lease = 12 * time.Second
	server, name := rig.Shared(), rig.Name(t)
	link := rig.NewLink(t, server)
	called, block := stuck(t)
	client := connectVia(t, server, link.Addr(), latchkey.Options{
		Lease: lease, RetryBudget: time.Second, Logger: slog.New(logFunc(func(slog.Record) { block() })),
	})
	var holds []*latchkey.Hold
	for i := range 300 {
		holds = append(holds, mustLock(t, client.NewLock(fmt.Sprint(name, i))))
	}
	link.Silence()
	rig.Await(t, soon, "a line", called)
	link.Heal()
	healed := time.Now()
	renewedSince(t, healed, lease, holds...)

	other := mustLock(t, connect(t, server).NewLock(name))
	waiter := lockInBackground(within(t, soon), client.NewLock(name))
	awaitWaiter(t, rig.NewAdmin(t, server), name)
	mustUnlock(t, other)
	mustUnlock(t, rig.Await(t, soon, "the waiter", waiter).hold)
	for _, hold := range holds {
		if err := hold.Unlock(t.Context()); err != nil { // on a busy machine it may take longer than the budget
			require.ErrorIs(t, err, latchkey.ErrUnknownOutcome)
		}
	}
	rig.Eventually(t, soon, "all is free", free(rig.NewAdmin(t, server), name))
	closed := make(chan error, 1)
	go func() { closed <- client.Close(context.Background()) }()
	require.Error(t, rig.Await(t, soon, "Close", closed), "a goroutine is left")
}

// The observer does not return from its first event. No lock waits for it: acquisition, renewal,
// hand-over, loss and undo go on.
func TestObserverThatBlocksStopsNothing(t *testing.T) {
	t.Parallel()
	const lease = 6 * time.Second
	server, name := rig.Shared(), rig.Name(t)
	admin, tap := rig.NewAdmin(t, server), rig.NewTap(t, server)
	called, block := stuck(t)
	client := connectVia(t, server, tap.Addr(), latchkey.Options{
		Lease: lease, Observer: func(latchkey.Event) { block() },
	})
	first := lockInBackground(within(t, soon), client.NewLock(name))
	rig.Await(t, soon, "the first event", called)
	hold := rig.Await(t, soon, "the lock", first).hold
	waiter := lockInBackground(within(t, soon), client.NewLock(name))
	renewedSince(t, time.Now(), lease, hold)
	mustUnlock(t, hold)
	next := rig.Await(t, soon, "the next in line", waiter).hold
	admin.Do("DEL", name)
	rig.Await(t, soon, "the loss", next.Lost())

	executed := tap.Lose(1, rig.Mentions(name), rig.Cut)
	heal := tap.LoseAll(rig.Mentions(name), rig.Cut)
	ctx, giveUp := context.WithCancel(t.Context())
	doubtful := lockInBackground(ctx, client.NewLock(name))
	rig.Await(t, soon, "an attempt without a reply", executed)
	giveUp()
	require.ErrorIs(t, rig.Await(t, soon, "the attempt", doubtful).err, latchkey.ErrUnknownOutcome)
	heal()
	rig.Eventually(t, soon, "nothing is left", free(admin, name))
}

// The log panics. Nothing else does.
func TestLogThatPanicsBreaksNothing(t *testing.T) {
	t.Parallel()
	const lease = 6 * time.Second
	server, name := rig.Shared(), rig.Name(t)
	lines := make(chan string, 1000)
	client := connect(t, server, latchkey.Options{
		Lease: lease,
		Logger: slog.New(logFunc(func(r slog.Record) {
			lines <- r.Message
			panic("the log")
		})),
	})
	lost, kept := mustLock(t, client.NewLock(name)), mustLock(t, client.NewLock(name+" kept"))
	rig.NewAdmin(t, server).Do("DEL", name)
	rig.Await(t, soon, "the loss", lost.Lost())
	rig.Await(t, soon, "the line", lines)
	renewedSince(t, time.Now(), lease, kept)
	mustUnlock(t, kept)
}

// The server is silent for a long time, while a hold needs renewal and a waiter waits. Each kind of
// trouble is logged once, and repetitions are counted.
func TestSameTroubleIsLoggedOnce(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	link := rig.NewLink(t, server)
	lines := make(chan string, 1000)
	const lease, period = 3 * time.Second, 10 * time.Second // the log repeats after a period
	start := time.Now()
	client := connectVia(t, server, link.Addr(), latchkey.Options{
		Lease: lease, RetryBudget: 200 * time.Millisecond,
		Logger: slog.New(logFunc(func(r slog.Record) { lines <- r.Message })),
	})
	other := mustLock(t, connect(t, server).NewLock(name))
	hold := mustLock(t, client.NewLock(name+" held"))
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	waiter := lockInBackground(ctx, client.NewLock(name))
	awaitWaiter(t, rig.NewAdmin(t, server), name)
	link.Silence()
	rig.Await(t, soon, "the loss", hold.Lost())
	giveUp()
	rig.Await(t, soon, "the waiter", waiter)
	link.Heal()
	mustUnlock(t, other)
	require.NoError(t, client.Close(within(t, soon)))
	close(lines)
	times := map[string]int{}
	for line := range lines {
		times[line]++
	}
	t.Logf("%v", times)
	for line, n := range times {
		assert.LessOrEqual(t, n, 2+int(time.Since(start)/period), "%s: once, and how often it was repeated", line)
	}
	assert.NotEmpty(t, times)
}

// A thousand holds are lost at once. That takes a few log lines, which together report all of
// them.
func TestManyLossesAreFewLines(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Speed)
	const holds = 1000
	server := rig.Fresh(t)
	var lines, told atomic.Int64
	client := connect(t, server, latchkey.Options{Logger: slog.New(logFunc(func(r slog.Record) {
		if !strings.HasPrefix(r.Message, "latchkey: hold lost") {
			return
		}
		lines.Add(1)
		told.Add(1)
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "repeated" {
				told.Add(a.Value.Int64() - 1)
			}
			return true
		})
	})), Lease: 3 * time.Second})
	lost := make(chan *latchkey.Hold, holds)
	eachName(t, holds, 64, func(name string) {
		hold, err := client.NewLock(name).Lock(t.Context())
		if assert.NoError(t, err) {
			lost <- hold
		}
	})
	close(lost)
	require.Len(t, lost, holds)
	rig.NewAdmin(t, server).Do("FLUSHALL")
	for hold := range lost {
		rig.Await(t, soon, "a loss", hold.Lost())
	}
	require.NoError(t, client.Close(within(t, soon)))
	assert.EqualValues(t, holds, told.Load())
	assert.Less(t, lines.Load(), int64(50), "nine for each way to learn of it, on a busy machine again after ten seconds")
}

// Events are delivered one at a time, in the order in which they happened, and all of them have
// been delivered when Close returns.
func TestEventsComeInOrder(t *testing.T) {
	t.Parallel()
	const names, goroutines, rounds = 4, 4, 50
	server, name := rig.Shared(), rig.Name(t)
	var inside, together atomic.Int32
	events := map[string][]latchkey.Event{}
	var mu sync.Mutex
	client := connect(t, server, latchkey.Options{Observer: func(e latchkey.Event) {
		if inside.Add(1) > 1 {
			together.Add(1)
		}
		defer inside.Add(-1)
		mu.Lock()
		defer mu.Unlock()
		if e.Type != latchkey.EventAttempt {
			events[e.Name] = append(events[e.Name], e)
		}
	}})
	all := rig.Goroutines(t)
	for i := range names * goroutines {
		all.Go(func() {
			lock := client.NewLock(fmt.Sprint(name, i%names))
			for range rounds {
				assert.NoError(t, lock.Do(within(t, time.Minute), func(context.Context) error { return nil }))
			}
		})
	}
	all.Wait()
	require.NoError(t, client.Close(within(t, soon)))
	assert.Zero(t, together.Load(), "one at a time")
	for name, events := range events {
		require.Len(t, events, 2*goroutines*rounds, name)
		for i, e := range events {
			want := latchkey.EventAcquired
			if i%2 == 1 {
				want = latchkey.EventReleased
				assert.Equal(t, events[i-1].Owner, e.Owner)
			}
			require.Equal(t, want, e.Type, "event %d of %s", i, name)
		}
	}
}

// An observer that cannot keep up does not slow down the locks. The log counts the events that it
// misses.
func TestEventsThatFindNoRoomAreCounted(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Speed)
	server, name := rig.Shared(), rig.Name(t)
	var seen, dropped atomic.Int64
	gate := make(chan struct{})
	client := connect(t, server, latchkey.Options{
		Observer: func(latchkey.Event) { <-gate; seen.Add(1) },
		Logger: slog.New(logFunc(func(r slog.Record) {
			if !strings.Contains(r.Message, "was dropped because") {
				return
			}
			dropped.Add(1)
			r.Attrs(func(a slog.Attr) bool {
				if a.Key == "repeated" {
					dropped.Add(a.Value.Int64() - 1)
				}
				return true
			})
		})),
	})
	const goroutines, rounds = 64, 48 // three events each
	all := rig.Goroutines(t)
	ctx := within(t, time.Minute)
	for i := range goroutines {
		all.Go(func() {
			lock := client.NewLock(fmt.Sprint(name, i))
			for range rounds {
				hold, err := lock.Lock(ctx)
				if assert.NoError(t, err) {
					assert.NoError(t, hold.Unlock(ctx))
				}
			}
		})
	}
	all.Wait()
	close(gate)
	require.NoError(t, client.Close(within(t, soon)))
	assert.EqualValues(t, 3*goroutines*rounds, seen.Load()+dropped.Load())
	assert.Positive(t, dropped.Load(), "there were more than are kept")
}

// A key that has lost its expiry may never become free. A waiter for it logs that.
func TestKeyWithoutExpiryIsReported(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		server, name := rig.Shared(), rig.Name(t)
		holder := mustLock(t, k.open(connect(t, server), name), latchkey.Lease(time.Minute))
		rig.NewAdmin(t, server).Do("PERSIST", name)
		lines := make(chan string, 100)
		client := connect(t, server, latchkey.Options{Logger: slog.New(logFunc(func(r slog.Record) { lines <- r.Message }))})
		waiter := lockInBackground(within(t, soon), k.open(client, name))
		for !strings.Contains(rig.Await(t, soon, "the report", lines), "the key has no expiry") {
			continue // a busy machine may be reason for other lines
		}
		mustUnlock(t, holder)
		next := rig.Await(t, soon, "the waiter", waiter)
		require.NoError(t, next.err)
		mustUnlock(t, next.hold)
	}, func(k kind) bool { return !k.queued }) // a place in the queue has a pause of its own
}
