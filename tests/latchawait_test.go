package tests

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// Waiting for a latch.

// The message of the last count wakes all awaiters.
func TestLatchOpens(t *testing.T) {
	server := rig.Shared()
	latch := newLatch(t, connect(t, server), 2)
	waiting := connect(t, server, patient).NewCountDownLatch(latch.Name())
	var all []<-chan error
	for range 20 {
		all = append(all, awaitInBackground(within(t, time.Minute), waiting))
	}
	awaitWaiter(t, rig.NewAdmin(t, server), latch.Name())
	countDown(t, latch, 1)
	for _, each := range all {
		assert.Empty(t, each)
	}
	countDown(t, latch, 0)
	for _, each := range all {
		require.NoError(t, rig.Await(t, soon, "an awaiter", each))
	}
}

// The last count falls between the query and the confirmation of the subscription. All awaiters
// query again after the confirmation.
func TestLatchOpensBeforeTheSubscriptionIsConfirmed(t *testing.T) {
	server := rig.Shared()
	tap := rig.NewTap(t, server)
	latch := newLatch(t, connect(t, server), 1)
	held := tap.HoldCommand(rig.Both(rig.Subscribing, rig.Mentions(latchChannelOf(latch.Name()))))
	waiting := connectVia(t, server, tap.Addr(), patient).NewCountDownLatch(latch.Name())
	var all []<-chan error
	for range 100 {
		all = append(all, awaitInBackground(within(t, time.Minute), waiting))
	}
	rig.Await(t, soon, "the subscription", held.Arrived)
	countDown(t, latch, 0) // nobody receives its message
	held.Release()
	for _, each := range all {
		require.NoError(t, rig.Await(t, soon, "an awaiter looks again", each))
	}
}

// latchAwaiter is a process with many awaiters. Its arguments: name, the server's ticket, the
// address to use, number of awaiters, poll ceiling.
var latchAwaiter = rig.Child("latch awaiter", func(ctx context.Context, args []string) error {
	n, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	poll, err := time.ParseDuration(args[4])
	if err != nil {
		return err
	}
	client, closeAll, err := dialTicket(args[1], args[2], latchkey.Options{Lease: 2 * time.Minute, Tuning: latchkey.Tuning{PollCeiling: poll}})
	if err != nil {
		return err
	}
	latch := client.NewCountDownLatch(args[0])
	var awaiting sync.WaitGroup
	results := make(chan error, n)
	for range n {
		awaiting.Go(func() { results <- latch.Await(ctx) })
	}
	fmt.Println("awaiting")
	awaiting.Wait()
	fmt.Println("released")
	for range n {
		err = errors.Join(err, <-results)
	}
	return errors.Join(err, closeAll(context.Background()))
})

// One count releases hundreds of awaiters in four processes: at once with messages, and at the next
// poll without any.
func TestLatchReleasesManyProcesses(t *testing.T) {
	t.Parallel()
	const processes = 4
	each := rig.Sized(100)
	for what, poll := range map[string]time.Duration{
		"by message":           time.Minute,
		"all messages dropped": defaultPollCeiling,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			server := rig.Shared()
			admin, tap := rig.NewAdmin(t, server), rig.NewTap(t, server)
			tap.DropMessages(what != "by message")
			latch := newLatch(t, connect(t, server), 1)
			var children []*rig.ChildProcess
			for range processes {
				children = append(children,
					latchAwaiter.Start(t, latch.Name(), server.Ticket(), tap.Addr(), strconv.Itoa(each), poll.String()))
			}
			for _, child := range children {
				child.Line(t, soon, "awaiting")
			}
			looks := rig.Both(rig.Named("EVALSHA"), rig.Mentions(latch.Name()))
			rig.Eventually(t, time.Minute, "all of them have looked, and every process listens", func() error {
				looked := 0
				for _, c := range tap.Commands() {
					if looks(c) {
						looked++
					}
				}
				if n := admin.Subscribers(latchChannelOf(latch.Name())); looked < processes*each || n < processes {
					return fmt.Errorf("%d looks, %d subscriptions", looked, n)
				}
				return nil
			})
			countDown(t, latch, 0)
			for _, child := range children {
				child.Line(t, soon, "released")
				child.Wait(t, soon)
			}
			if what != "by message" {
				assert.Positive(t, tap.DroppedMessages(), "the test dropped nothing")
			}
		})
	}
}

// awaitersQueried waits until n awaiters of a latch have learned what they await. Only their first
// query does not name a round.
func awaitersQueried(t *testing.T, tap *rig.Tap, name string, n int) {
	t.Helper()
	first := func(c rig.Command) bool {
		return rig.Mentions(name)(c) && slices.Equal(c.Args[len(c.Args)-2:], []string{"", ""})
	}
	rig.Eventually(t, soon, "all have looked", func() error {
		looks := len(tap.Executed(first))
		if looks < n {
			return fmt.Errorf("%d of %d looks", looks, n)
		}
		return nil
	})
}

// Delete frees all awaiters, those of this library with an error.
func TestLatchDeletedWhileAwaited(t *testing.T) {
	server := rig.Shared()
	tap := rig.NewTap(t, server)
	latch := newLatch(t, connect(t, server), 2)
	waiting := connectVia(t, server, tap.Addr(), patient).NewCountDownLatch(latch.Name())
	var strict, lenient []<-chan error
	for range 3 {
		strict = append(strict, awaitInBackground(within(t, time.Minute), waiting))
		lenient = append(lenient, awaitInBackground(within(t, time.Minute), waiting, latchkey.UnsetIsOpen()))
	}
	awaitersQueried(t, tap, latch.Name(), len(strict)+len(lenient))
	_, err := latch.Delete(t.Context())
	require.NoError(t, err)
	for i := range strict {
		assert.ErrorIs(t, rig.Await(t, soon, "an awaiter", strict[i]), latchkey.ErrGone)
		assert.NoError(t, rig.Await(t, soon, "a lenient awaiter", lenient[i]))
	}
}

// If the server is emptied, awaiters end with an error.
func TestLatchLostByTheServer(t *testing.T) {
	rig.Need(t, rig.Private)
	server := rig.Fresh(t)
	latch := newLatch(t, connect(t, server, polling), 2)
	waiting := awaitInBackground(within(t, time.Minute), latch)
	awaitWaiter(t, rig.NewAdmin(t, server), latch.Name())
	rig.NewAdmin(t, server).Do("FLUSHALL")
	assert.ErrorIs(t, rig.Await(t, soon, "the awaiter", waiting), latchkey.ErrGone)
}

// A caller that waits until somebody sets the count awaits the first round that begins then.
func TestLatchAwaitSet(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	tap := rig.NewTap(t, server)
	latch := connect(t, server).NewCountDownLatch(name)
	waiting := connectVia(t, server, tap.Addr(), patient).NewCountDownLatch(name)
	err := refused(t, func(wait latchkey.WaitOption) error {
		return waiting.Await(t.Context(), latchkey.AwaitSet(), wait)
	})
	assert.ErrorIs(t, err, latchkey.ErrNotSet, "that is why")

	var all []<-chan error
	for range 5 {
		all = append(all, awaitInBackground(within(t, time.Minute), waiting, latchkey.AwaitSet()))
	}
	awaitWaiter(t, rig.NewAdmin(t, server), name)
	setLatch(t, latch, 2)
	countDown(t, latch, 1)
	quiet(t, tap)
	for _, each := range all {
		require.Empty(t, each, "it is closed")
	}
	countDown(t, latch, 0)
	for _, each := range all {
		assert.NoError(t, rig.Await(t, soon, "an awaiter", each))
	}

	_, err = latch.Delete(t.Context())
	require.NoError(t, err)
	opened := awaitInBackground(within(t, time.Minute), waiting, latchkey.AwaitSet())
	quiet(t, tap)
	held := tap.HoldCommand(rig.Mentions(name))
	setLatch(t, latch, 1)
	rig.Await(t, soon, "it is woken by the set", held.Arrived)
	countDown(t, latch, 0)
	setLatch(t, latch, 1) // before it has queried
	held.Release()
	assert.NoError(t, rig.Await(t, soon, "the awaiter of the first round", opened))
}

// Close ends all awaiters and leaves no goroutine.
func TestLatchClose(t *testing.T) {
	server := rig.Fresh(t)
	admin := rig.NewAdmin(t, server)
	before := goleak.IgnoreCurrent()
	client, closeAll, err := dial(server, server.Addr(), latchkey.Options{})
	require.NoError(t, err)
	latch := newLatch(t, client, 1)
	var all []<-chan error
	for range 50 {
		all = append(all, awaitInBackground(context.Background(), latch))
	}
	awaitWaiter(t, admin, latch.Name())
	require.NoError(t, closeAll(within(t, soon)))
	for _, each := range all {
		err := rig.Await(t, soon, "an awaiter", each)
		assert.ErrorIs(t, err, latchkey.ErrClosed)
		assert.NotErrorIs(t, err, latchkey.ErrNotAcquired)
		assert.NotErrorIs(t, err, latchkey.ErrUnavailable)
	}
	_, err = latch.CountDown(t.Context())
	assert.ErrorIs(t, err, latchkey.ErrClosed)
	assert.ErrorIs(t, latch.Await(within(t, soon)), latchkey.ErrClosed)
	_, err = latch.Count(t.Context())
	assert.ErrorIs(t, err, latchkey.ErrClosed)
	rig.Eventually(t, soon, "all goroutines have ended", func() error { return goleak.Find(before) })
}

// Ten thousand awaiters of one client cost as much as one while they wait.
func TestLatchAwaitersCostWhatOneCosts(t *testing.T) {
	rig.Long(t)
	rig.Need(t, rig.Stats, rig.Speed)
	server := rig.Fresh(t)
	tap := rig.NewTap(t, server)
	latch := newLatch(t, connect(t, server), 1)
	waiting := connectVia(t, server, tap.Addr()).NewCountDownLatch(latch.Name())
	results := make(chan error, many)
	ctx := within(t, 10*time.Minute)
	for n := 0; n < many; n += many / 20 { // few enough at once that none exhausts its budget
		for range many / 20 {
			go func() { results <- waiting.Await(ctx) }()
		}
		rig.Eventually(t, 2*time.Minute, "all have looked", func() error {
			if looked := len(mentioning(tap, latch.Name())); looked < n+many/20 {
				return fmt.Errorf("%d have", looked)
			}
			return nil
		})
	}
	idle := math.Inf(1)
	for i := 0; i < 10 && idle >= 5; i++ { // on a busy machine some query again before they rest
		quiet(t, tap)
		tap.Forget()
		start := time.Now()
		rest(3 * time.Second) // a rate is measured
		idle = float64(len(mentioning(tap, latch.Name()))) / time.Since(start).Seconds()
	}
	start := time.Now()
	countDown(t, latch, 0)
	for range many {
		require.NoError(t, rig.Await(t, time.Minute, "an awaiter", results))
	}
	t.Logf("%d awaiters: %.1f looks/s while they wait; all released in %v with %d looks",
		many, idle, time.Since(start).Round(time.Millisecond), len(mentioning(tap, latch.Name())))
	assert.Less(t, idle, 5.0)
}

// In a cluster a latch with any name opens by message.
func TestCluster_latch(t *testing.T) {
	t.Parallel()
	cluster := rig.NewCluster(t)
	for what, mode := range map[string]bool{"sharded": false, "classic": true} {
		t.Run(what, func(t *testing.T) {
			options := latchkey.Options{Tuning: latchkey.Tuning{ClassicPubSub: mode, PollCeiling: 2 * soon}, Lease: 4 * soon}
			a, b := connectCluster(t, cluster, options), connectCluster(t, cluster, options)
			admin := rig.NewAdmin(t, cluster.Server())
			var latches [10]*latchkey.CountDownLatch
			var opened [10]<-chan error
			for i := range latches {
				name := fmt.Sprintf("%s:%d", t.Name(), i)
				if i%2 == 0 {
					name = fmt.Sprintf("%s:{tag %d}x", t.Name(), i)
				}
				latches[i] = a.NewCountDownLatch(name)
				setLatch(t, latches[i], 1)
				opened[i] = awaitInBackground(within(t, time.Minute), b.NewCountDownLatch(name))
				awaitWaiter(t, admin, name)
			}
			rest(100 * time.Millisecond) // then it asks once more
			for i, latch := range latches {
				countDown(t, latch, 0)
				require.NoError(t, rig.Await(t, soon, "the awaiter of "+latch.Name(), opened[i]))
			}
		})
	}
}
