package latchkeycron_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeycron"
	"github.com/latchkey-go/latchkey/latchkeytest"
)

// Inside synctest.Test time is faked: a Sleep moves it, and takes no real time.

func mustLock(t *testing.T, locker *latchkeycron.Locker, key string) gocron.Lock {
	t.Helper()
	lock, err := locker.Lock(t.Context(), key)
	require.NoError(t, err)
	return lock
}

// The lock has the name of the job, and stays taken after the job.
func TestLockOfAJob(t *testing.T) {
	inBubble(t, func(t *testing.T, server *latchkeytest.Server) {
		client, other := server.Client(), latchkeycron.NewLocker(server.Client())
		locker := latchkeycron.NewLocker(client)
		run := mustLock(t, locker, "nightly")
		seen, err := client.Inspect(t.Context(), "gocron:nightly")
		require.NoError(t, err)
		assert.True(t, seen.Locked())
		_, err = other.Lock(t.Context(), "nightly")
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		require.NoError(t, mustLock(t, other, "hourly").Unlock(t.Context()))

		require.NoError(t, run.Unlock(t.Context()))
		time.Sleep(latchkeycron.DefaultAtLeast - 10*time.Millisecond)
		for _, l := range []*latchkeycron.Locker{locker, other} {
			_, err = l.Lock(t.Context(), "nightly")
			require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		}
		time.Sleep(20 * time.Millisecond)
		require.NoError(t, mustLock(t, other, "nightly").Unlock(t.Context()))
	})
}

// A job that takes longer than AtLeast and the lease holds the lock until the job is done. Then the
// lock is free.
func TestLongJob(t *testing.T) {
	inBubble(t, func(t *testing.T, server *latchkeytest.Server) {
		locker, other := latchkeycron.NewLocker(server.Client()), latchkeycron.NewLocker(server.Client())
		run := mustLock(t, locker, "nightly")
		time.Sleep(time.Hour)
		_, err := other.Lock(t.Context(), "nightly")
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		require.NoError(t, run.Unlock(t.Context()))
		require.NoError(t, mustLock(t, other, "nightly").Unlock(t.Context()))
	})
}

// gocron unlocks with the context of the job, which has ended when the scheduler is shut down.
func TestUnlockWorksAfterShutdown(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	locker := latchkeycron.NewLocker(server.Client(), latchkeycron.WithAtLeast(0))
	ctx, cancel := context.WithCancel(t.Context())
	run, err := locker.Lock(ctx, "nightly")
	require.NoError(t, err)
	cancel()
	require.NoError(t, run.Unlock(ctx))
	require.ErrorIs(t, run.Unlock(ctx), latchkey.ErrNotHeld)
	require.NoError(t, mustLock(t, locker, "nightly").Unlock(t.Context()))
}

// A job learns from its hold that the lock was lost. It finds the hold by the name of the job while
// it runs.
func TestAJobLearnsOfALoss(t *testing.T) {
	inBubble(t, func(t *testing.T, server *latchkeytest.Server) {
		client, other := server.Client(), server.Client()
		locker := latchkeycron.NewLocker(client)
		require.ErrorIs(t, locker.Hold("nightly").Err(), latchkey.ErrNotHeld)
		run := mustLock(t, locker, "nightly")
		work := locker.Hold("nightly").Context(t.Context())
		require.NoError(t, work.Err())
		require.ErrorIs(t, locker.Hold("hourly").Err(), latchkey.ErrNotHeld)

		_, err := other.ForceUnlock(t.Context(), "gocron:nightly")
		require.NoError(t, err)
		<-work.Done()
		require.ErrorIs(t, context.Cause(work), latchkey.ErrLost)

		// The same process begins the next run while the first has not returned.
		next := mustLock(t, locker, "nightly")
		require.ErrorIs(t, run.Unlock(t.Context()), latchkey.ErrLost)
		require.NoError(t, locker.Hold("nightly").Err(), "the end of a run takes the hold of the next along")
		require.NoError(t, next.Unlock(t.Context()))
		require.Nil(t, locker.Hold("nightly"))
	})
}

// A job that hangs does not prevent later runs.
func TestMaxHold(t *testing.T) {
	inBubble(t, func(t *testing.T, server *latchkeytest.Server) {
		locker := latchkeycron.NewLocker(server.Client(), latchkeycron.WithMaxHold(time.Minute))
		run := mustLock(t, locker, "nightly")
		hold := locker.Hold("nightly")
		time.Sleep(time.Minute)
		require.ErrorIs(t, hold.Err(), latchkey.ErrMaxHold)
		require.NoError(t, mustLock(t, latchkeycron.NewLocker(server.Client()), "nightly").Unlock(t.Context()))
		require.ErrorIs(t, run.Unlock(t.Context()), latchkey.ErrMaxHold)
	})
}

// The owner or the hold in the context of a job does not let a second run start next to the first.
func TestARunIsNotEnteredAgain(t *testing.T) {
	t.Parallel()
	client := latchkeytest.NewServer(t).Client()
	locker := latchkeycron.NewLocker(client)
	ctx := latchkey.WithOwner(t.Context(), client.NewOwner())
	run, err := locker.Lock(ctx, "nightly")
	require.NoError(t, err)
	for _, ctx := range []context.Context{ctx, locker.Hold("nightly").Context(t.Context())} {
		_, err = locker.Lock(ctx, "nightly")
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
	}
	require.NoError(t, run.Unlock(ctx))
}

func TestOptionsOfALocker(t *testing.T) {
	t.Parallel()
	client := latchkeytest.NewServer(t).Client()
	for what, option := range map[string]latchkeycron.LockerOption{
		"a negative time":     latchkeycron.WithAtLeast(-time.Second),
		"a negative limit":    latchkeycron.WithMaxHold(-time.Second),
		"a limit too short":   latchkeycron.WithMaxHold(time.Second),
		"a name with a brace": latchkeycron.WithKeyPrefix("}"),
		"a name too long":     latchkeycron.WithKeyPrefix(strings.Repeat("x", 512)),
	} {
		_, err := latchkeycron.NewLocker(client, option).Lock(t.Context(), "nightly")
		require.ErrorIs(t, err, latchkey.ErrInvalid, what)
	}
	run := mustLock(t, latchkeycron.NewLocker(client, latchkeycron.WithKeyPrefix("")), "nightly")
	seen, err := client.Inspect(t.Context(), "nightly")
	require.NoError(t, err)
	assert.True(t, seen.Locked())
	require.NoError(t, run.Unlock(t.Context()))
	require.NoError(t, client.Close(t.Context()))
	_, err = latchkeycron.NewLocker(client).Lock(t.Context(), "nightly")
	require.ErrorIs(t, err, latchkey.ErrClosed)
}
