package tests

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// How holds end while something is in flight, and what the callers learn.

// vanishes checks that a key disappears long before it would expire.
func vanishes(t *testing.T, admin *rig.Admin, name string) {
	t.Helper()
	rig.Eventually(t, soon, "the key is given back", free(admin, name))
}

// An extension is executed, its reply is lost, and then nothing can be sent until the hold is lost.
// The time that the extension gave the key is taken back.
func TestExtensionInDoubtIsTakenBack(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	admin, tap := rig.NewAdmin(t, server), rig.NewTap(t, server)
	const lease = 2 * time.Second
	client := connectVia(t, server, tap.Addr(), latchkey.Options{RetryBudget: time.Second})
	before := mustLock(t, connect(t, server).NewLock("before "+name))
	require.NoError(t, before.Extend(t.Context(), time.Millisecond)) // the server knows the script
	mustUnlock(t, before)
	hold := mustLock(t, client.NewLock(name), latchkey.Lease(lease))
	heal := tap.LoseAll(rig.Mentions(name), rig.Cut)
	require.ErrorIs(t, hold.Extend(t.Context(), time.Hour), latchkey.ErrUnknownOutcome)
	heal()
	heal = tap.LoseAll(rig.Any, rig.CutRequest)
	rig.Await(t, soon, "the loss", hold.Lost())
	rest(lease) // the client knows of no longer one
	assert.Greater(t, admin.PTTL(name), 50*time.Minute)
	heal()
	vanishes(t, admin, name)
}

// Two share a hold. If one of them runs out of time and the other releases its own part, the lock
// is free.
func TestPartThatRanOutIsTakenOut(t *testing.T) {
	t.Parallel()
	shared := map[string]func(t *testing.T, maker, taker, other anyLock){
		"the maker's": func(t *testing.T, maker, taker, other anyLock) {
			first := mustLock(t, maker, latchkey.Lease(2*time.Second))
			second := mustLock(t, taker, latchkey.As(first.Share()))
			rig.Await(t, soon, "the loss", first.Lost())
			require.ErrorIs(t, first.Unlock(t.Context()), latchkey.ErrNotHeld)
			mustUnlock(t, second)
			mustUnlock(t, mustLock(t, other))
		},
		"the guest's": func(t *testing.T, maker, taker, other anyLock) {
			first := mustLock(t, maker)
			second := mustLock(t, taker, latchkey.As(first.Share()), latchkey.MaxHold(2*time.Second))
			rig.Await(t, soon, "the loss", second.Lost())
			mustUnlock(t, first)
			mustUnlock(t, mustLock(t, other))
		},
	}
	for whose, test := range shared {
		t.Run(whose, func(t *testing.T) {
			t.Parallel()
			server, name := rig.Shared(), rig.Name(t)
			test(t, connect(t, server).NewLock(name), connect(t, server).NewLock(name), connect(t, server).NewLock(name))
		})
	}
}

// The first try of an acquisition arrives after the hold of the second try was lost. It is undone
// as after an Unlock.
func TestLateAcquisitionAfterTheLossIsUndone(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	admin, tap := rig.NewAdmin(t, server), rig.NewTap(t, server)
	lock := connectVia(t, server, tap.Addr()).NewLock(name)
	mustUnlock(t, mustLock(t, lock))
	late := tap.Lose(1, rig.Mentions(name), rig.CutRequest)
	hold := mustLock(t, lock)
	command := rig.Await(t, soon, "the first try", late)
	admin.Do("DEL", name)
	require.ErrorIs(t, hold.Unlock(t.Context()), latchkey.ErrLost)
	require.True(t, rueidis.IsRedisNil(admin.Do(command.Args...).Error()), "it has acquired")
	vanishes(t, admin, name)
}

// The context of a call ends because something else failed with an error of this package. That is
// not a reply about this lock.
func TestCauseOfTheContextIsNoAnswer(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	admin, held := rig.NewAdmin(t, server), mustLock(t, connect(t, server).NewLock(name))
	admin.Do("RPUSH", name+":list", "x")
	for _, sibling := range []string{name + ":list", ""} {
		client, refused := connectRefused(t, server)
		_, cause := client.NewLock(sibling).TryLock(t.Context())
		ctx, cancel := context.WithCancelCause(t.Context())
		waiter := lockInBackground(ctx, client.NewLock(name))
		atRest(t, refused)
		cancel(fmt.Errorf("a sibling failed: %w", cause))
		got := rig.Await(t, soon, "the waiter", waiter)
		assert.ErrorIs(t, got.err, latchkey.ErrNotAcquired)
		assert.ErrorIs(t, got.err, context.Canceled)
		assert.NotErrorIs(t, got.err, latchkey.ErrUnavailable)
		for _, sentinel := range []error{latchkey.ErrWrongKind, latchkey.ErrInvalid} {
			if errors.Is(cause, sentinel) {
				assert.ErrorIs(t, got.err, sentinel, "it can be found all the same")
			}
		}
		require.NoError(t, client.Close(within(t, soon)))
		rig.Eventually(t, soon, "the end of its subscription", func() error {
			if len(admin.Channels(name)) > 0 {
				return errors.New("the next would be taken for told")
			}
			return nil
		})
	}
	mustUnlock(t, held)
}

// If the observer panics, the lock is held or not as if it had not panicked.
func TestObserverThatPanicsBreaksNothing(t *testing.T) {
	t.Parallel()
	for _, event := range []latchkey.EventType{latchkey.EventAttempt, latchkey.EventAcquired, latchkey.EventReleased} {
		t.Run(event.String(), func(t *testing.T) {
			server, name := rig.Shared(), rig.Name(t)
			client := connect(t, server, latchkey.Options{Observer: func(e latchkey.Event) {
				if e.Type == event {
					panic("observer")
				}
			}})
			lock, task := client.NewLock(name), latchkey.WithOwner(t.Context(), client.NewOwner())
			other := mustLock(t, connect(t, server).NewLock(name))
			_, err := lock.TryLock(task)
			require.ErrorIs(t, err, latchkey.ErrNotAcquired)
			mustUnlock(t, other)
			for range 2 {
				hold, err := lock.TryLock(task)
				require.NoError(t, err)
				mustUnlock(t, hold)
			}
			assert.NoError(t, free(rig.NewAdmin(t, server), name)())
		})
	}
}

// The reply to a re-entry with a MaxHold takes most of that time. The limit counts from the
// request, both for the context and for ValidFor.
func TestLimitOfAReentryCountsFromTheRequest(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	link := rig.NewLink(t, server)
	client := connectVia(t, server, link.Addr())
	const delay, limit = time.Second, 2500 * time.Millisecond
	assert.NoError(t, rig.InTime(t, func(before int) error {
		lock := client.NewLock(fmt.Sprint(name, before))
		outer := mustLock(t, lock)
		link.DelayReplies(delay)
		defer link.Heal()
		start := time.Now()
		inner, err := lock.Lock(outer.Context(t.Context()), latchkey.MaxHold(limit))
		if err != nil {
			return err
		}
		valid := inner.ValidFor()
		rig.Await(t, soon, "the end", inner.Context(t.Context()).Done())
		if took := time.Since(start); valid > limit-delay || took > limit+delay/2 {
			return fmt.Errorf("%v after the request it was valid for %v, and it ended after %v", delay, valid, took)
		}
		return nil
	}))
}

// A hundred holds are lost at once, and the log is blocked. No loss waits for the log.
func TestLossesDoNotWaitForTheLog(t *testing.T) {
	t.Parallel()
	server := rig.Fresh(t)
	const holds = 100
	blocked := make(chan struct{})
	client := connect(t, server, latchkey.Options{Lease: 3 * time.Second, Logger: slog.New(logFunc(func(slog.Record) { <-blocked }))})
	defer close(blocked)
	var lost []<-chan struct{}
	for i := range holds {
		lost = append(lost, mustLock(t, client.NewLock(fmt.Sprint("lost ", i))).Lost())
	}
	rig.NewAdmin(t, server).Do("FLUSHALL")
	for _, l := range lost {
		rig.Await(t, soon, "a loss", l)
	}
}

// The server is loading for longer than the retry budget. A re-entry waits for it like any
// acquisition.
func TestReentryWaitsForTheServer(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		server, name := rig.Shared(), rig.Name(t)
		tap := rig.NewTap(t, server)
		lock := k.open(connectVia(t, server, tap.Addr(), latchkey.Options{RetryBudget: 2 * time.Second}), name)
		outer := mustLock(t, lock)
		heal := tap.Refuse(rig.Mentions(name), "LOADING Redis is loading the dataset in memory")
		time.AfterFunc(3*time.Second, heal) // longer than the budget
		inner, err := lock.Lock(outer.Context(within(t, soon)))
		require.NoError(t, err)
		mustUnlock(t, inner)
		mustUnlock(t, outer)
	}, reentrant)
}

// If Close begins during a release, Unlock returns the outcome of the release.
func TestUnlockDuringClose(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		server, name := rig.Shared(), rig.Name(t)
		tap := rig.NewTap(t, server)
		client := connectVia(t, server, tap.Addr())
		hold, other := mustLock(t, k.open(client, name)), mustLock(t, k.open(client, "beside "+name))
		reply := tap.HoldReply(rig.Mentions(name))
		unlocked, closed := make(chan error, 1), make(chan error, 1)
		go func() { unlocked <- hold.Unlock(t.Context()) }()
		rig.Await(t, soon, "the release is on its way", reply.Arrived)
		go func() { closed <- client.Close(within(t, soon)) }()
		rig.Await(t, soon, "Close has begun", other.Lost())
		reply.Release()
		assert.NoError(t, rig.Await(t, soon, "Unlock", unlocked))
		assert.NoError(t, rig.Await(t, soon, "Close", closed))
	})
}

// A foreign key lives longer than a time.Duration can express.
func TestTimeBeyondDurations(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	if server.Embedded() {
		// 10^13 ms are more nanoseconds than 63 bits hold. miniredis stores the time to live as a
		// time.Duration, so that no key lives that long there. Every other backend runs this test.
		t.Skip("miniredis counts in durations itself: there the key has ended")
	}
	rig.NewAdmin(t, server).Do("SET", name, "a-foreign-token", "PX", "10000000000000")
	mutex := connect(t, server).NewMutex(name)
	ttl, err := remainingLease(t.Context(), mutex)
	require.NoError(t, err)
	assert.Greater(t, ttl, 290*365*24*time.Hour)
	assert.NotEqual(t, latchkey.NoExpiry, ttl)
	_, err = mutex.TryLock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
}
