package tests

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// Waiters of a fair lock behind others that are dead.

// fairWaiterProcess queues many waiters for a fair lock until it is killed, and prints which of
// them have tried to acquire the lock. Its arguments: name, server, number of waiters, stale
// timeout.
var fairWaiterProcess = rig.Child("fair waiters", func(ctx context.Context, args []string) error {
	waiters, _ := strconv.Atoi(args[2])
	stale, err := time.ParseDuration(args[3])
	if err != nil {
		return err
	}
	client, _, err := dialTicket(args[1], "", latchkey.Options{
		Tuning: latchkey.Tuning{StaleWaiterTimeout: stale, PollCeiling: 20 * time.Second},
		Observer: func(e latchkey.Event) {
			if e.Type == latchkey.EventAttempt {
				fmt.Printf("asked %v.\n", e.Owner)
			}
		},
	})
	if err != nil {
		return err
	}
	for range waiters {
		go func() {
			if _, err := client.NewFairLock(args[0]).Lock(ctx); err == nil {
				fmt.Println("held")
			}
		}()
	}
	select {} // until it is killed
})

// A process dies with all its waiters, and a live waiter is behind them: it waits for one stale
// period in all. The release may come before or after the death, and the head may already be dead
// when its message arrives.
func TestDeadWaitersDelayByOnePeriod(t *testing.T) {
	t.Parallel()
	const stale = 2 * time.Second // so that one period for each of the dead is more than soon
	type death func(t *testing.T, child *rig.ChildProcess, release func()) time.Time
	deaths := map[string]death{
		"before the release": func(_ *testing.T, child *rig.ChildProcess, release func()) time.Time {
			child.Kill()
			died := time.Now()
			release()
			return died
		},
		"just after the head was told": func(t *testing.T, child *rig.ChildProcess, release func()) time.Time {
			child.Stop(t) // the message reaches a process that is stopped
			release()
			child.Kill()
			return time.Now()
		},
	}
	for _, dead := range slices.Compact([]int{20, rig.Sized(200)}) {
		for when, dies := range deaths {
			t.Run(fmt.Sprintf("%d/%s", dead, when), func(t *testing.T) {
				t.Parallel()
				server, name := rig.Shared(), rig.Name(t)
				admin, lock := rig.NewAdmin(t, server), connect(t, server, latchkey.Options{Tuning: latchkey.Tuning{StaleWaiterTimeout: stale}}).NewFairLock(name)
				holder := mustLock(t, lock)
				child := fairWaiterProcess.Start(t, name, server.Ticket(), strconv.Itoa(dead), stale.String())
				queueLength(t, admin, name, int64(dead))
				waiter := lockInBackground(within(t, time.Minute), lock)
				queueLength(t, admin, name, int64(dead)+1)
				// The head tries again when it has subscribed, and waiters poll now and then. An
				// attempt that the server executes only after the death of the head would be
				// granted the lock, for its lease.
				head := admin.Text("LINDEX", queueOf(name), "0")
				for range 2 {
					child.Line(t, soon, "asked "+head+".")
				}

				died := dies(t, child, func() {
					admin.Executed()
					mustUnlock(t, holder)
				})
				next := rig.Await(t, soon, "the one behind the dead", waiter)
				require.NoError(t, next.err)
				t.Logf("held %v after the death of %d before it", next.at.Sub(died).Round(time.Millisecond), dead)
				mustUnlock(t, next.hold)
				assert.Empty(t, admin.Dump("{"+name+"}"), "nothing is left")
			})
		}
	}
}

// A lock is free, and the first in its queue, apparently a Redisson waiter, never comes. The
// waiters behind it wait for its deadline and hardly poll.
func TestNobodyHotLoopsBehindADeadHead(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Stats)
	assert.NoError(t, rig.InTime(t, func(int) error { return hotLoops(t) }))
}

// hotLoops returns an error if the waiters behind a head that is dead for some seconds send many
// commands, or if they could not be measured before that time was over.
func hotLoops(t *testing.T) error {
	const clients, each = 2, 25
	server, name := rig.Fresh(t), rig.Name(t)
	admin := rig.NewAdmin(t, server)
	clock, _ := strconv.ParseInt(admin.Strings("TIME")[0], 10, 64)
	dead := "99999999-9999-4999-8999-999999999999:1"
	admin.Do("RPUSH", queueOf(name), dead)
	admin.Do("ZADD", deadlinesOf(name), strconv.FormatInt((clock+5)*1000, 10), dead)
	acquired := make(chan acquisition, clients*each)
	for range clients {
		client := connect(t, server)
		for range each {
			waiter := lockInBackground(within(t, time.Minute), client.NewFairLock(name))
			go func() { acquired <- <-waiter }()
		}
	}
	queueLength(t, admin, name, clients*each+1)
	rest(time.Second) // subscriptions settle
	before, start := admin.CommandStats(), time.Now()
	rest(2 * time.Second)
	var sent int64
	for command, n := range admin.Since(before) {
		if command == "evalsha" || command == "eval" || command == "subscribe" || command == "publish" || command == "ping" {
			sent += n
		}
	}
	rate := float64(sent) / time.Since(start).Seconds()
	t.Logf("%.1f commands a second for %d waiters, %.3f for each", rate, clients*each, rate/(clients*each))
	measured, _ := strconv.ParseInt(admin.Strings("TIME")[0], 10, 64)
	for range clients * each {
		next := rig.Await(t, time.Minute, "the next", acquired)
		require.NoError(t, next.err)
		mustUnlock(t, next.hold)
	}
	switch {
	case measured >= clock+5:
		return errors.New("the head was dead before the commands were counted")
	case rate > clients*each/2: // which is what we measured, with room
		return fmt.Errorf("%.1f commands a second", rate)
	}
	return nil
}
