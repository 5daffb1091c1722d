package tests

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// A hold that was passed on has nothing in common with the next hold.

// Nobody re-enters the next hold with the owner of the previous one, or as its guest.
func TestPassedHold_owner_enters_nothing(t *testing.T) {
	t.Parallel()
	c := newHotLock(t, lockKind, longTurn)
	first, next := c.pass(t, untouched)
	former := first.Share()
	assert.Equal(t, former, first.Share())
	refused := func() {
		t.Helper()
		for _, client := range []*latchkey.Client{c.client, connect(t, rig.Shared())} {
			_, err := client.NewLock(c.name).TryLock(t.Context(), latchkey.As(former))
			require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		}
	}
	refused()
	own := next.Share()
	refused()
	assert.NotEqual(t, former, own)
	inner := mustLock(t, c.lock, latchkey.As(own))
	assert.Equal(t, 2, countOf(next))
	assert.Zero(t, countOf(first))
	mustUnlock(t, inner)
	mustUnlock(t, next)
}

// A context of a hold that is over re-enters nothing, and has ended before the next Lock returns.
func TestPassedHold_contexts_have_ended(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		c := newHotLock(t, k, longTurn)
		var work context.Context
		ended := make(chan error, 1)
		holder, waiting := c.hold(t, func() <-chan acquisition {
			ctx := newWaitingContext(within(t, soon))
			done := make(chan acquisition, 1)
			go func() {
				hold, err := c.lock.Lock(ctx)
				ended <- context.Cause(work)
				done <- acquisition{hold: hold, err: err}
			}()
			rig.Await(t, soon, "the call waits", ctx.waits)
			return done
		})
		work = holder.hold.Context(t.Context())
		mustUnlock(t, holder.hold)
		require.ErrorIs(t, rig.Await(t, soon, "the next hold", ended), latchkey.ErrNotHeld)
		next := rig.Await(t, soon, "the next hold", waiting)
		require.NoError(t, next.err)
		_, err := c.lock.TryLock(work)
		require.ErrorIs(t, err, context.Canceled)
		_, err = c.lock.TryLock(context.WithoutCancel(work))
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		mustUnlock(t, next.hold)
	}, passes)
}

// A re-entry that races with the release of its hold either succeeds, and the hold is not passed on
// until the re-entry ends, or fails.
func TestPassedHold_is_not_entered_any_more(t *testing.T) {
	t.Parallel()
	c := newHotLock(t, lockKind, longTurn)
	var entered int
	for range rig.Sized(100) {
		var inside atomic.Int32
		holder, waiting := c.hold(t, func() <-chan acquisition { return lockInLine(within(t, soon), t, c.lock) })
		ctx := context.WithoutCancel(holder.hold.Context(t.Context()))
		reentered := make(chan error, 1)
		go func() {
			inner, err := c.lock.TryLock(ctx)
			if err == nil {
				inside.Add(1)
				runtime.Gosched()
				inside.Add(-1)
				err = inner.Unlock(ctx)
				entered++
			}
			reentered <- err
		}()
		rest(rand.N(400 * time.Microsecond))
		mustUnlock(t, holder.hold)
		next := rig.Await(t, soon, "the next hold", waiting)
		require.NoError(t, next.err)
		require.Zero(t, inside.Load(), "two are inside")
		if err := rig.Await(t, soon, "the re-entry", reentered); err != nil {
			require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		}
		mustUnlock(t, next.hold)
	}
	t.Logf("%d entered", entered)
}

// A waiter whose context ends while the lock is passed on either gets the lock or does not. The
// lock is never lost, and the waiter learns the outcome.
func TestPassedHold_is_never_lost(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		c := newHotLock(t, k, longTurn)
		hold, had, tries := mustLock(t, c.lock), 0, 0
		for ends := time.Now().Add(rig.Lasting(time.Second)); time.Now().Before(ends); tries++ {
			ctx, cancel := context.WithCancel(t.Context())
			waiting := lockInLine(ctx, t, c.lock)
			go cancel()
			for range rand.N(4) {
				runtime.Gosched()
			}
			mustUnlock(t, hold)
			next := rig.Await(t, soon, "the waiter", waiting)
			if next.err != nil {
				require.ErrorIs(t, next.err, context.Canceled)
				hold = mustLock(t, c.lock)
				continue
			}
			hold, had = next.hold, had+1
			require.NoError(t, hold.Err())
		}
		mustUnlock(t, hold)
		t.Logf("%d of %d had it", had, tries)
		require.NoError(t, free(rig.NewAdmin(t, rig.Shared()), c.name)())
	}, passes)
}

// When the key disappears, only the current hold is lost, and none before it.
func TestPassedHold_is_not_lost(t *testing.T) {
	t.Parallel()
	for what, take := range map[string]func(t *testing.T, name string){
		"the key is deleted": func(t *testing.T, name string) { t.Helper(); rig.NewAdmin(t, rig.Shared()).Do("DEL", name) },
		"a forced unlock": func(t *testing.T, name string) {
			t.Helper()
			forced, err := connect(t, rig.Shared()).ForceUnlock(t.Context(), name)
			require.NoError(t, err)
			require.True(t, forced)
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := newHotLock(t, lockKind, latchkey.Options{Tuning: latchkey.Tuning{Turn: longestTurn}, Lease: 5 * time.Second})
			first, next := c.pass(t, untouched)
			after := lockInLine(within(t, soon), t, c.lock)
			take(t, c.name)
			rig.Await(t, soon, "the loss", next.Lost())
			require.ErrorIs(t, next.Err(), latchkey.ErrLost)
			require.ErrorIs(t, next.Unlock(t.Context()), latchkey.ErrLost)
			require.NotErrorIs(t, first.Err(), latchkey.ErrLost)
			select {
			case <-first.Lost():
				t.Fatal("it was released")
			default:
			}
			waiter := rig.Await(t, soon, "the waiter", after)
			require.NoError(t, waiter.err)
			mustUnlock(t, waiter.hold)
		})
	}
}

// Close ends the current hold and the calls that wait for the lock.
func TestPassedHold_and_Close(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		c := newHotLock(t, k, longTurn)
		first, next := c.pass(t, untouched)
		waiting := lockInLine(within(t, soon), t, c.lock)
		require.NoError(t, c.client.Close(within(t, soon)))
		require.ErrorIs(t, rig.Await(t, soon, "the waiter", waiting).err, latchkey.ErrClosed)
		require.ErrorIs(t, next.Err(), latchkey.ErrClosed)
		require.NotErrorIs(t, first.Err(), latchkey.ErrClosed)
		require.NoError(t, free(rig.NewAdmin(t, rig.Shared()), c.name)())
	}, passes)
}

// Close may run while a lock is passed on from goroutine to goroutine: nothing is left behind.
func TestPassing_while_the_client_closes(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		for range rig.Sized(20) {
			c := newHotLock(t, k, longTurn)
			done := make(chan error, 4)
			started := make(chan struct{}, 4)
			for range cap(done) {
				go func() {
					var err error
					for err == nil {
						err = c.lock.Do(t.Context(), func(context.Context) error {
							select {
							case started <- struct{}{}:
							default:
							}
							return nil
						})
					}
					done <- err
				}()
			}
			rig.Await(t, soon, "the first hold", started)
			require.NoError(t, c.client.Close(within(t, soon)))
			for range cap(done) {
				require.ErrorIs(t, rig.Await(t, soon, "a goroutine", done), latchkey.ErrClosed)
			}
			require.NoError(t, free(rig.NewAdmin(t, rig.Shared()), c.name)())
		}
	}, passes)
}

// Each hold is reported, in order, with the time for which it was held.
func TestPassedHold_is_observed(t *testing.T) {
	t.Parallel()
	events := make(chan latchkey.Event, 1000)
	options := longTurn
	options.Observer = func(e latchkey.Event) {
		if e.Type != latchkey.EventAttempt {
			events <- e
		}
	}
	const held = 100 * time.Millisecond
	c := newHotLock(t, lockKind, options)
	_, next := c.pass(t, func(*latchkey.Hold) { rest(held) })
	passed := time.Now()
	mustUnlock(t, next)
	require.NoError(t, c.client.Close(within(t, soon)))
	close(events)
	var last []latchkey.Event
	for e := range events {
		last = append(last, e)
	}
	last = last[len(last)-4:]
	for i, want := range []latchkey.EventType{
		latchkey.EventAcquired, latchkey.EventReleased, latchkey.EventAcquired, latchkey.EventReleased,
	} {
		assert.Equal(t, want, last[i].Type, "%v", last)
		assert.Equal(t, last[0].Owner, last[i].Owner, "for the server it is one owner")
	}
	assert.GreaterOrEqual(t, last[1].Held, held)
	assert.GreaterOrEqual(t, last[2].Wait, held)
	assert.Less(t, last[3].Held, time.Since(passed)+leeway)
}

// A hold that was passed on and then dropped is reported like any other, and the lock stays held.
func TestPassedHold_that_is_dropped(t *testing.T) {
	t.Parallel()
	log := &errorsLogged{Handler: slog.DiscardHandler}
	options := longTurn
	options.Logger, options.ReportDropped = slog.New(log), true
	c := newHotLock(t, lockKind, options)
	func() {
		_, _ = c.pass(t, untouched)
	}()
	rig.Eventually(t, soon, "the report", func() error {
		runtime.GC()
		if !strings.Contains(log.String(), "dropped without Unlock") {
			return errors.New("nothing is reported")
		}
		return nil
	})
	_, err := c.lock.TryLock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
}
