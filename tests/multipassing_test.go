package tests

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// The goroutines of a program that want the same MultiLock wait in one line.

// passesAsMember reports whether locks of a kind are passed on together with the MultiLock that they
// are members of.
func passesAsMember(k kind) bool { return passes(k) || k.name == spinKind.name }

// hotPair is a client with a MultiLock of two locks of one kind, and a tap on its commands.
type hotPair struct {
	client *latchkey.Client
	tap    *rig.Tap
	admin  *rig.Admin
	name   string
	locks  []latchkey.Locker
	lock   *latchkey.MultiLock
}

func newHotPair(t *testing.T, k kind, options latchkey.Options) hotPair {
	t.Helper()
	p := hotPair{tap: rig.NewTap(t, rig.Shared()), admin: rig.NewAdmin(t, rig.Shared()), name: rig.Name(t)}
	p.client = connectVia(t, rig.Shared(), p.tap.Addr(), options)
	p.locks = []latchkey.Locker{k.open(p.client, p.name+":a"), k.open(p.client, p.name+":b")}
	p.lock = latchkey.NewMultiLock(p.locks...)
	return p
}

// reversed is another value of the same lock, with the members in reverse order.
func (p hotPair) reversed() *latchkey.MultiLock {
	return latchkey.NewMultiLock(p.locks[1], p.locks[0])
}

// sent returns the commands that were sent for the members since the last Forget of the tap.
func (p hotPair) sent() (sent []rig.Command) {
	for _, command := range p.tap.Commands() {
		if slices.ContainsFunc(command.Args, func(arg string) bool { return strings.HasPrefix(arg, p.name+":") }) {
			sent = append(sent, command)
		}
	}
	return sent
}

// hold returns a hold that the servers granted while another goroutine was in line, and the channel
// with the result of that goroutine, which next starts.
func (p hotPair) hold(t *testing.T, next func() <-chan acquisition, options ...latchkey.LockOption) (acquisition, <-chan acquisition) {
	t.Helper()
	first, waiting := holdBeforeWaiter(t, p.lock, mustLock(t, p.lock), next, options...)
	p.tap.Forget()
	return first, waiting
}

// pass returns a hold that was passed on, and the hold that followed it.
func (p hotPair) pass(t *testing.T, to latchkey.Locker, during func(first *latchkey.Hold)) (first, next *latchkey.Hold) {
	t.Helper()
	return passOn(t, func() (acquisition, <-chan acquisition) {
		return p.hold(t, func() <-chan acquisition { return lockInLine(within(t, soon), t, to) })
	}, during, p.sent)
}

// A release passes all members to the first waiter in line, whichever value of the lock it waits for,
// and nothing is sent. The released hold is over, as after any other release.
func TestMultiPassing_sends_nothing(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		p := newHotPair(t, k, longTurn)
		next, members := passMembersOn(t, 2, func(during func(first *latchkey.Hold)) (first, next *latchkey.Hold) {
			return p.pass(t, p.reversed(), during)
		})
		for i, member := range next.Members() {
			assert.Equal(t, members[i].Name(), member.Name())
		}
		_, err := p.lock.TryLock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		mustUnlock(t, next)
		rig.Eventually(t, soon, "nothing is left", free(p.admin, p.name))
	}, passesAsMember)
}

// Every goroutine waits itself for a member of a kind that is not passed on, even behind a hold of its own program.
func TestMultiPassing_of_other_kinds(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		p := newHotPair(t, lockKind, longTurn)
		lock := latchkey.NewMultiLock(k.open(p.client, p.name+":0"), p.locks[0])
		first := mustLock(t, lock)
		waiting := lockInLine(within(t, soon), t, lock)
		if k.queued {
			awaitWaiter(t, p.admin, p.name+":0")
		}
		p.tap.Forget()
		mustUnlock(t, first)
		next := rig.Await(t, soon, "the next hold", waiting)
		require.NoError(t, next.err)
		require.NotEmpty(t, p.sent())
		mustUnlock(t, next.hold)
		rig.Eventually(t, soon, "nothing is left", free(p.admin, p.name))
	}, func(k kind) bool { return !passesAsMember(k) })
}

// The turn of a member begins when the last member is granted, however long that took, unless the
// member was passed on before.
func TestMultiPassing_turn_begins_with_the_last_member(t *testing.T) {
	t.Parallel()
	for what, passedOn := range map[string]bool{"granted": false, "passed on": true} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			p := newHotPair(t, lockKind, longTurn)
			rival := mustLock(t, connect(t, rig.Shared()).NewLock(p.name+":b"))
			single := mustLock(t, p.locks[0])
			if !passedOn {
				_ = single.Owner()
			}
			first := lockInBackground(within(t, soon), p.lock)
			rig.Eventually(t, soon, "it has tried both, and waits", func() error {
				if len(p.sent()) < 3 {
					return errors.New("not yet")
				}
				return nil
			})
			waiting := lockInLine(within(t, soon), t, p.lock)
			p.tap.Forget()
			mustUnlock(t, single)
			passedOn = len(p.tap.Executed(rig.Mentions(p.name+":a"))) == 0 // it usually was
			queued(t, p.admin, p.name+":b", 1)
			rest(latchkey.MaxTurn)
			p.tap.Forget()
			mustUnlock(t, rival)
			got := rig.Await(t, soon, "both", first)
			require.NoError(t, got.err)
			p.tap.Forget()
			mustUnlock(t, got.hold)
			next := rig.Await(t, soon, "the next hold", waiting)
			require.NoError(t, next.err)
			if passedOn {
				require.NotEmpty(t, p.sent())
			} else if time.Since(got.at) < latchkey.MaxTurn/2 {
				require.Empty(t, p.sent())
			}
			mustUnlock(t, next.hold)
		})
	}
}

// However many goroutines wait, they send nothing while their program has the lock, and get it in the
// order of arrival, whichever value of the lock they use.
func TestMultiPassing_is_in_order_and_silent(t *testing.T) {
	t.Parallel()
	p := newHotPair(t, lockKind, longTurn)
	hold, reversed := mustLock(t, p.lock), p.reversed()
	p.tap.Forget()
	var waiting []<-chan acquisition
	for i := range 50 {
		lock := p.lock
		if i%3 == 2 {
			lock = reversed
		}
		waiting = append(waiting, lockInLine(within(t, time.Minute), t, lock))
	}
	require.Empty(t, p.sent())
	servedInOrder(t, hold, waiting)
	rig.Eventually(t, soon, "nothing is left", free(p.admin, p.name))
}

// A MultiLock that the goroutines of a client contend for costs the server next to nothing, and all of
// them acquire it equally often.
func TestMultiPassing_of_a_hot_lock(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		require.NoError(t, rig.InTime(t, func(int) error { return contendInOneClient(t, k) }))
	}, passesAsMember)
}

// contendInOneClient returns an error if the contest was not fair, which may be so on a busy machine.
func contendInOneClient(t *testing.T, k kind) error {
	t.Helper()
	p := newHotPair(t, k, longTurn) // so that a turn has many passes on a busy machine too
	c := &contest{lasts: rig.Lasting(400 * time.Millisecond), passes: 200,
		contenders: []contender{{name: "client", goroutines: 8, acquire: lockingMember(p.lock)}}}
	c.dump = dumpOf(t, []*rig.Server{rig.Shared()}, p.name)
	p.tap.Forget()
	c.run(t)
	sent := len(p.sent())
	perSecond := float64(sent) / c.took.Seconds()
	t.Logf("%d commands, %.2f for an acquisition, %.0f/s; %v", sent, float64(sent)/float64(c.total.Load()), perSecond, c)
	assert.Less(t, sent, int(c.total.Load()), "a quarter of what holds cost that are not passed on")
	rig.Target(t, perSecond <= 2*2*2, "%.0f commands a second, a release and an attempt for each member and turn", perSecond)
	if jain := rig.Jain(c.tally.Counts()); jain <= 0.95 {
		return fmt.Errorf("Jain %.3f", jain)
	}
	return nil
}

// lockingMember is locking with the token of the first member.
func lockingMember(lock latchkey.Locker) acquire {
	return func(ctx context.Context) (taken, error) {
		hold, err := lock.Lock(ctx)
		if err != nil {
			return taken{}, err
		}
		return taken{hold.Unlock, hold.Members()[0].Token(), hold.ValidFor()}, nil
	}
}

// A hold is not passed on if the next waiter could notice that it is not the first owner of the hold,
// or if that waiter requests other terms.
func TestMultiPassing_of_what_is_not_clean(t *testing.T) {
	t.Parallel()
	for what, is := range map[string]struct {
		first, next []latchkey.LockOption
		during      func(t *testing.T, p hotPair, first *latchkey.Hold) (inner *latchkey.Hold)
	}{
		"an owner is known": {during: func(_ *testing.T, _ hotPair, first *latchkey.Hold) *latchkey.Hold {
			_ = first.Members()[1].Owner()
			return nil
		}},
		"a re-entry of a member": {during: func(t *testing.T, p hotPair, first *latchkey.Hold) *latchkey.Hold {
			t.Helper()
			inner, err := p.client.NewLock(p.name + ":b").TryLock(first.Context(t.Context()))
			require.NoError(t, err)
			return inner
		}},
		"a limit":             {first: []latchkey.LockOption{latchkey.MaxHold(time.Minute)}},
		"a limit is asked":    {next: []latchkey.LockOption{latchkey.MaxHold(time.Minute)}},
		"a lease":             {first: []latchkey.LockOption{latchkey.Lease(latchkey.DefaultLease)}},
		"the lease is asked":  {next: []latchkey.LockOption{latchkey.Lease(latchkey.DefaultLease)}},
		"both ask for leases": {first: []latchkey.LockOption{latchkey.Lease(time.Minute)}, next: []latchkey.LockOption{latchkey.Lease(time.Minute)}},
		"the lease is longer": {during: func(t *testing.T, _ hotPair, first *latchkey.Hold) *latchkey.Hold {
			t.Helper()
			require.NoError(t, first.Extend(t.Context(), time.Hour))
			return nil
		}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			p := newHotPair(t, lockKind, longTurn)
			first, waiting := p.hold(t, func() <-chan acquisition {
				return lockInLine(within(t, soon), t, p.lock, is.next...)
			}, is.first...)
			var inner *latchkey.Hold
			if is.during != nil {
				inner = is.during(t, p, first.hold)
			}
			p.tap.Forget()
			mustUnlock(t, first.hold)
			if inner != nil {
				require.Empty(t, waiting)
				mustUnlock(t, inner)
			}
			next := rig.Await(t, soon, "the next hold", waiting)
			require.NoError(t, next.err)
			require.NotEmpty(t, p.sent())
			if len(is.next) > 0 {
				require.LessOrEqual(t, next.hold.ValidFor(), time.Minute)
			}
			mustUnlock(t, next.hold)
		})
	}
}

// A call that re-enters members does not wait in line behind the hold of its own owner.
func TestMultiPassing_is_passed_by_who_enters_again(t *testing.T) {
	t.Parallel()
	p := newHotPair(t, lockKind, longTurn)
	hold := mustLock(t, p.lock)
	reenterAheadOfALine(t, p.lock, hold)
	rig.Eventually(t, soon, "nothing is left", free(p.admin, p.name))
}

// A waiter whose context ends while the hold is passed on either gets the hold or does not. The hold is
// never lost, and the waiter learns the outcome.
func TestMultiPassing_loses_no_hold(t *testing.T) {
	t.Parallel()
	p := newHotPair(t, lockKind, longTurn)
	losesNoHold(t, p.lock)
	rig.Eventually(t, soon, "nothing is left", free(p.admin, p.name))
}

// Overlapping groups and single locks of the same keys, in the same program and in another, each get
// their share, and nobody waits long.
func TestMultiPassing_leaves_others_their_share(t *testing.T) {
	name := rig.Name(t)
	a, b, c := name+":a", name+":b", name+":c"
	wanted := [][]string{{a, b}, {b, c}, {c, a}, {a}, {b}}
	contests := map[string]*contest{}
	for _, each := range wanted {
		contests[fmt.Sprint(each)] = &contest{lasts: rig.Lasting(time.Second), passes: 20}
	}
	for range 2 {
		client := connect(t, rig.Shared())
		for _, each := range wanted {
			var locks []latchkey.Locker
			for _, name := range each {
				locks = append(locks, client.NewLock(name))
			}
			one := contests[fmt.Sprint(each)]
			one.contenders = append(one.contenders, contender{name: fmt.Sprint(each), goroutines: 3, acquire: locking(latchkey.NewMultiLock(locks...))})
		}
	}
	for what, each := range contests {
		each.dump = dumpOf(t, []*rig.Server{rig.Shared()}, name)
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			each.run(t)
			t.Log(each)
		})
	}
}

// A client of another library that polls for a mutex finds it free at times, although the mutex is a
// member of a MultiLock that goroutines of a client contend for all the time.
func TestMultiPassing_leaves_pollers_a_moment(t *testing.T) {
	p := newHotPair(t, mutexKind, latchkey.Options{})
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	for range 8 {
		all.Go(func() {
			for ctx.Err() == nil {
				_ = p.lock.Do(ctx, func(context.Context) error { return nil })
			}
		})
	}
	raw, name := rig.Shared().Raw(t), p.name+":a"
	longest := time.Duration(0)
	for range rig.Sized(10) {
		asked := time.Now()
		rig.Eventually(t, soon, "a moment in which it is free", func() error {
			return raw.Do(t.Context(), raw.B().Set().Key(name).Value("poller").Nx().PxMilliseconds(5000).Build()).Error()
		})
		longest = max(longest, time.Since(asked))
		rest(time.Millisecond)
		require.NoError(t, raw.Do(t.Context(), raw.B().Del().Key(name).Build()).Error())
	}
	t.Logf("the longest wait: %v", longest)
}
