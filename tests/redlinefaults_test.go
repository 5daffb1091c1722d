package tests

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/history"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// The line of a RedLock when servers fail and clients close.

// When a majority is gone, the waiters in line get the same error as the call in front.
func TestRedLine_tells_all_what_the_servers_say(t *testing.T) {
	t.Parallel()
	m := newMasters(t, 3)
	l := m.lock(t, "x", latchkey.Options{RetryBudget: time.Second})
	mustUnlock(t, mustLock(t, l))
	m.comesTo(t, "x", 0)
	// On a busy machine it takes longer until all servers have answered in one round.
	allAreTold := func(is func(error) bool) {
		t.Helper()
		wrong := errors.New("nobody is told anything")
		for wait := 1500 * time.Millisecond; wait < soon && wrong != nil; wait *= 2 {
			var waiting []<-chan acquisition
			for range 5 {
				waiting = append(waiting, lockInBackground(t.Context(), l, latchkey.Wait(wait)))
			}
			wrong = nil
			for _, each := range waiting {
				err := rig.Await(t, 2*soon, "the error", each).err
				require.ErrorContains(t, err, fmt.Sprintf("the wait of %v is over", wait))
				if !is(err) {
					wrong = err
				}
			}
		}
		require.NoError(t, wrong)
	}
	lost := regexp.MustCompile(`(?s)1 of 3 members acquired, 2 needed; member 1 "x": .*; member 2 "x": `)
	m.links[0].Cut()
	m.links[1].Cut()
	allAreTold(func(err error) bool {
		return errors.Is(err, latchkey.ErrUnavailable) && !errors.Is(err, latchkey.ErrNotAcquired) && lost.MatchString(err.Error())
	})
	m.links[0].Restore()
	m.links[1].Restore()
	mustUnlock(t, mustLock(t, l))
	m.takeAway(0, "x")
	m.takeAway(1, "x")
	allAreTold(func(err error) bool {
		return errors.Is(err, latchkey.ErrNotAcquired) && !errors.Is(err, latchkey.ErrUnavailable)
	})
}

// A majority is lost while a program passes its hold on. The program goes on when the servers are
// back, and there are never two inside.
func TestRedLine_survives_a_lost_majority(t *testing.T) {
	t.Parallel()
	m := newMasters(t, 3)
	options := latchkey.Options{Lease: 3 * time.Second, RetryBudget: time.Second} // a busy machine takes half a second for a pass
	programs := []*latchkey.MultiLock{m.lock(t, "x", options), m.lock(t, "x", options)}
	var s stays
	var passes atomic.Int32
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for _, l := range programs {
		for range 4 {
			all.Go(func() {
				for ctx.Err() == nil {
					hold, err := l.Lock(ctx)
					if err != nil {
						continue
					}
					leave := s.enter(hold)
					runtime.Gosched()
					leave()
					passes.Add(1)
					_ = hold.Unlock(context.Background())
				}
			})
		}
	}
	for round := range 4 {
		before := passes.Load()
		rig.Eventually(t, soon, "they pass", func() error {
			if passes.Load() < before+20 {
				return fmt.Errorf("%d passes", passes.Load()-before)
			}
			return nil
		})
		a, b := m.links[round%3], m.links[(round+1)%3]
		a.Silence()
		b.Cut()
		rest(300 * time.Millisecond)
		a.Heal()
		b.Restore()
	}
	stop()
	all.Wait()
	m.comesTo(t, "x", 0)
	t.Logf("%d passes", passes.Load())
	history.CheckStays(t, 1, s.all)
}

// While one server is silent, a program that contends for the lock goes on.
func TestRedLine_goes_on_without_a_minority(t *testing.T) {
	t.Parallel()
	m := newMasters(t, 3)
	l := m.lock(t, "x")
	mustUnlock(t, mustLock(t, l))
	acquire := locking(l)
	c := &contest{passes: 300, dump: dumpOf(t, m.servers, "x"), contenders: []contender{{name: "program", goroutines: 4,
		acquire: func(ctx context.Context) (taken, error) {
			had, err := acquire(ctx)
			release := had.release
			had.release = func(ctx context.Context) error {
				if err := release(ctx); !errors.Is(err, latchkey.ErrUnknownOutcome) {
					return err
				}
				return nil // from the silent member, which was held before
			}
			return had, err
		}}}}
	c.disturb, c.every = func(n int) {
		if n == 0 {
			m.links[1].Silence()
		}
	}, 10*time.Millisecond
	c.run(t)
	t.Log(c)
}

// The client of one member is closed while others are in line: a majority is left, and the next
// waiter gets it. When no majority is possible any more, all waiters get ErrClosed.
func TestRedLine_of_closed_clients(t *testing.T) {
	t.Parallel()
	p := newRedProgram(t, someMutex, longTurn)
	hold := p.hold(t)
	next, later := lockInLine(within(t, soon), t, p.lock), lockInLine(within(t, soon), t, p.lock)
	last := lockInLine(within(t, soon), t, p.lock)
	require.NoError(t, p.clients[0].Close(t.Context()))
	require.NoError(t, hold.Err())
	mustUnlock(t, hold)
	got := rig.Await(t, soon, "the next", next)
	require.NoError(t, got.err)
	require.NoError(t, p.clients[1].Close(t.Context()))
	rig.Await(t, soon, "the loss", got.hold.Lost())
	require.ErrorIs(t, rig.Await(t, soon, "a waiter", later).err, latchkey.ErrClosed)
	require.ErrorIs(t, rig.Await(t, soon, "another", last).err, latchkey.ErrClosed)
	p.comesTo(t, "x", 0)
}

// The waiters in line go on once a majority is released, whatever happens to the other servers.
func TestRedLine_does_not_wait_for_silent_servers(t *testing.T) {
	t.Parallel()
	m := newMasters(t, 3)
	l := m.unhurried(t, "x", latchkey.Options{RetryBudget: defaultLease})
	mustUnlock(t, mustLock(t, l))
	m.comesTo(t, "x", 0)
	hold := mustLock(t, l)
	rig.Eventually(t, soon, "all members", func() error { return complete(hold, 3) })
	waiting := lockInLine(within(t, soon), t, l, latchkey.MaxHold(time.Minute)) // so that it is not passed on
	m.links[0].Silence()
	released := make(chan error, 1)
	go func() { released <- hold.Unlock(t.Context()) }()
	next := rig.Await(t, soon, "the next hold", waiting)
	require.NoError(t, next.err)
	require.Empty(t, released)
	m.links[0].Heal()
	require.NoError(t, rig.Await(t, 2*soon, "the release", released))
	mustUnlock(t, next.hold)
}
