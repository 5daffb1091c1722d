package tests

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// A client passes the permits of a semaphore that several of its goroutines want among them in
// memory.

// hotSemaphore is a semaphore of a client that passes permits on, with a tap on the client's
// commands.
type hotSemaphore struct {
	*latchkey.Semaphore

	client *latchkey.Client
	tap    *rig.Tap
}

func newHotSemaphore(t *testing.T, permits int, options latchkey.Options) hotSemaphore {
	t.Helper()
	tap := rig.NewTap(t, rig.Shared())
	options.RetryBudget = soon
	client := connectVia(t, rig.Shared(), tap.Addr(), options)
	return hotSemaphore{newSemaphore(t, client, permits), client, tap}
}

// acquireInLine acquires in another goroutine, and returns when that goroutine waits.
func (s hotSemaphore) acquireInLine(ctx context.Context, t *testing.T, n int) <-chan error {
	t.Helper()
	waiting := newWaitingContext(ctx)
	done := make(chan error, 1)
	go func() { done <- s.AcquireN(waiting, n) }()
	rig.Await(t, soon, "the call waits", waiting.waits)
	return done
}

// sent returns how many commands, and how many releases among them, were sent for the semaphore.
func (s hotSemaphore) sent() (all, releases int) {
	for _, c := range s.tap.Commands() {
		if rig.Mentions(s.Name())(c) {
			all++
		}
		if rig.Mentions(s.Name())(c) && slices.Contains(c.Args, "release") {
			releases++
		}
	}
	return all, releases
}

// workers acquire and release until ctx ends, and count their acquisitions.
func workers(ctx context.Context, t *testing.T, s *latchkey.Semaphore, n int, done *atomic.Int64) *sync.WaitGroup {
	t.Helper()
	all := rig.Goroutines(t)
	for range n {
		all.Go(func() {
			for ctx.Err() == nil {
				if err := s.Acquire(ctx); err != nil {
					assert.ErrorIs(t, err, context.Canceled)
					return
				}
				done.Add(1)
				assert.NoError(t, s.Release(context.WithoutCancel(ctx)))
			}
		})
	}
	return all
}

// acquireAndRelease has goroutines each acquire a permit and call release for the given number of
// passes.
func acquireAndRelease(t *testing.T, s *latchkey.Semaphore, goroutines, passes int, release func()) {
	t.Helper()
	all := rig.Goroutines(t)
	for range goroutines {
		all.Go(func() {
			for range passes {
				assert.NoError(t, s.Acquire(t.Context()))
				release()
			}
		})
	}
	all.Wait()
}

// allBack checks that all permits are available again.
func allBack(t *testing.T, s *latchkey.Semaphore, permits int) {
	t.Helper()
	rig.Eventually(t, soon, "all permits are back", func() error {
		if n, err := freeIn(t.Context(), s); n != permits || err != nil {
			return errors.Join(err, fmt.Errorf("%d of %d are available", n, permits))
		}
		return nil
	})
}

// However many goroutines of a client want permits, few commands are sent.
func TestPermitPassing_of_a_hot_semaphore(t *testing.T) {
	s := newHotSemaphore(t, 2, longTurn)
	const goroutines = 8
	passes := 500
	acquireAndRelease(t, s.Semaphore, goroutines, passes, func() { assert.NoError(t, s.ReleaseN(t.Context(), 1)) })
	sent, releases := s.sent()
	t.Logf("%d commands, %d of them releases, for %d acquisitions", sent, releases, goroutines*passes)
	assert.Less(t, sent, goroutines*passes/4, "an eighth of what permits cost that are not passed on")
	allBack(t, s.Semaphore, 2)
}

// A client with a negative turn passes nothing on.
func TestPermitPassing_can_be_switched_off(t *testing.T) {
	t.Parallel()
	s := newHotSemaphore(t, 1, latchkey.Options{Tuning: latchkey.Tuning{Turn: -1}})
	const goroutines, passes = 4, 10
	acquireAndRelease(t, s.Semaphore, goroutines, passes, func() { assert.NoError(t, s.ReleaseN(t.Context(), 1)) })
	_, releases := s.sent()
	assert.GreaterOrEqual(t, releases, goroutines*passes)
}

// Permits are neither lost nor duplicated, however many a call requests, whoever gives up when, and
// whatever else changes their number.
func TestPermitPassing_keeps_the_number_of_permits(t *testing.T) {
	t.Parallel()
	const permits, goroutines = 5, 6
	name := rig.Name(t)
	var inside, had, gaveUp atomic.Int64
	all := rig.Goroutines(t)
	for range 2 {
		s := connect(t, rig.Shared(), persistent).NewSemaphore(name)
		_, err := s.TrySetPermits(t.Context(), permits)
		require.NoError(t, err)
		for range goroutines {
			all.Go(func() {
				for range rig.Sized(200) {
					ctx, cancel := context.WithCancel(t.Context())
					if rand.N(2) == 0 {
						time.AfterFunc(rand.N(2*time.Millisecond), cancel)
					}
					n := 1 + rand.N(3)
					if err := s.AcquireN(ctx, n); err != nil {
						gaveUp.Add(1)
						cancel()
						assert.ErrorIs(t, err, context.Canceled)
						continue
					}
					had.Add(1)
					assert.LessOrEqual(t, inside.Add(int64(n)), int64(permits))
					inside.Add(int64(-n))
					giveBack(t, s, n)
					cancel()
				}
			})
		}
	}
	all.Wait()
	t.Logf("%d had permits, %d gave up", had.Load(), gaveUp.Load())
	assert.NotZero(t, had.Load())
	allBack(t, connect(t, rig.Shared()).NewSemaphore(name), permits)
}

// giveBack releases permits in one of several ways.
func giveBack(t *testing.T, s *latchkey.Semaphore, n int) {
	t.Helper()
	ctx := t.Context()
	switch rand.N(8) {
	case 0:
		there, err := s.ReleaseIfExists(ctx, n)
		assert.NoError(t, err)
		assert.True(t, there)
	case 1:
		for range n {
			assert.NoError(t, s.Release(ctx))
		}
	case 2:
		assert.NoError(t, s.AddPermits(ctx, -1)) // first, so that there are never more than at the start
		assert.NoError(t, s.AddPermits(ctx, 1))
		assert.NoError(t, s.ReleaseN(ctx, n))
	case 3:
		drained, err := s.Drain(ctx)
		assert.NoError(t, err)
		switch left := drained + n; { // negative if more were taken away than are available
		case left > 0:
			assert.NoError(t, s.ReleaseN(ctx, left))
		case left < 0:
			assert.NoError(t, s.AddPermits(ctx, left))
		}
	default:
		assert.NoError(t, s.ReleaseN(ctx, n))
	}
}

// A waiter whose context ends while permits are passed to it either gets them or does not, and its
// result says which.
func TestPermitPassing_loses_none_to_who_gives_up(t *testing.T) {
	t.Parallel()
	s := newHotSemaphore(t, 1, longTurn)
	require.NoError(t, s.AcquireN(t.Context(), 1))
	had, tries := 0, 0
	for ends := time.Now().Add(rig.Lasting(time.Second)); time.Now().Before(ends); tries++ {
		ctx, cancel := context.WithCancel(t.Context())
		var waiting, next <-chan error
		if rand.N(2) == 0 { // the canceled waiter is first in line
			waiting = s.acquireInLine(ctx, t, 1)
		}
		next = s.acquireInLine(t.Context(), t, 1)
		if waiting == nil { // the canceled waiter is second in line
			waiting = s.acquireInLine(ctx, t, 1)
		}
		released := make(chan error, 1)
		go func() { released <- s.ReleaseN(t.Context(), 1) }()
		for range rand.N(4) {
			runtime.Gosched()
		}
		cancel()
		require.NoError(t, rig.Await(t, soon, "the release", released))
		for range 2 {
			select {
			case err := <-waiting:
				if err != nil {
					require.ErrorIs(t, err, context.Canceled)
					continue
				}
				had++
			case err := <-next:
				require.NoError(t, err)
			}
			require.NoError(t, s.ReleaseN(t.Context(), 1))
		}
		require.NoError(t, s.AcquireN(within(t, soon), 1))
	}
	t.Logf("%d of %d had it", had, tries)
	require.NoError(t, s.ReleaseN(t.Context(), 1))
	allBack(t, s.Semaphore, 1)
}

// The waiters of one client are served in the order of arrival. Only the first of them queries the
// server. While it does, the others go first, so that the permits do not wait for the answer.
func TestPermitPassing_keeps_the_order(t *testing.T) {
	t.Parallel()
	s := newHotSemaphore(t, 1, longTurn)
	require.NoError(t, s.AcquireN(t.Context(), 1))
	const waiters = 30
	order := make(chan int, waiters)
	all := rig.Goroutines(t)
	for i := range waiters {
		waiting := newWaitingContext(within(t, soon))
		all.Go(func() {
			assert.NoError(t, s.AcquireN(waiting, 1))
			order <- i
			assert.NoError(t, s.ReleaseN(t.Context(), 1))
		})
		rig.Await(t, soon, "the call waits", waiting.waits)
	}
	s.tap.Forget()
	require.NoError(t, s.ReleaseN(t.Context(), 1))
	all.Wait()
	close(order)
	late, last := 0, -1 // each waiter that comes after a later one
	for i := range order {
		if i < last {
			late++
		}
		last = i
	}
	sent, releases := s.sent()
	t.Logf("%d late, %d queries, %d releases", late, sent-releases, releases)
	assert.LessOrEqual(t, late, sent-releases, "only a query makes a waiter late")
	assert.Less(t, releases, waiters/2, "most permits are passed on")
}

// Two clients that want the same permits all the time get equal shares, and neither waits for the
// other longer than a turn for each permit.
func TestPermitPassing_shares_with_other_clients(t *testing.T) {
	for _, permits := range []int{1, 3} {
		t.Run(fmt.Sprint(permits), func(t *testing.T) {
			first := newSemaphore(t, connect(t, rig.Shared(), persistent), permits)
			other := connect(t, rig.Shared(), persistent).NewSemaphore(first.Name())
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var a, b atomic.Int64
			workersA := workers(ctx, t, first, 4, &a)
			workersB := workers(ctx, t, other, 4, &b)
			const enough = 1000
			rig.Eventually(t, time.Minute, "both have had permits often", func() error {
				if a.Load() < enough || b.Load() < enough {
					return fmt.Errorf("%d and %d", a.Load(), b.Load())
				}
				return nil
			})
			x, y := a.Load(), b.Load()
			stop()
			workersA.Wait()
			workersB.Wait()
			t.Logf("%d and %d", x, y)
			rig.Target(t, x <= 2*y && y <= 2*x, "shares of %d and %d", x, y)
			assert.Less(t, max(x, y), 20*min(x, y))
			allBack(t, first, permits)
		})
	}
}

// A request for many permits is served although others acquire single permits in tight loops.
func TestPermitPassing_beside_a_large_request(t *testing.T) {
	t.Parallel()
	const permits = 4
	options := keepsShortly
	options.RetryBudget = soon
	small := newSemaphore(t, connect(t, rig.Shared(), options), permits)
	large := connect(t, rig.Shared(), options).NewSemaphore(small.Name())
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var done atomic.Int64
	all := workers(ctx, t, small, 8, &done)
	for range 5 {
		require.NoError(t, large.AcquireN(within(t, time.Minute), permits))
		assert.Zero(t, available(t, large), "nothing is passed on that is not there")
		before := done.Load()
		require.NoError(t, large.ReleaseN(t.Context(), permits))
		rig.Eventually(t, soon, "the small ones go on", func() error {
			if done.Load() == before {
				return errors.New("none has a permit")
			}
			return nil
		})
	}
	stop()
	all.Wait()
	allBack(t, small, permits)
}

// A client that shares the permits with others that know no queue passes nothing on after its turn.
// It learns of them at a release on the server, and forgets them after a second without one.
func TestPermitPassing_beside_a_stranger(t *testing.T) {
	t.Parallel()
	s := newHotSemaphore(t, 1, latchkey.Options{Tuning: latchkey.Tuning{Turn: 20 * time.Millisecond}})
	listenRaw(t, rig.Shared(), semaphoreChannelOf(s.Name()), func() {})
	ctx, stop := context.WithCancel(t.Context())
	var done atomic.Int64
	all := workers(ctx, t, s.Semaphore, 4, &done)
	rig.Eventually(t, soon, "it passes nothing on", func() error {
		_, before := s.sent()
		from := done.Load()
		rig.Eventually(t, soon, "it goes on", func() error {
			if done.Load() < from+20 {
				return errors.New("too few")
			}
			return nil
		})
		_, after := s.sent()
		if had := done.Load() - from; int64(after-before) < had-4 { // four may be under way
			return fmt.Errorf("%d releases on the server for %d", after-before, had)
		}
		return nil
	})
	stop()
	all.Wait()
	allBack(t, s.Semaphore, 1)
}

// Permits that are passed on while the client closes either come back or have a holder.
func TestPermitPassing_and_Close(t *testing.T) {
	t.Parallel()
	observer := connect(t, rig.Shared(), persistent)
	for range rig.Sized(60) {
		const permits = 2
		witness, client := newSemaphore(t, observer, permits), connect(t, rig.Shared(), persistent)
		s := client.NewSemaphore(witness.Name())
		var kept atomic.Int64
		all := rig.Goroutines(t)
		for range 6 {
			all.Go(func() {
				for {
					if err := s.Acquire(t.Context()); err != nil {
						assert.ErrorIs(t, err, latchkey.ErrClosed)
						return
					}
					if err := s.Release(t.Context()); err != nil {
						assert.ErrorIs(t, err, latchkey.ErrClosed)
						kept.Add(1)
						return
					}
				}
			})
		}
		rest(rand.N(5 * time.Millisecond))
		require.NoError(t, client.Close(t.Context()))
		all.Wait()
		allBack(t, witness, permits-int(kept.Load()))
	}
}
