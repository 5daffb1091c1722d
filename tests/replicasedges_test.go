package tests

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// An attempt whose reply never came may be executed late. It is then undone, even if the next
// attempt was confirmed at once (FM-01).
func TestReplicas_late_attempts_are_undone(t *testing.T) {
	t.Parallel()
	r := rig.NewReplicated(t, 1, 0)
	tap, admin := rig.NewTap(t, r.Master), rig.NewAdmin(t, r.Master)
	options := confirmed(time.Second)
	options.RetryBudget = 8 * time.Second // the same call makes the next attempt, after a quarter of it
	client := connectVia(t, r.Master, tap.Addr(), options)
	mustUnlock(t, mustLock(t, client.NewFencedLock(rig.Name(t))))
	name := rig.Name(t)
	late := tap.HoldCommand(rig.Mentions(name))
	hold := mustLock(t, client.NewFencedLock(name))
	rig.Await(t, soon, "the first attempt is held", late.Arrived)
	mustUnlock(t, hold)
	require.False(t, admin.Exists(name))
	late.Release()
	rig.Eventually(t, soon, "it is executed late", func() error {
		if token := admin.Text("GET", tokenKey(name)); token != "2" {
			return errors.New(token)
		}
		return nil
	})
	rig.Eventually(t, soon, "and undone", free(admin, name))
}

// Renewals do not queue behind acquisitions.
func TestReplicas_renewals_go_first(t *testing.T) {
	t.Parallel()
	const lag, lease = 300 * time.Millisecond, 5 * time.Second
	r := rig.NewReplicated(t, 1, lag)
	options := confirmed(2 * time.Second)
	options.Lease = lease
	client := connect(t, r.Master, options)
	hold := mustLock(t, client.NewLock(rig.Name(t)))
	ctx, cancel := context.WithCancel(within(t, time.Minute))
	var crowd sync.WaitGroup
	for i := range rig.Sized(200) {
		lock := client.NewLock(fmt.Sprint(rig.Name(t), i))
		crowd.Go(func() {
			for ctx.Err() == nil {
				if h, err := lock.Lock(ctx); err == nil {
					_ = h.Unlock(context.Background())
				}
			}
		})
	}
	awaitRenewals(t, 1, hold)
	cancel()
	crowd.Wait()
	mustUnlock(t, hold)
}

// A replica that confirms within Replicas.Timeout confirms in time, even if that is long in
// proportion to the lease.
func TestReplicas_slow_renewals(t *testing.T) {
	t.Parallel()
	r := rig.NewReplicated(t, 1, 2*time.Second)
	options := confirmed(5900 * time.Millisecond)
	options.Lease = 12 * time.Second
	hold := mustLock(t, connect(t, r.Master, options).NewLock(rig.Name(t)))
	awaitRenewals(t, 1, hold)
	mustUnlock(t, hold)
}

// A connection on which the server has fallen silent is not used again.
func TestReplicas_silent_connection(t *testing.T) {
	t.Parallel()
	r := rig.NewReplicated(t, 1, 0)
	tap := rig.NewTap(t, r.Master)
	options := confirmed(1500 * time.Millisecond)
	options.RetryBudget = 8 * time.Second
	client := connectVia(t, r.Master, tap.Addr(), options)
	mustUnlock(t, mustLock(t, client.NewLock(rig.Name(t))))
	hit := tap.Lose(1, rig.Named("WAIT"), rig.Mute)
	hold, err := client.NewLock(rig.Name(t)).TryLock(t.Context())
	rig.Await(t, soon, "the loss", hit)
	require.NoError(t, err, "it tries again, on another connection")
	mustUnlock(t, hold)
}

// A re-entry that is not confirmed is undone at once, and the outer hold remains.
func TestReplicas_reentry(t *testing.T) {
	t.Parallel()
	r := rig.NewReplicated(t, 1, 0)
	admin := rig.NewAdmin(t, r.Master)
	client := connect(t, r.Master, confirmed(1500*time.Millisecond))
	var locks []anyLock
	var outer []*latchkey.Hold
	for _, k := range kinds {
		if k.reentrant {
			locks = append(locks, k.open(client, rig.Name(t)))
			outer = append(outer, mustLock(t, locks[len(locks)-1]))
		}
	}
	r.Replicas[0].Pause(t)
	errs := make([]error, len(locks))
	var calls sync.WaitGroup
	for i, lock := range locks {
		calls.Go(func() { _, errs[i] = lock.Lock(outer[i].Context(within(t, soon))) })
	}
	calls.Wait()
	for i, lock := range locks {
		assert.ErrorIs(t, errs[i], latchkey.ErrNotReplicated)
		assert.NotErrorIs(t, errs[i], latchkey.ErrUnknownOutcome, "it has been undone")
		assert.EqualValues(t, 1, countInRedis(t, admin, lock.Name()))
	}
	r.Replicas[0].Resume(t)
	r.AwaitInStep()
	for i, lock := range locks {
		require.NoError(t, outer[i].Err())
		assert.Equal(t, 1, countOf(outer[i]))
		inner := mustReenter(t, outer[i], lock)
		assert.Equal(t, 2, countOf(outer[i]))
		mustUnlock(t, inner)
		mustUnlock(t, outer[i])
	}
	for _, lock := range locks {
		rig.Eventually(t, soon, "nothing is left", free(admin, lock.Name()))
	}
}

func mustReenter(t *testing.T, outer *latchkey.Hold, lock anyLock) *latchkey.Hold {
	t.Helper()
	hold, err := lock.Lock(outer.Context(within(t, soon)))
	require.NoError(t, err)
	return hold
}

// The release of an inner hold extends the expiry of the lock, but no replica has confirmed that.
func TestReplicas_inner_release(t *testing.T) {
	t.Parallel()
	r := rig.NewReplicated(t, 1, 0)
	client := connect(t, r.Master, confirmed(2*time.Second))
	lock := client.NewLock(rig.Name(t))
	outer := mustLock(t, lock)
	inner := mustReenter(t, outer, lock)
	require.Equal(t, 2, countOf(outer))
	r.Replicas[0].Pause(t)
	rest(100 * time.Millisecond) // less is left than a lease
	before := outer.ValidFor()
	mustUnlock(t, inner)
	assert.LessOrEqual(t, outer.ValidFor(), before)
	r.Replicas[0].Resume(t)
	mustUnlock(t, outer)
}

// A downgrade is relied on only if replicas have confirmed it.
func TestReplicas_downgrade(t *testing.T) {
	t.Parallel()
	r := rig.NewReplicated(t, 1, 0)
	admin, replica := rig.NewAdmin(t, r.Master), rig.NewAdmin(t, r.Replicas[0])
	client := connect(t, r.Master, confirmed(1500*time.Millisecond))
	name := rig.Name(t)
	write := mustLock(t, client.NewRWLock(name).Writer())
	read, err := write.Downgrade(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "read", replica.Text("HGET", name, "mode"))
	mustUnlock(t, read)

	write = mustLock(t, client.NewRWLock(name).Writer())
	r.Replicas[0].Pause(t)
	_, err = write.Downgrade(t.Context())
	require.ErrorIs(t, err, latchkey.ErrNotReplicated)
	rig.Eventually(t, soon, "neither hold stays", free(admin, name))
	require.Error(t, write.Err())
	r.Replicas[0].Resume(t)
}

// A server that is out of memory still lets holds be renewed.
func TestReplicas_out_of_memory(t *testing.T) {
	t.Parallel()
	r := rig.NewReplicated(t, 1, 0)
	options := confirmed(1500 * time.Millisecond)
	options.Lease = 5 * time.Second
	client := connect(t, r.Master, options)
	permit, err := newPermits(t, client, 3).Acquire(t.Context())
	require.NoError(t, err)
	holds := []renewable{permit}
	for _, k := range kinds {
		holds = append(holds, mustLock(t, k.open(client, rig.Name(t))))
	}
	rig.NewAdmin(t, r.Master).Do("CONFIG", "SET", "maxmemory", "1")
	awaitRenewals(t, 1, holds...)
	_, err = client.NewLock(rig.Name(t)).TryLock(t.Context())
	require.ErrorContains(t, err, "OOM")
}

// The call waits for the reply "too few", however close the timeout of the replicas is to the retry
// budget.
func TestReplicas_long_timeout(t *testing.T) {
	t.Parallel()
	const timeout = 2 * time.Second
	r := rig.NewReplicated(t, 1, 0)
	options := confirmed(timeout)
	options.RetryBudget = timeout + 50*time.Millisecond
	client := connect(t, r.Master, options)
	unlockInTheEnd(t, confirmedHold(t, client.NewLock(rig.Name(t))))
	r.Replicas[0].Pause(t)
	require.NoError(t, rig.InTime(t, func(int) error { // on a busy machine, the reply or the undo comes too late
		start := time.Now()
		_, err := client.NewLock(rig.Name(t)).TryLock(t.Context())
		if !errors.Is(err, latchkey.ErrNotReplicated) || errors.Is(err, latchkey.ErrUnknownOutcome) {
			return fmt.Errorf("after %v: %w", time.Since(start), err)
		}
		assert.Less(t, time.Since(start), timeout+leeway)
		return nil
	}))
	r.Replicas[0].Resume(t)
}

// Many calls that wait for a replica that is gone take little longer than their budget, and leave
// nothing behind.
func TestReplicas_crowd(t *testing.T) {
	t.Parallel()
	r := rig.NewReplicated(t, 1, 0)
	admin := rig.NewAdmin(t, r.Master)
	options := confirmed(500 * time.Millisecond)
	options.RetryBudget = 1500 * time.Millisecond
	client := connect(t, r.Master, options)
	name := rig.Name(t)
	try := func(i int) error {
		start := time.Now()
		_, err := client.NewLock(fmt.Sprint(name, i)).TryLock(t.Context())
		assert.Less(t, time.Since(start), options.RetryBudget+options.Replicas.Timeout+2*leeway, "%d", i)
		return err
	}
	r.Replicas[0].Pause(t)
	late, crowd := rig.WatchLateness(nil), rig.Goroutines(t)
	var unknown atomic.Int32
	for i := range 100 {
		crowd.Go(func() {
			err := try(i)
			if errors.Is(err, latchkey.ErrNotReplicated) {
				if errors.Is(err, latchkey.ErrUnknownOutcome) { // the answer to the undo was late
					unknown.Add(1)
				}
				return
			}
			assert.ErrorIs(t, err, latchkey.ErrUnavailable)
		})
	}
	crowd.Wait()
	if worst := late(); worst < options.RetryBudget/12 {
		assert.Zero(t, unknown.Load(), "all has been undone, on a machine that was %v late", worst)
	}
	rig.Eventually(t, soon, "nothing is left", free(admin, name))
	r.Replicas[0].Resume(t)
	r.AwaitInStep()
	mustUnlock(t, mustLock(t, client.NewLock(name)))
	assert.Less(t, admin.Connections(), 40)
}

// A retry budget that is too short for any Replicas.Timeout is fine for a client that waits for no
// replicas.
func TestReplicas_off_needs_no_timeout(t *testing.T) {
	t.Parallel()
	_, closeAll, err := dial(rig.Shared(), rig.Shared().Addr(), latchkey.Options{RetryBudget: time.Millisecond})
	assert.NotErrorIs(t, err, latchkey.ErrInvalid)
	if err == nil { // which takes a server that replies within the budget
		assert.NoError(t, closeAll(within(t, soon)))
	}
}

// A caller that gives up while it waits for the replicas learns the reason, and nothing stays.
func TestReplicas_context_ends_meanwhile(t *testing.T) {
	t.Parallel()
	r := rig.NewReplicated(t, 1, 0)
	client := connect(t, r.Master, confirmed(2*time.Second))
	r.Replicas[0].Pause(t)
	t.Run("all", func(t *testing.T) {
		eachKind(t, func(t *testing.T, k kind) {
			t.Parallel()
			admin, name := rig.NewAdmin(t, r.Master), rig.Name(t)
			_, err := k.open(client, name).Lock(within(t, time.Second))
			requireUnavailable(t, err) // and not that there are too few replicas: it has not waited for them
			require.ErrorIs(t, err, context.DeadlineExceeded)
			rig.Eventually(t, soon, "nothing is left", free(admin, name))
		})
	})
	r.Replicas[0].Resume(t)
}

// Close waits no longer than the replicas may take.
func TestReplicas_close_meanwhile(t *testing.T) {
	t.Parallel()
	r := rig.NewReplicated(t, 1, 0)
	admin := rig.NewAdmin(t, r.Master)
	const calls, timeout = 5, 2500 * time.Millisecond
	client := connect(t, r.Master, confirmed(timeout))
	r.Replicas[0].Pause(t)
	name := rig.Name(t)
	var waiting []<-chan acquisition
	for i := range calls {
		waiting = append(waiting, lockInBackground(within(t, soon), client.NewLock(fmt.Sprint(name, i))))
	}
	rig.Eventually(t, soon, "they are on their way", func() error {
		if n := len(admin.KeysOf(name)); n < calls {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
	start := time.Now()
	require.NoError(t, client.Close(within(t, soon)))
	assert.Less(t, time.Since(start), timeout+leeway)
	for _, w := range waiting {
		require.Error(t, rig.Await(t, soon, "the end", w).err)
	}
	require.NoError(t, free(admin, name)())
	r.Replicas[0].Resume(t)
}

// When the first in line is not confirmed, the next one tries.
func TestReplicas_line_moves_on(t *testing.T) {
	t.Parallel()
	r := rig.NewReplicated(t, 1, 0)
	admin := rig.NewAdmin(t, r.Master)
	client, other := connect(t, r.Master, confirmed(600*time.Millisecond)), connect(t, r.Master)
	var held []*latchkey.Hold
	var waiting []<-chan acquisition
	for _, k := range kinds {
		name := rig.Name(t)
		held = append(held, mustLock(t, k.open(other, name)))
		first := lockInBackground(within(t, soon), k.open(client, name))
		if k.messages {
			awaitWaiter(t, admin, name)
		}
		second := lockInBackground(within(t, soon), k.open(client, name), latchkey.Wait(soon))
		waiting = append(waiting, first, second)
	}
	r.Replicas[0].Pause(t)
	for _, hold := range held {
		mustUnlock(t, hold)
	}
	for _, each := range waiting {
		assert.ErrorIs(t, rig.Await(t, soon, "the first or the second", each).err, latchkey.ErrNotReplicated)
	}
	r.Replicas[0].Resume(t)
	r.AwaitInStep()
	for _, hold := range held {
		rig.Eventually(t, soon, "nothing is left", free(admin, hold.Name()))
	}
}

// Without Replicas, nothing is sent for a confirmation. With it, an acquisition costs one more
// round trip.
func TestReplicas_cost(t *testing.T) {
	t.Parallel()
	r := rig.NewReplicated(t, 1, 0)
	eachKind(t, func(t *testing.T, k kind) {
		names := func(options ...latchkey.Options) (sent []string) {
			tap := rig.NewTap(t, r.Master)
			client := connectVia(t, r.Master, tap.Addr(), options...)
			lock := k.open(client, rig.Name(t))
			mustUnlock(t, mustLock(t, lock)) // the scripts are loaded
			tap.Forget()
			mustUnlock(t, mustLock(t, lock))
			for _, c := range tap.Commands() {
				sent = append(sent, c.Name())
			}
			return sent
		}
		first := "EVALSHA"
		if k.name == "Mutex" {
			first = "SET"
		}
		assert.Equal(t, []string{first, "EVALSHA"}, names())
		assert.Equal(t, []string{first, "EVALSHA", "SET", "WAIT", "EVALSHA"}, names(confirmed(2*time.Second)))
	})
}
