package tests

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// The goroutines of a program that want the same RedLock wait in one line.

// redProgram is a program that uses a RedLock, with taps on its commands.
type redProgram struct {
	*masters

	taps    []*rig.Tap
	clients []*latchkey.Client
	lock    *latchkey.RedLock
}

func newRedProgram(t *testing.T, open func(*latchkey.Client) anyLock, options latchkey.Options) redProgram {
	t.Helper()
	p := redProgram{masters: newMasters(t, 3)}
	for i, server := range p.servers {
		p.taps = append(p.taps, rig.NewTap(t, server))
		p.clients = append(p.clients, connectVia(t, server, p.taps[i].Addr(), options))
	}
	p.lock = latchkey.NewRedLock(latchkey.RedLockOptions{MemberTimeout: soon}, each(p.clients, open)...)
	mustUnlock(t, mustLock(t, p.lock)) // this makes it identify its servers
	p.comesTo(t, "x", 0)
	return p
}

func someMutex(c *latchkey.Client) anyLock { return c.NewMutex("x") }

func someLock(c *latchkey.Client) anyLock { return c.NewLock("x") }

// some returns a function that opens a lock of a kind on a client.
func some(k kind) func(*latchkey.Client) anyLock {
	return func(c *latchkey.Client) anyLock { return k.open(c, "x") }
}

// hold acquires on all three servers.
func (p redProgram) hold(t *testing.T, options ...latchkey.LockOption) *latchkey.Hold {
	t.Helper()
	hold := mustLock(t, p.lock, options...)
	rig.Eventually(t, soon, "all members", func() error { return complete(hold, 3) })
	return hold
}

func (p redProgram) forget() {
	for _, tap := range p.taps {
		tap.Forget()
	}
}

// sent returns the commands that were sent for the lock since the last forget.
func (p redProgram) sent() (sent []rig.Command) {
	for _, tap := range p.taps {
		sent = append(sent, slices.DeleteFunc(tap.Commands(), func(c rig.Command) bool { return !rig.Mentions("x")(c) })...)
	}
	return sent
}

// pass releases a hold that was granted while others were in line, and repeats that until the hold
// is passed on with nothing sent.
func (p redProgram) pass(t *testing.T, during func(first *latchkey.Hold)) (first, next *latchkey.Hold) {
	t.Helper()
	return passOn(t, func() (acquisition, <-chan acquisition) {
		next := func() <-chan acquisition { return lockInLine(within(t, soon), t, p.lock) }
		first, waiting := holdBeforeWaiter(t, p.lock, p.hold(t), next)
		rig.Eventually(t, soon, "all members", func() error { return complete(first.hold, 3) })
		p.forget()
		return first, waiting
	}, during, p.sent)
}

// A release passes the hold to the first in line, and nothing is sent. The released hold is over,
// as after any other release.
func TestRedLine_passes_the_hold_on(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		p := newRedProgram(t, some(k), longTurn)
		next, _ := passMembersOn(t, 3, func(during func(first *latchkey.Hold)) (first, next *latchkey.Hold) { return p.pass(t, during) })
		assert.Greater(t, next.ValidFor(), latchkey.DefaultLease/2)
		_, err := p.lock.TryLock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		mustUnlock(t, next)
		p.comesTo(t, "x", 0)
	}, passesAsMember)
}

// However many goroutines wait, only the first of them sends commands, and none does while its own
// program holds the lock. They get the lock in the order of arrival, even through RedLocks that
// list the same members in another order.
func TestRedLine_is_in_order_and_silent(t *testing.T) {
	t.Parallel()
	p := newRedProgram(t, someMutex, longTurn)
	members := each(p.clients, someMutex)
	slices.Reverse(members)
	reversed := latchkey.NewRedLock(latchkey.RedLockOptions{}, members...)
	mustUnlock(t, mustLock(t, reversed))
	hold := p.hold(t)
	p.forget()
	var waiting []<-chan acquisition
	for i := range 30 {
		lock := p.lock
		if i%10 == 9 {
			lock = reversed
		}
		waiting = append(waiting, lockInLine(within(t, time.Minute), t, lock))
	}
	rest(300 * time.Millisecond) // each of them would have polled
	require.Empty(t, p.sent())
	servedInOrder(t, hold, waiting)
	p.comesTo(t, "x", 0)
}

// A RedLock that the goroutines of a program contend for costs the servers next to nothing, and all
// of them acquire it equally often.
func TestRedLine_of_a_hot_lock(t *testing.T) {
	p := newRedProgram(t, someMutex, latchkey.Options{})
	require.NoError(t, rig.InTime(t, func(int) error { // otherwise a turn may be over after a few passes
		c := &contest{lasts: time.Second, passes: 1000, contenders: []contender{{name: "program", goroutines: 8, acquire: locking(p.lock)}}}
		c.dump = dumpOf(t, p.servers, "x")
		p.forget()
		c.run(t)
		sent := len(p.sent())
		t.Logf("%d commands for %v", sent, c)
		assert.Greater(t, rig.Jain(c.tally.Counts()), 0.95)
		perSecond := float64(sent) / float64(len(p.taps)) / c.took.Seconds()
		rig.Target(t, perSecond <= 150, "%.0f commands a second to a server", perSecond)
		if sent >= int(c.total.Load()) {
			return fmt.Errorf("%d commands: holds that are not passed on cost six times as many", sent)
		}
		return nil
	}))
}

// Programs that share a RedLock leave each other as much time as they take.
func TestRedLine_lets_other_programs_go(t *testing.T) {
	t.Parallel()
	p := newRedProgram(t, someMutex, latchkey.Options{})
	other := p.unhurried(t, "x")
	mustUnlock(t, mustLock(t, other))
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	for range 4 {
		all.Go(func() {
			for ctx.Err() == nil {
				_ = p.lock.Do(ctx, func(context.Context) error { return nil })
			}
		})
	}
	longest := time.Duration(0)
	for range 5 {
		asked := time.Now()
		hold := mustLock(t, other)
		longest = max(longest, time.Since(asked))
		mustUnlock(t, hold)
	}
	t.Logf("the longest wait: %v", longest)
}

// A hold is not passed on if the next waiter could notice that it is not the first owner of the
// hold, or would get less time than it requested.
func TestRedLine_of_what_is_not_clean(t *testing.T) {
	t.Parallel()
	p := newRedProgram(t, someLock, longTurn)
	for what, is := range map[string]struct {
		first, next []latchkey.LockOption
		during      func(t *testing.T, p redProgram, first *latchkey.Hold)
	}{
		"an owner is known": {during: func(_ *testing.T, _ redProgram, first *latchkey.Hold) { _ = first.Members()[1].Owner() }},
		"a re-entry of a member": {during: func(t *testing.T, p redProgram, first *latchkey.Hold) {
			t.Helper()
			inner, err := p.clients[0].NewLock("x").TryLock(first.Context(t.Context()))
			require.NoError(t, err)
			go func() {
				rig.Await(t, soon, "the end of the first hold", first.Context(t.Context()).Done())
				_ = inner.Unlock(context.Background())
			}()
		}},
		"a limit":          {first: []latchkey.LockOption{latchkey.MaxHold(time.Minute)}},
		"a limit is asked": {next: []latchkey.LockOption{latchkey.MaxHold(time.Minute)}},
		"a lease":          {first: []latchkey.LockOption{latchkey.Lease(time.Minute)}},
		"a lease is asked": {next: []latchkey.LockOption{latchkey.Lease(time.Minute)}},
		"the lease is longer": {during: func(t *testing.T, _ redProgram, first *latchkey.Hold) {
			t.Helper()
			require.NoError(t, first.Extend(t.Context(), time.Hour))
		}},
	} {
		first := p.hold(t, is.first...)
		waiting := lockInLine(within(t, soon), t, p.lock, is.next...)
		if is.during != nil {
			is.during(t, p, first)
		}
		p.forget()
		mustUnlock(t, first)
		next := rig.Await(t, soon, what, waiting)
		require.NoError(t, next.err, what)
		require.NotEmpty(t, p.sent(), what)
		mustUnlock(t, next.hold)
		p.comesTo(t, "x", 0)
	}
}

// A call that re-enters members does not wait in line behind the hold of its own owner.
func TestRedLine_is_passed_by_who_enters_again(t *testing.T) {
	t.Parallel()
	p := newRedProgram(t, someLock, longTurn)
	hold := p.hold(t)
	reenterAheadOfALine(t, p.lock, hold)
	p.comesTo(t, "x", 0)
}

// A waiter whose context ends while the hold is passed on either gets the hold or does not. The
// hold is never lost, and the waiter learns the outcome.
func TestRedLine_loses_no_hold(t *testing.T) {
	t.Parallel()
	p := newRedProgram(t, someMutex, longTurn)
	losesNoHold(t, p.lock)
	p.comesTo(t, "x", 0)
}

// A member whose reply comes after the hold was passed on joins the next hold.
func TestRedLine_late_members_join_the_next_hold(t *testing.T) {
	t.Parallel()
	p := newRedProgram(t, someMutex, latchkey.Options{Turn: latchkey.MaxTurn, Lease: time.Hour}) // missing members are asked again at a third of it
	for {
		reply := p.taps[2].HoldReply(rig.Mentions("x"))
		first := mustLock(t, p.lock)
		waiting := lockInLine(within(t, soon), t, p.lock)
		rig.Await(t, soon, "the late answer", reply.Arrived)
		mustUnlock(t, first)
		got := rig.Await(t, soon, "the next hold", waiting)
		reply.Release()
		require.NoError(t, got.err)
		if first.ValidFor() == 0 && complete(got.hold, 0) != nil {
			rig.Eventually(t, soon, "the late member", func() error { return complete(got.hold, 3) })
			mustUnlock(t, got.hold)
			p.comesTo(t, "x", 0)
			return
		}
	}
}

// A hold that was passed on tries to acquire the members that it lacks.
func TestRedLine_next_hold_mends_itself(t *testing.T) {
	t.Parallel()
	p := newRedProgram(t, someMutex, latchkey.Options{Turn: latchkey.MaxTurn, Lease: 5 * time.Second})
	p.takeAway(0, "x")
	var next *latchkey.Hold
	for passed := false; !passed; {
		first := mustLock(t, p.lock)
		waiting := lockInLine(within(t, soon), t, p.lock)
		rig.Eventually(t, soon, "the other members", func() error { return complete(first, 2) })
		p.forget()
		mustUnlock(t, first)
		got := rig.Await(t, soon, "the next hold", waiting)
		require.NoError(t, got.err)
		if next, passed = got.hold, len(p.sent()) == 0; !passed {
			mustUnlock(t, next)
		}
	}
	p.admins[0].Do("DEL", "x")
	rig.Eventually(t, soon, "the missing member", func() error { return complete(next, 3) })
	mustUnlock(t, next)
	p.comesTo(t, "x", 0)
}
