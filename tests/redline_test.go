package tests

import (
	"fmt"
	"slices"
	"testing"
	"time"

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
	lock    *latchkey.MultiLock
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

// hold acquires on all three servers.
func (p redProgram) hold(t *testing.T) *latchkey.Hold {
	t.Helper()
	hold := mustLock(t, p.lock)
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

// All goroutines of a program that contend for a RedLock acquire it equally often.
func TestRedLine_of_a_hot_lock(t *testing.T) {
	p := newRedProgram(t, someMutex, latchkey.Options{})
	require.NoError(t, rig.InTime(t, func(int) error {
		c := &contest{lasts: time.Second, passes: 100, contenders: []contender{{name: "program", goroutines: 8, acquire: locking(p.lock)}}}
		c.dump = dumpOf(t, p.servers, "x")
		p.forget()
		c.run(t)
		sent := len(p.sent())
		t.Logf("%d commands for %v", sent, c)
		if jain := rig.Jain(c.tally.Counts()); jain <= 0.95 {
			return fmt.Errorf("Jain %.3f", jain)
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
	keepBusy(t, 4, p.lock)
	longest := time.Duration(0)
	for range 5 {
		asked := time.Now()
		hold := mustLock(t, other)
		longest = max(longest, time.Since(asked))
		mustUnlock(t, hold)
	}
	t.Logf("the longest wait: %v", longest)
}

// A call that re-enters members does not wait in line behind the hold of its own owner.
func TestRedLine_is_passed_by_who_enters_again(t *testing.T) {
	t.Parallel()
	p := newRedProgram(t, someLock, longTurn)
	hold := p.hold(t)
	reenterAheadOfALine(t, p.lock, hold)
	p.comesTo(t, "x", 0)
}

// A waiter whose context ends while the lock becomes free either gets it or does not. The
// lock is never lost, and the waiter learns the outcome.
func TestRedLine_loses_no_hold(t *testing.T) {
	t.Parallel()
	p := newRedProgram(t, someMutex, longTurn)
	losesNoHold(t, p.lock)
	p.comesTo(t, "x", 0)
}
