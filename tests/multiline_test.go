package tests

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// How goroutines of one program wait for the same MultiLock.

// hotPair is a client with a MultiLock of two locks of one kind.
type hotPair struct {
	client *latchkey.Client
	admin  *rig.Admin
	name   string
	locks  []latchkey.Locker
	lock   *latchkey.MultiLock
}

func newHotPair(t *testing.T, k kind, options latchkey.Options) hotPair {
	t.Helper()
	p := hotPair{client: connect(t, rig.Shared(), options), admin: rig.NewAdmin(t, rig.Shared()), name: rig.Name(t)}
	p.locks = []latchkey.Locker{k.open(p.client, p.name+":a"), k.open(p.client, p.name+":b")}
	p.lock = latchkey.NewMultiLock(p.locks...)
	return p
}

// reversed is another value of the same lock, with the members in reverse order.
func (p hotPair) reversed() *latchkey.MultiLock {
	return latchkey.NewMultiLock(p.locks[1], p.locks[0])
}

// The goroutines get the lock in the order of arrival, whichever value of the lock they use.
func TestMultiLine_is_in_order(t *testing.T) {
	t.Parallel()
	p := newHotPair(t, lockKind, longTurn)
	hold, reversed := mustLock(t, p.lock), p.reversed()
	var waiting []<-chan acquisition
	for i := range 50 {
		lock := p.lock
		if i%3 == 2 {
			lock = reversed
		}
		waiting = append(waiting, lockInBackground(within(t, time.Minute), lock))
		awaitWaiting(t, p.client, latchkey.KindLock, i+1)
	}
	servedInOrder(t, hold, waiting)
	rig.Eventually(t, soon, "nothing is left", free(p.admin, p.name))
}

// A call that re-enters members does not wait in line behind the hold of its own owner.
func TestMultiLine_is_passed_by_who_enters_again(t *testing.T) {
	t.Parallel()
	p := newHotPair(t, lockKind, longTurn)
	hold := mustLock(t, p.lock)
	reenterAheadOfALine(t, p.lock, hold)
	rig.Eventually(t, soon, "nothing is left", free(p.admin, p.name))
}

// A waiter whose context ends while the lock becomes free either gets it or does not. The lock is
// never lost, and the waiter learns the outcome.
func TestMultiLine_loses_no_hold(t *testing.T) {
	t.Parallel()
	p := newHotPair(t, lockKind, longTurn)
	losesNoHold(t, p.lock)
	rig.Eventually(t, soon, "nothing is left", free(p.admin, p.name))
}

// Overlapping groups and single locks of the same keys, in the same program and in another, each
// get their share, and nobody waits long.
func TestMultiLine_leaves_others_their_share(t *testing.T) {
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

// A client of another library that polls for a mutex finds it free at times, although the mutex is
// a member of a MultiLock that goroutines of a client contend for all the time.
func TestMultiLine_leaves_pollers_a_moment(t *testing.T) {
	p := newHotPair(t, mutexKind, latchkey.Options{})
	keepBusy(t, 8, p.lock)
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

// A call whose time is over gets an error that names the member for which it waits: the first one
// that another call has, of any program.
func TestMultiLine_names_the_member(t *testing.T) {
	t.Parallel()
	p := newHotPair(t, lockKind, latchkey.Options{})
	rival := mustLock(t, connect(t, rig.Shared()).NewLock(p.name+":b"))
	front := lockInBackground(within(t, 5*soon), p.lock)
	awaitWaiter(t, p.admin, p.name+":b")
	told := func() {
		t.Helper()
		wait, all := refusedFrom(t, 50*time.Millisecond, func(wait time.Duration) (all error) {
			var waiting []<-chan acquisition
			for range 3 {
				waiting = append(waiting, lockInBackground(t.Context(), p.lock, latchkey.Wait(wait)))
			}
			for _, each := range waiting {
				all = errors.Join(all, rig.Await(t, 3*soon, "the error", each).err)
			}
			return all
		})
		require.NotErrorIs(t, all, context.DeadlineExceeded)
		each := `latchkey: lock "multi\(.*\)": lock "` + regexp.QuoteMeta(p.name+":a") + `": not acquired.*; the wait of ` + wait.String() + ` is over`
		matches(t, strings.Join([]string{each, each, each}, "\n"), all)
	}
	told()
	mustUnlock(t, rival)
	got := rig.Await(t, soon, "the front", front)
	require.NoError(t, got.err)
	told()
	mustUnlock(t, got.hold)
}

// While a call waits for a member, another member becomes impossible to acquire. The call learns
// that when it gets there.
func TestMultiLine_of_what_cannot_be_had(t *testing.T) {
	t.Parallel()
	p := newHotPair(t, lockKind, latchkey.Options{})
	rival := mustLock(t, connect(t, rig.Shared()).NewLock(p.name+":a"))
	waiting := lockInBackground(within(t, 5*soon), p.lock)
	queued(t, p.admin, p.name+":a", 1)
	p.admin.Do("RPUSH", p.name+":b", "1")
	mustUnlock(t, rival)
	require.ErrorIs(t, rig.Await(t, soon, "the call", waiting).err, latchkey.ErrWrongKind)
	rig.Eventually(t, soon, "nothing is left", free(p.admin, p.name+":a"))
}

// A client is closed while its goroutines wait in line.
func TestMultiLine_of_a_closed_client(t *testing.T) {
	t.Parallel()
	p := newHotPair(t, lockKind, latchkey.Options{})
	rival := mustLock(t, connect(t, rig.Shared()).NewLock(p.name+":a"))
	var waiting []<-chan acquisition
	for i := range 3 {
		waiting = append(waiting, lockInBackground(within(t, soon), p.lock))
		awaitWaiting(t, p.client, latchkey.KindLock, i+1)
	}
	require.NoError(t, p.client.Close(t.Context()))
	for _, each := range waiting {
		require.ErrorIs(t, rig.Await(t, soon, "the error", each).err, latchkey.ErrClosed)
	}
	mustUnlock(t, rival)
	rig.Eventually(t, soon, "nothing is left", free(p.admin, p.name))
}

// Goroutines of two clients contend for the same two locks and name them in opposite orders. All of
// them acquire equally often, and nobody is stranded. LATCHKEY_TEST_CONTENTION sets the minimum
// number of acquisitions.
func TestMultiLock_contended_in_both_orders(t *testing.T) {
	require.NoError(t, rig.InTime(t, func(int) error { return contendInBothOrders(t, rig.Name(t)) }))
}

// contendInBothOrders returns an error if the contest was not fair, which may be so on a busy
// machine.
func contendInBothOrders(t *testing.T, name string) error {
	t.Helper()
	a, b := name+":a", name+":b"
	c := &contest{lasts: rig.Lasting(time.Second), passes: max(contendedPasses(t), 200)}
	var taps []*rig.Tap
	for _, order := range [][2]string{{a, b}, {b, a}} {
		tap := rig.NewTap(t, rig.Shared())
		client := connectVia(t, rig.Shared(), tap.Addr())
		lock := latchkey.NewMultiLock(client.NewLock(order[0]), client.NewLock(order[1]))
		c.contenders = append(c.contenders, contender{name: order[0], goroutines: 4, acquire: locking(lock)})
		taps = append(taps, tap)
	}
	c.dump = dumpOf(t, []*rig.Server{rig.Shared()}, name)
	c.run(t)
	sent := 0
	for _, tap := range taps {
		for _, command := range tap.Commands() {
			if rig.Mentions(a)(command) || rig.Mentions(b)(command) {
				sent++
			}
		}
	}
	perPass := float64(sent) / float64(c.total.Load())
	t.Logf("%.2f commands for an acquisition; %v", perPass, c)
	if jain := rig.Jain(c.tally.Counts()); jain <= 0.9 {
		return fmt.Errorf("Jain %.3f", jain)
	}
	return nil
}

// A MultiLock gives up its wait for its last member at about the moment at which that member is
// granted to it. The next waiter gets that member at once, and none of the other members stays
// held.
func TestMultiLock_gives_back_what_is_granted_late(t *testing.T) {
	t.Parallel()
	name, admin := rig.Name(t), rig.NewAdmin(t, rig.Shared())
	options := latchkey.Options{Lease: 2 * time.Minute, Tuning: latchkey.Tuning{StaleWaiterTimeout: time.Minute}} // a grant ends long after soon
	holder, next := connect(t, rig.Shared(), options).NewLock(name+":b"), connect(t, rig.Shared(), options).NewLock(name+":b")
	client := connect(t, rig.Shared(), options)
	both := latchkey.NewMultiLock(client.NewLock(name+":a"), client.NewLock(name+":b"))
	had := 0
	tries := max(rig.Sized(20), 5)
	for range tries {
		hold := mustLock(t, holder)
		ctx, cancel := context.WithCancel(t.Context())
		waiting := lockInBackground(ctx, both)
		queued(t, admin, name+":b", 1)
		behind := lockInBackground(within(t, soon), next)
		queued(t, admin, name+":b", 2)
		go func() {
			rest(rand.N(time.Millisecond))
			cancel()
		}()
		mustUnlock(t, hold)
		if got := rig.Await(t, soon, "the group", waiting); got.err == nil {
			had++
			mustUnlock(t, got.hold)
		} else {
			require.ErrorIs(t, got.err, context.Canceled)
		}
		got := rig.Await(t, soon, "who stands behind it, before a grant would end", behind)
		require.NoError(t, got.err)
		mustUnlock(t, got.hold)
		rig.Eventually(t, soon, "nothing is left", free(admin, name+":a"))
	}
	t.Logf("%d of %d had both", had, tries)
}
