package tests

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// confirmed requires one replica to confirm, with the given timeout.
func confirmed(timeout time.Duration) latchkey.Options {
	return latchkey.Options{Replicas: latchkey.Replicas{Min: 1, Timeout: timeout}}
}

// A hold that is granted also exists on the replica, which lags behind for unconfirmed locks.
func TestReplicas_have_what_is_granted(t *testing.T) {
	t.Parallel()
	const lag = 200 * time.Millisecond
	r := rig.NewReplicated(t, 1, lag)
	replica := rig.NewAdmin(t, r.Replicas[0])
	client, hasty := connect(t, r.Master, confirmed(2*time.Second)), connect(t, r.Master)
	for _, k := range kinds {
		name := rig.Name(t)
		hold := mustLock(t, k.open(client, name))
		assert.True(t, replica.Exists(name), "%s: confirmed, and there", k.name)
		mustUnlock(t, hold)
	}
	require.NoError(t, rig.InTime(t, func(before int) error { // or else this test would show nothing
		name := fmt.Sprint(rig.Name(t), before)
		hold := mustLock(t, hasty.NewLock(name))
		defer mustUnlock(t, hold)
		if replica.Exists(name) {
			return errors.New("the replica is not behind")
		}
		return nil
	}))
	t.Run("Semaphore", func(t *testing.T) {
		replica := rig.NewAdmin(t, r.Replicas[0])
		s := newSemaphore(t, client, 3)
		require.NoError(t, s.Acquire(t.Context()))
		assert.Equal(t, "2", replica.Text("GET", s.Name()))
	})
	t.Run("PermitSemaphore", func(t *testing.T) {
		replica := rig.NewAdmin(t, r.Replicas[0])
		s := newPermits(t, client, 3)
		permits, err := s.AcquireN(t.Context(), 2)
		require.NoError(t, err)
		assert.Equal(t, "1", replica.Text("GET", s.Name()))
		for _, permit := range permits {
			require.NoError(t, permit.Release(t.Context()))
		}
	})
}

// With too few replicas nothing is acquired, and nothing stays behind (FM-52).
func TestReplicas_too_few(t *testing.T) {
	t.Parallel()
	const timeout = 300 * time.Millisecond
	r := rig.NewReplicated(t, 1, 0)
	unconfirmed := connect(t, r.Master)
	s, p := newSemaphore(t, unconfirmed, 3), newPermits(t, unconfirmed, 3)
	client := connect(t, r.Master, confirmed(timeout))
	s, p = client.NewSemaphore(s.Name()), client.NewPermitSemaphore(p.Name())
	r.AwaitInStep()
	r.Replicas[0].Pause(t)
	// tooLate checks an acquisition that fails only because of the replica.
	tooLate := func(t *testing.T, acquire func() error) {
		t.Helper()
		start := time.Now()
		err := acquire()
		assert.ErrorIs(t, err, latchkey.ErrNotReplicated)
		assert.NotErrorIs(t, err, latchkey.ErrUnknownOutcome, "it has been undone")
		assert.ErrorContains(t, err, "0 of 1")
		assert.Less(t, time.Since(start), timeout+2*leeway)
	}
	lock := func(t *testing.T, k kind, options ...latchkey.LockOption) {
		t.Helper()
		t.Parallel()
		admin, name := rig.NewAdmin(t, r.Master), rig.Name(t)
		tooLate(t, func() error { return firstOf(k.open(client, name).Lock(within(t, soon), options...)) })
		assert.False(t, admin.Exists(name), "undone when the error is there")
		rig.Eventually(t, soon, "nothing is left but what expires", free(admin, name))
	}
	t.Run("all", func(t *testing.T) {
		eachKind(t, func(t *testing.T, k kind) { lock(t, k) })
		t.Run("leased", func(t *testing.T) { lock(t, lockKind, latchkey.Lease(time.Minute)) })
		t.Run("Semaphore", func(t *testing.T) {
			t.Parallel()
			tooLate(t, func() error { return s.AcquireN(t.Context(), 2) })
			assert.Equal(t, 3, available(t, s))
		})
		t.Run("PermitSemaphore", func(t *testing.T) {
			t.Parallel()
			tooLate(t, func() error { return firstOf(p.AcquireN(t.Context(), 2)) })
			counts(t, p, 3, 0)
		})
	})
	r.Replicas[0].Resume(t)
	r.AwaitInStep()
	rig.Eventually(t, soon, "locks are granted again", func() error {
		hold, err := client.NewLock(rig.Name(t)).TryLock(t.Context())
		if err == nil {
			err = hold.Unlock(t.Context())
		}
		return err
	})
}

// awaitWAIT waits until a call waits for a replica, inside the master.
func awaitWAIT(t *testing.T, master *rig.Admin) {
	t.Helper()
	rig.Eventually(t, soon, "it waits for the replica", func() error {
		if list := master.Text("CLIENT", "LIST", "TYPE", "normal"); !strings.Contains(list, " flags=b ") {
			return fmt.Errorf("nobody waits: %s", list)
		}
		return nil
	})
}

// A call that waits for a replica does not block other calls of the same client.
func TestReplicas_hold_up_nobody_else(t *testing.T) {
	t.Parallel()
	r := rig.NewReplicated(t, 1, 0)
	options := confirmed(soon / 2)
	options.RetryBudget = soon
	client, admin := connect(t, r.Master, options), rig.NewAdmin(t, r.Master)
	name := rig.Name(t)
	r.Replicas[0].Pause(t)
	waiting := lockInBackground(within(t, soon), client.NewLock(name))
	awaitWAIT(t, admin)
	locked, err := isLocked(t.Context(), client.NewLock(name))
	require.NoError(t, err)
	assert.True(t, locked)
	assert.Empty(t, waiting, "it still waits")
	r.Replicas[0].Resume(t)
	got := rig.Await(t, soon, "the end of it", waiting)
	require.NoError(t, got.err)
	mustUnlock(t, got.hold)
}

// If a server forbids WAIT, the constructor of a client that needs it fails, and no other.
func TestReplicas_without_the_command(t *testing.T) {
	rig.Need(t, rig.Settings)
	server := rig.Fresh(t, "--rename-command", "WAIT", "")
	_, err := latchkey.Connect(within(t, soon), server.URL(), confirmed(time.Second))
	require.Error(t, err)
	assert.ErrorContains(t, err, "WAIT, which Options.Replicas needs")
	assert.ErrorContains(t, err, "unknown command")
	_, err = latchkey.New(server.Raw(t), confirmed(time.Second))
	assert.ErrorContains(t, err, "WAIT, which Options.Replicas needs")
	mustUnlock(t, mustLock(t, connect(t, server).NewLock(rig.Name(t))))
}

// The lease that is set for a permit is confirmed as well, or not relied on.
func TestReplicas_confirm_the_lease_of_a_permit(t *testing.T) {
	t.Parallel()
	r := rig.NewReplicated(t, 1, 0)
	s := newPermits(t, connect(t, r.Master, confirmed(1500*time.Millisecond)), 1)
	p, err := s.Acquire(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.SetLease(t.Context(), p.ID(), time.Minute))
	require.Greater(t, p.ValidFor(), 50*time.Second)

	r.Replicas[0].Pause(t)
	require.ErrorIs(t, s.SetLease(t.Context(), p.ID(), time.Hour), latchkey.ErrNotReplicated)
	assert.LessOrEqual(t, p.ValidFor(), time.Minute, "what the replica has")
	r.Replicas[0].Resume(t)
}

// A hold is not relied on for longer than the replica is known to have it.
func TestReplicas_confirm_renewals(t *testing.T) {
	t.Parallel()
	const lease = 3 * time.Second
	r := rig.NewReplicated(t, 1, 0)
	options := confirmed(1500 * time.Millisecond)
	options.Lease = lease
	client := connect(t, r.Master, options)
	hold := mustLock(t, client.NewLock(rig.Name(t)))
	awaitRenewals(t, 2, hold)
	require.NoError(t, hold.Extend(t.Context(), lease))

	r.Replicas[0].Pause(t)
	assert.ErrorIs(t, hold.Extend(t.Context(), time.Hour), latchkey.ErrNotReplicated)
	rig.Await(t, soon, "the loss: the replica has it for a lease at most", hold.Lost())
	assert.ErrorIs(t, hold.Err(), latchkey.ErrLost)
	r.Replicas[0].Resume(t)
	r.AwaitInStep()
	rig.Eventually(t, soon, "it is free for others", func() error {
		next, err := client.NewLock(hold.Name()).TryLock(t.Context())
		if err == nil {
			mustUnlock(t, next)
		}
		return err
	})
}

// Replies are lost at every step of a confirmed acquisition: a caller whose acquisition succeeds
// holds the lock, and nothing else stays.
func TestReplicas_lost_replies(t *testing.T) {
	t.Parallel()
	r := rig.NewReplicated(t, 1, 0)
	for _, loss := range []rig.Loss{rig.Cut, rig.CutRequest} {
		for n := 1; n <= 5; n++ {
			t.Run(fmt.Sprint(loss, n), func(t *testing.T) {
				t.Parallel()
				admin, tap := rig.NewAdmin(t, r.Master), rig.NewTap(t, r.Master)
				client := connectVia(t, r.Master, tap.Addr(), confirmed(1500*time.Millisecond))
				name := rig.Name(t)
				tap.Lose(n, rig.Any, loss)
				hold, err := client.NewLock(name).Lock(within(t, soon))
				require.NoError(t, err, "it tries again")
				assert.EqualValues(t, 1, countInRedis(t, admin, name))
				mustUnlock(t, hold)
				rig.Eventually(t, soon, "nothing is left but what expires", free(admin, name))
			})
		}
	}
}
