package tests

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// patient makes a waiter rely on messages for longer than any test lasts.
var patient = latchkey.Options{Lease: time.Minute, Tuning: latchkey.Tuning{PollCeiling: 50 * time.Second}}

// pollCeiling is the longest pause of a waiter that polls.
const pollCeiling = 400 * time.Millisecond

// polling makes a waiter poll again soon, long before a lease ends.
var polling = latchkey.Options{Lease: 30 * time.Second, Tuning: latchkey.Tuning{PollCeiling: pollCeiling}}

// handOver holds a lock, starts a waiter of another client, calls meanwhile, releases the lock, and
// returns how long the waiter took after the release.
func handOver(t *testing.T, k kind, name string, waiting *latchkey.Client, meanwhile func()) time.Duration {
	t.Helper()
	server := rig.Shared()
	holder := mustLock(t, k.open(connect(t, server, patient), name))
	waiter := lockInBackground(within(t, time.Minute), k.open(waiting, name))
	if k.messages {
		awaitWaiter(t, rig.NewAdmin(t, server), name)
	}
	meanwhile()
	start := time.Now()
	mustUnlock(t, holder)
	next := rig.Await(t, time.Minute, "the waiter", waiter)
	require.NoError(t, next.err)
	mustUnlock(t, next.hold)
	return next.at.Sub(start)
}

// A message wakes a waiter: the hand-over is quick even if the waiter would otherwise sleep for
// most of a minute.
func TestMessageWakes(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		took := handOver(t, k, rig.Name(t), connect(t, rig.Shared(), patient), func() {})
		t.Logf("woken after %v", took)
		assert.Less(t, took, soon)
	}, messages)
}

// Every message is dropped. All waiters still acquire, each within the poll ceiling after the
// previous release.
func TestAllMessagesDropped(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		server, name := rig.Shared(), rig.Name(t)
		tap := rig.NewTap(t, server)
		tap.DropMessages(true)
		holder := mustLock(t, k.open(connect(t, server, polling), name))
		const clients, each = 2, 2
		acquired := make(chan acquisition, clients*each)
		for range clients {
			lock := k.open(connectVia(t, server, tap.Addr(), polling), name)
			for range each {
				waiter := lockInBackground(within(t, time.Minute), lock)
				go func() { acquired <- <-waiter }()
			}
		}
		if k.messages {
			rig.Eventually(t, soon, "every client listens", func() error {
				admin := rig.NewAdmin(t, server)
				listen := admin.Subscribers(k.channelOf(name)) + int64(len(admin.Channels(name)))
				if handedOver(k) {
					listen = admin.Int("ZCARD", queueKey(name)) // which contains only waiters that listen
				}
				if listen < clients {
					return errors.New("not yet")
				}
				return nil
			})
		}
		var longest time.Duration
		for range clients * each {
			released := time.Now()
			mustUnlock(t, holder)
			next := rig.Await(t, soon, "the next waiter", acquired)
			require.NoError(t, next.err)
			longest = max(longest, next.at.Sub(released))
			holder = next.hold
		}
		mustUnlock(t, holder)
		t.Logf("the longest hand-over of %d: %v, poll ceiling %v, messages dropped: %d",
			clients*each, longest.Round(time.Millisecond), pollCeiling, tap.DroppedMessages())
		if k.messages {
			assert.Positive(t, tap.DroppedMessages(), "the test dropped nothing")
		}
	})
}

// The subscription connections break at the moment of the release, in several ways. Nobody waits
// longer than the poll ceiling.
func TestSubscriptionBreaksAtTheRelease(t *testing.T) {
	t.Parallel()
	faults := map[string]func(*rig.Tap){
		"connection cut":    func(tap *rig.Tap) { tap.CutSubscribers() },
		"connection frozen": func(tap *rig.Tap) { tap.FreezeSubscribers() },
		"everything cut":    func(tap *rig.Tap) { tap.Cut() },
	}
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		for name, fault := range faults {
			t.Run(name, func(t *testing.T) {
				tap := rig.NewTap(t, rig.Shared())
				waiting := connectVia(t, rig.Shared(), tap.Addr(), polling)
				took := handOver(t, k, rig.Name(t), waiting, func() {
					listensThrough(t, tap)
					fault(tap)
				})
				t.Logf("acquired after %v, poll ceiling %v", took.Round(time.Millisecond), pollCeiling)
				assert.Less(t, took, soon)
			})
		}
	}, messages)
}

// listensThrough waits until a client has subscribed through a tap. A waiter for a fair lock
// subscribes when it has its place.
func listensThrough(t *testing.T, tap *rig.Tap) {
	t.Helper()
	rig.Eventually(t, soon, "somebody listens", func() error {
		if tap.Subscribers() == 0 {
			return errors.New("nobody does")
		}
		return nil
	})
}

// A subscription that was cut is restored, so that a message announces the next release.
func TestSubscriptionComesBack(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		tap := rig.NewTap(t, rig.Shared())
		admin, name := rig.NewAdmin(t, rig.Shared()), rig.Name(t)
		waiting := connectVia(t, rig.Shared(), tap.Addr(), patient)
		took := handOver(t, k, name, waiting, func() {
			listensThrough(t, tap)
			tap.Forget()
			require.Positive(t, tap.CutSubscribers())
			rig.Eventually(t, soon, "it subscribes again", func() error {
				for _, c := range tap.Commands() {
					if rig.Named("SUBSCRIBE", "SSUBSCRIBE")(c) {
						return nil
					}
				}
				return errors.New("not yet")
			})
			awaitWaiter(t, admin, name)
		})
		t.Logf("woken after %v", took)
		assert.Less(t, took, soon)
	}, messages)
}

// A subscription that is frozen, or that answers everything but delivers no message, looks healthy.
// The client detects and replaces it without a release or an error.
func TestDeafSubscriptionIsReplaced(t *testing.T) {
	t.Parallel()
	faults := map[string]func(*rig.Tap){
		"frozen": func(tap *rig.Tap) { tap.FreezeSubscribers() },
		"deaf":   func(tap *rig.Tap) { tap.DropMessages(true) },
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "deaf" {
				notInCluster(t, "a node that gives a channel up says so, and its answers are believed")
			}
			tap := rig.NewTap(t, rig.Shared())
			waiting := connectVia(t, rig.Shared(), tap.Addr(), polling)
			handOver(t, lockKind, rig.Name(t), waiting, func() {
				require.Positive(t, tap.Subscribers())
				before := tap.Accepted()
				fault(tap)
				rig.Eventually(t, soon, "a new subscription", func() error {
					if tap.Accepted() == before {
						return errors.New("the deaf one is still trusted")
					}
					return nil
				})
			})
		})
	}
}

// The release falls between the failed attempt and the live subscription. The waiter must try again
// once the subscription is confirmed, whether the server has not processed the subscription yet or
// the waiter has not yet received the confirmation.
func TestReleaseBeforeTheSubscriptionIsConfirmed(t *testing.T) {
	for what, hold := range map[string]func(*rig.Tap, rig.Match) *rig.Held{
		"subscription held back": (*rig.Tap).HoldCommand,
		"confirmation held back": (*rig.Tap).HoldReply,
	} {
		t.Run(what, func(t *testing.T) {
			eachKind(t, func(t *testing.T, k kind) {
				server, name := rig.Shared(), rig.Name(t)
				tap := rig.NewTap(t, server)
				holder := mustLock(t, k.open(connect(t, server, patient), name))
				channel := k.channelOf(name)
				if handedOver(k) {
					channel = "latchkey:{" // the channel of the client
				}
				held := hold(tap, rig.Both(rig.Subscribing, rig.MentionsPrefix(channel)))
				waiter := lockInBackground(within(t, soon), k.open(connectVia(t, server, tap.Addr(), patient), name))

				rig.Await(t, soon, what, held.Arrived)
				mustUnlock(t, holder) // its message reaches nobody, or a waiter that does not listen yet
				held.Release()
				next := rig.Await(t, soon, "the waiter looks again", waiter)
				require.NoError(t, next.err)
				mustUnlock(t, next.hold)
			}, messages)
		})
	}
}

// An expiry, an operator's DEL, a lost TTL and a flush send no message. The waiter tries again
// within the poll ceiling, and does not poll all the time until then.
func TestSilentDisappearance(t *testing.T) {
	t.Parallel()
	faults := map[string]func(admin *rig.Admin, name string){
		"deleted": func(admin *rig.Admin, name string) { admin.Do("DEL", name) },
		"without expiry, then deleted": func(admin *rig.Admin, name string) {
			admin.Do("PERSIST", name)
			rest(3 * pollCeiling)
			admin.Do("DEL", name)
		},
		"expired": func(admin *rig.Admin, name string) { admin.Do("PEXPIRE", name, "1") },
	}
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		for fault, happen := range faults {
			t.Run(fault, func(t *testing.T) {
				t.Parallel()
				server, name := rig.Shared(), rig.Name(t)
				admin := rig.NewAdmin(t, server)
				tap := rig.NewTap(t, server)
				mustLock(t, k.open(connect(t, server), name), latchkey.Lease(time.Minute)) // longer than the waiter waits
				waiter := lockInBackground(within(t, soon), k.open(connectVia(t, server, tap.Addr(), polling), name))
				if k.messages {
					awaitWaiter(t, admin, name)
				}
				start := time.Now()
				happen(admin, name)
				next := rig.Await(t, soon, "the waiter", waiter)
				require.NoError(t, next.err)
				mustUnlock(t, next.hold)

				sent, took := len(tap.Commands()), next.at.Sub(start)
				t.Logf("%d commands in %v", sent, took.Round(time.Millisecond))
				if k.messages {
					assert.Less(t, sent, 15+int(10*took.Seconds()), "a hot loop")
				}
			})
		}
	})
}

// Two clients wait, and one gives up. A message still wakes the other.
func TestGivingUpLeavesTheOtherWaiter(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		server, name := rig.Shared(), rig.Name(t)
		client, refused := connectRefused(t, server, patient)
		lock := k.open(client, name)
		holder := mustLock(t, k.open(connect(t, server, patient), name))
		ctx, giveUp := context.WithCancel(t.Context())
		quitter := lockInBackground(ctx, lock)
		atRest(t, refused)
		stayer := lockInBackground(within(t, soon), lock)

		giveUp()
		got := rig.Await(t, soon, "the one that gives up", quitter)
		assert.ErrorIs(t, got.err, context.Canceled)
		assert.ErrorIs(t, got.err, latchkey.ErrNotAcquired)
		rig.Await(t, soon, "the other is told that the lock is busy", refused)
		mustUnlock(t, holder)
		next := rig.Await(t, soon, "the other", stayer)
		require.NoError(t, next.err)
		mustUnlock(t, next.hold)
	}, messages)
}

// A client waits for many names, one after the other. It leaves no subscription and no connection
// behind.
func TestSubscriptionsAreGivenUp(t *testing.T) {
	t.Parallel()
	server := rig.Fresh(t)
	admin := rig.NewAdmin(t, server)
	holding, waiting := connect(t, server), connect(t, server)
	eachName(t, max(rig.Sized(200), 100), 16, func(name string) {
		ctx := within(t, 3*soon)
		hold, err := holding.NewLock(name).Lock(ctx)
		if !assert.NoError(t, err) {
			return
		}
		waiter := lockInBackground(ctx, waiting.NewLock(name))
		for ctx.Err() == nil && !admin.Exists(queueKey(name)) {
			rest(time.Millisecond)
		}
		assert.NoError(t, hold.Unlock(ctx))
		if next := <-waiter; assert.NoError(t, next.err) {
			assert.NoError(t, next.hold.Unlock(ctx))
		}
	})
	rig.Eventually(t, soon, "the server's channel list is empty", func() error {
		if left := admin.Channels(""); len(left) > 0 {
			return errors.New(left[0])
		}
		return nil
	})
}
