package tests

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// Redisson's rule for hash tags gives the locks "x" and "{x}" the same channel. They share nothing
// else. The clients listen there while a stranger holds a lock.

// locksOfOneChannel are two locks with one channel. A stranger holds both, and a client waits for
// both.
type locksOfOneChannel struct {
	holds   [2]redissonHold
	waiting [2]<-chan acquisition
}

// redissonHold is a lock held by a Redisson client.
type redissonHold struct {
	raw           rueidis.Client
	name, publish string
	channel       string
}

// holdAsRedisson acquires a lock as Redisson does. Its release publishes with the given command.
func holdAsRedisson(t *testing.T, raw rueidis.Client, publish, name string) redissonHold {
	t.Helper()
	h := redissonHold{raw, name, publish, channelOf(strings.Trim(name, "{}"))}
	h.eval(t, "redis.call('hset', KEYS[1], 'd1c7a3d0-3f5f-4b0c-9c55-0a7d6b0f9a11:1', 1) redis.call('pexpire', KEYS[1], 600000)")
	return h
}

func (h redissonHold) eval(t *testing.T, script string) {
	t.Helper()
	err := h.raw.Do(t.Context(), h.raw.B().Eval().Script(script).Numkeys(1).Key(h.name).Arg(h.channel, h.publish).Build()).Error()
	if !rueidis.IsRedisNil(err) {
		require.NoError(t, err)
	}
}

// release releases the lock and publishes a message, as Redisson does. A server before Redis 7 has
// no sharded messages.
func (h redissonHold) release(t *testing.T) {
	t.Helper()
	h.eval(t, `redis.call('del', KEYS[1])
local told = redis.pcall(ARGV[2], ARGV[1], '0')
if type(told) == 'table' then
  redis.call('publish', ARGV[1], '0')
end`)
}

// untold are the options of a waiter that goes on after a message only: its next poll is an hour
// away.
var untold = latchkey.Options{Lease: 3 * time.Hour, Tuning: latchkey.Tuning{PollCeiling: 2 * time.Hour, StaleWaiterTimeout: longestStale}}

// newLocksOfOneChannel starts the second waiter after the channel is subscribed for the first.
func newLocksOfOneChannel(t *testing.T, admin *rig.Admin, raw rueidis.Client, publish string, waiting *latchkey.Client, name string) *locksOfOneChannel {
	t.Helper()
	w := &locksOfOneChannel{}
	for i, each := range []string{name, "{" + name + "}"} {
		w.holds[i] = holdAsRedisson(t, raw, publish, each)
		w.waiting[i] = lockInBackground(within(t, 3*soon), waiting.NewLock(each))
		rig.Eventually(t, soon, "the channel is subscribed", func() error {
			if admin.Subscribers(channelOf(name)) == 0 {
				return errors.New("not yet")
			}
			return nil
		})
		rest(100 * time.Millisecond) // most likely it waits
	}
	return w
}

// handOver releases one of the two locks and checks that its waiter is woken and the other still
// waits.
func (w *locksOfOneChannel) handOver(t *testing.T, i int) {
	t.Helper()
	w.holds[i].release(t)
	next := rig.Await(t, soon, "the waiter is woken by the message", w.waiting[i])
	require.NoError(t, next.err)
	mustUnlock(t, next.hold)
	assert.Empty(t, w.waiting[1-i], "the other lock is held")
}

// Both waiters are woken, whichever subscribed first, and also after the other has been gone for so
// long that its subscription has ended. Everything works again after all subscriptions have ended.
func TestChannelShared_wakes_both_waiters(t *testing.T) {
	t.Parallel()
	for first := range 2 {
		t.Run(fmt.Sprint(first), func(t *testing.T) {
			t.Parallel()
			server, name := rig.Shared(), rig.Name(t)
			admin, tap := rig.NewAdmin(t, server), rig.NewTap(t, server)
			waiting := connectVia(t, server, tap.Addr(), untold)
			begin := func() *locksOfOneChannel {
				return newLocksOfOneChannel(t, admin, server.Raw(t), server.PublishCommand(), waiting, name)
			}
			w := begin()
			require.EqualValues(t, 1, admin.Subscribers(channelOf(name)))
			w.handOver(t, first)
			rest(3 * time.Second) // a subscription lingers for two
			w.handOver(t, 1-first)
			rig.Eventually(t, soon, "nothing is subscribed", func() error { return subscribed(admin, name) })
			rig.Eventually(t, soon, "the connection for messages is closed", func() error {
				if tap.Subscribers() > 0 {
					return errors.New("still there")
				}
				return nil
			})
			w = begin()
			w.handOver(t, first)
			w.handOver(t, 1-first)
		})
	}
}

// The channels of calls that have ended do not stay because another call still waits. That is so
// even if the pool of a borrowed client has room for a single connection.
func TestSubscriptionsOfEndedCallsEnd(t *testing.T) {
	t.Parallel()
	for _, poolSize := range []int{0, 1} {
		t.Run(fmt.Sprint(poolSize), func(t *testing.T) {
			t.Parallel()
			server, name := rig.Shared(), rig.Name(t)
			settings := likeOurs(server.Options(server.Addr()))
			settings.BlockingPoolSize = poolSize
			client, closeAll, err := borrow(settings, latchkey.Options{Tuning: latchkey.Tuning{PollCeiling: 100 * time.Millisecond}, RetryBudget: soon})
			require.NoError(t, err)
			t.Cleanup(func() { _ = closeAll(within(t, soon)) })
			admin, holder := rig.NewAdmin(t, server), connect(t, server)
			kept, left := mustLock(t, holder.NewLock(name+"kept")), mustLock(t, holder.NewRWLock(name+"left").Writer())
			waiter := lockInBackground(within(t, 3*soon), client.NewLock(name+"kept"))
			ctx, leave := context.WithCancel(t.Context())
			leaves := lockInBackground(ctx, client.NewRWLock(name+"left").Reader())
			rig.Eventually(t, soon, "the call has subscribed", hasSubscribed(admin, name+"left"))
			leave()
			require.ErrorIs(t, rig.Await(t, soon, "the call", leaves).err, context.Canceled)
			rig.Eventually(t, soon, "the channels of the call have ended", func() error { return subscribed(admin, name+"left") })
			mustUnlock(t, kept)
			next := rig.Await(t, soon, "the waiter", waiter)
			require.NoError(t, next.err)
			mustUnlock(t, next.hold)
			mustUnlock(t, left)
		})
	}
}

func hasSubscribed(admin *rig.Admin, name string) func() error {
	return func() error {
		if subscribed(admin, name) == nil {
			return errors.New("nobody has")
		}
		return nil
	}
}

// A release grants the lock to its own waiters, not to those of its twin.
func TestTwins_have_queues_of_their_own(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	admin, holding, waiting := rig.NewAdmin(t, server), connect(t, server, untold), connect(t, server, untold)
	var holds [2]*latchkey.Hold
	var waiters [2]<-chan acquisition
	names := []string{name, "{" + name + "}"}
	for i, name := range names {
		holds[i] = mustLock(t, holding.NewLock(name))
	}
	for i, name := range slices.Backward(names) {
		waiters[i] = lockInBackground(within(t, 3*soon), waiting.NewLock(name))
		rig.Eventually(t, soon, "the waiter is in the queue", func() error {
			if !admin.Exists(queueKey(name)) {
				return errors.New("not yet")
			}
			return nil
		})
	}
	for i := range names {
		mustUnlock(t, holds[i])
		next := rig.Await(t, soon, "the waiter", waiters[i])
		require.NoError(t, next.err)
		assert.Empty(t, waiters[1-i], "the other lock is held")
		mustUnlock(t, next.hold)
	}
}

// When the subscription connection is cut, the subscription is restored for both.
func TestChannelShared_comes_back_for_both(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	admin, tap := rig.NewAdmin(t, server), rig.NewTap(t, server)
	w := newLocksOfOneChannel(t, admin, server.Raw(t), server.PublishCommand(), connectVia(t, server, tap.Addr(), untold), name)
	before := tap.Accepted()
	require.Positive(t, tap.CutSubscribers())
	rig.Eventually(t, soon, "another connection", func() error {
		if tap.Accepted() == before || tap.Subscribers() == 0 {
			return errors.New("none")
		}
		return nil
	})
	awaitWaiter(t, admin, name)
	rest(100 * time.Millisecond) // most likely it has looked again
	w.handOver(t, 0)
	w.handOver(t, 1)
}

// The second lock is released between the refusal of its waiter and its subscription, while the
// channel is already subscribed for the first. The waiter retries and acquires it.
func TestChannelShared_second_waiter_looks_again(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	admin, tap := rig.NewAdmin(t, server), rig.NewTap(t, server)
	raw, publish := server.Raw(t), server.PublishCommand()
	waiting := connectVia(t, server, tap.Addr(), untold)
	holdAsRedisson(t, raw, publish, name)
	braced := holdAsRedisson(t, raw, publish, "{"+name+"}")
	lockInBackground(within(t, 3*soon), waiting.NewLock(name))
	rig.Eventually(t, soon, "the channel is subscribed", func() error {
		if admin.Subscribers(channelOf(name)) == 0 {
			return errors.New("not yet")
		}
		return nil
	})
	refusal := tap.HoldReply(rig.Mentions("{" + name + "}"))
	waiter := lockInBackground(within(t, 3*soon), waiting.NewLock("{"+name+"}"))
	rig.Await(t, soon, "the refusal", refusal.Arrived)
	braced.release(t) // nobody waits yet for its message
	rest(100 * time.Millisecond)
	refusal.Release()
	next := rig.Await(t, soon, "the waiter looks again", waiter)
	require.NoError(t, next.err)
	mustUnlock(t, next.hold)
}

// Two waiters on one channel leave no goroutine when they are finished.
func TestChannelShared_leaves_nothing(t *testing.T) {
	server := rig.Fresh(t)
	admin := rig.NewAdmin(t, server)
	raw := server.Raw(t)
	require.NoError(t, raw.Do(t.Context(), raw.B().Eval().Script("return 1").Numkeys(0).Build()).Error())
	before := goleak.IgnoreCurrent()
	waiting, closeWaiting, err := dial(server, server.Addr(), untold)
	require.NoError(t, err)
	w := newLocksOfOneChannel(t, admin, raw, server.PublishCommand(), waiting, "x")
	w.handOver(t, 1)
	w.handOver(t, 0)
	require.NoError(t, closeWaiting(within(t, soon)))
	rig.Eventually(t, soon, "no goroutine is left", func() error { return leaked(server, before) })
}

// In a cluster both waiters are woken, with sharded and classic messages, and also after the slot
// has moved.
func TestChannelShared_in_a_cluster(t *testing.T) {
	t.Parallel()
	cluster := rig.NewCluster(t)
	for mode, option := range map[string]bool{"sharded": false, "classic": true} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			options := latchkey.Options{Tuning: latchkey.Tuning{ClassicPubSub: option, PollCeiling: byMessage}, Lease: 2 * byMessage}
			waiting := connectCluster(t, cluster, options)
			admin, raw, publish := rig.NewAdmin(t, cluster.Server()), cluster.Server().Raw(t), map[string]string{"sharded": "SPUBLISH", "classic": "PUBLISH"}[mode]
			name := "x " + mode
			for range 4 { // the slot passes through every master more than once
				w := newLocksOfOneChannel(t, admin, raw, publish, waiting, name)
				cluster.MoveSlot(name)
				rest(200 * time.Millisecond) // most likely enough for the new subscription
				w.handOver(t, 0)
				w.handOver(t, 1)
			}
		})
	}
}
