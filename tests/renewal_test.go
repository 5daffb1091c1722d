package tests

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// Renewals fail for more than half of the lease and then work again: the hold survives, whether the
// server refuses them, the connection breaks or the replies are lost.
func TestRenewalSurvivesTrouble(t *testing.T) {
	t.Parallel()
	rig.Long(t)
	const lease = 2 * time.Second
	faults := map[string]func(tap *rig.Tap, name string) (stop func()){
		"refused":      func(tap *rig.Tap, name string) func() { return tap.Refuse(rig.Mentions(name), "LOADING later") },
		"cut":          func(tap *rig.Tap, name string) func() { return tap.LoseAll(rig.Mentions(name), rig.CutRequest) },
		"replies lost": func(tap *rig.Tap, name string) func() { return tap.LoseAll(rig.Mentions(name), rig.Cut) },
	}
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		for what, fault := range faults {
			if what != "cut" && k.name != lockKind.name {
				continue // the faults are the same for all kinds
			}
			t.Run(what, func(t *testing.T) {
				t.Parallel()
				require.NoError(t, rig.InTime(t, func(before int) error {
					server, name := rig.Shared(), fmt.Sprint(rig.Name(t), before)
					tap := rig.NewTap(t, server)
					hold := mustLock(t, k.open(connectVia(t, server, tap.Addr(), latchkey.Options{Lease: lease}), name))
					for range 2 {
						heal := fault(tap, name)
						rest(lease * 6 / 10)
						heal()
						rig.Eventually(t, soon, "the hold is renewed or over", func() error {
							if left := hold.ValidFor(); left < lease*8/10 && hold.Err() == nil {
								return fmt.Errorf("valid for %v", left)
							}
							return nil
						})
					}
					return errors.Join(hold.Err(), hold.Unlock(t.Context()))
				}))
			})
		}
	})
}

// Renewals fail for longer than the lease: the hold is lost before the key is.
func TestRenewalThatFailsForTooLong(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		const lease = 3 * time.Second
		server, name := rig.Shared(), rig.Name(t)
		admin, tap := rig.NewAdmin(t, server), rig.NewTap(t, server)
		hold := mustLock(t, k.open(connectVia(t, server, tap.Addr(), latchkey.Options{Lease: lease}), name))
		tap.Refuse(rig.Mentions(name), "LOADING later")
		// Compared as deadlines: on a busy machine the test may notice the loss, or query the key,
		// tens of milliseconds late. Neither deadline moves any more, so one reply that is fast
		// enough to show the order suffices.
		var ends time.Time
		rig.Eventually(t, lease*2/3, "the hold ends while the key is there", func() error {
			asked := time.Now()
			ttl := admin.PTTL(name)
			ends = time.Now().Add(hold.ValidFor())
			if left := ends.Sub(asked); left >= ttl {
				return fmt.Errorf("valid for %v, the key is there for %v", left, ttl)
			}
			return nil
		})
		rig.Await(t, soon, "the loss", hold.Lost())
		assert.WithinDuration(t, ends, time.Now(), leeway)
		rig.Eventually(t, soon, "the key goes", free(admin, name))
	})
}

// One key of a batch is replaced by a value of another type: the other holds are renewed, and only
// its own hold is lost.
func TestOneBadKeyDoesNotSpoilTheBatch(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		const lease = 3 * time.Second
		server, name := rig.Shared(), rig.Name(t)
		admin := rig.NewAdmin(t, server)
		client := connect(t, server, latchkey.Options{Lease: lease})
		var holds []*latchkey.Hold
		for i := range 10 {
			holds = append(holds, mustLock(t, k.open(client, fmt.Sprintf("%s %d", name, i))))
		}
		poisoned := holds[7]
		admin.Do("DEL", poisoned.Name())
		admin.Do("RPUSH", poisoned.Name(), "poison")

		rig.Await(t, soon, "the loss", poisoned.Lost())
		var others []renewable
		for _, hold := range slices.Delete(holds, 7, 8) {
			others = append(others, hold)
			defer mustUnlock(t, hold)
		}
		awaitRenewals(t, 2, others...)
		assert.Equal(t, "list", admin.Text("TYPE", poisoned.Name()), "the poison is not touched")
	})
}

// From the moment a release begins, no renewal of that hold is sent, whatever the outcome of the
// release: the key can only expire.
func TestNoRenewalAfterAFailedRelease(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		const lease = time.Second
		server, name := rig.Shared(), rig.Name(t)
		admin, tap := rig.NewAdmin(t, server), rig.NewTap(t, server)
		options := latchkey.Options{Lease: lease, RetryBudget: 200 * time.Millisecond}
		hold := mustLock(t, k.open(connectVia(t, server, tap.Addr(), options), name))
		tap.LoseAll(rig.Mentions(name), rig.CutRequest)

		err := hold.Unlock(t.Context())
		require.Error(t, err)
		assert.NotErrorIs(t, err, latchkey.ErrNotHeld)
		last := admin.PTTL(name)
		rig.Eventually(t, soon, "the key is gone", func() error {
			ttl := admin.PTTL(name)
			assert.LessOrEqual(t, ttl, last, "it was renewed")
			last = ttl
			return free(admin, name)()
		})
	})
}

// The release of another client has granted a lock after a wait, so there is little time to renew
// it. An answer that comes before the lease is over counts, however late it is.
func TestRenewalOfAGrantAnsweredLate(t *testing.T) {
	t.Parallel()
	const grant = 2 * time.Second
	require.NoError(t, rig.InTime(t, func(int) error {
		l := newDelayedLock(t, latchkey.Options{Tuning: latchkey.Tuning{StaleWaiterTimeout: grant}})
		before := mustLock(t, l.other)
		next := lockInBackground(within(t, soon), l.lock)
		queued(t, rig.NewAdmin(t, rig.Shared()), l.lock.Name(), 1)
		rest(grant * 4 / 10)
		mustUnlock(t, before)
		got := rig.Await(t, soon, "the grant", next)
		require.NoError(t, got.err)
		first, second := l.tap.HoldReply(l.mine()), l.tap.HoldReply(l.mine()) // a second renewal would be late too
		rig.Await(t, soon, "the renewal", first.Arrived)
		rest(grant / 5)
		first.Release()
		rest(grant / 2)
		second.Release()
		return errors.Join(got.hold.Err(), got.hold.Unlock(t.Context()))
	}))
}

// Short leases, many goroutines, one name: every live hold is renewed, and none is reported lost.
func TestNoFalseLoss(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		require.NoError(t, rig.InTime(t, func(before int) error {
			lease := 150 * time.Millisecond << before // longer than the machine was late
			return holdBusily(t, k, fmt.Sprint(rig.Name(t), before), lease)
		}))
	})
}

// holdBusily returns an error if something goes wrong while many goroutines use a lock, with one
// hold that lasts longer than a lease.
func holdBusily(t *testing.T, k kind, name string, lease time.Duration) error {
	events := eventCounts{n: map[latchkey.EventType]int{}}
	client := connect(t, rig.Shared(), latchkey.Options{Lease: lease, Observer: events.count})
	lock, end := k.open(client, name), time.Now().Add(rig.Lasting(time.Second/2))
	var all sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		all.Go(func() {
			for errs[i] == nil && time.Now().Before(end) {
				hold, err := lock.Lock(t.Context())
				if err == nil && i == 0 {
					rest(2 * lease) // long enough to need renewals
				}
				if err == nil {
					err = errors.Join(hold.Err(), hold.Unlock(t.Context()))
				}
				errs[i] = err
			}
		})
	}
	all.Wait()
	if err := errors.Join(errors.Join(errs...), client.Close(t.Context())); err != nil { // which delivers all events
		return err
	}
	events.mu.Lock()
	defer events.mu.Unlock()
	n := events.n
	t.Logf("events: %v", n)
	if n[latchkey.EventLost] > 0 || n[latchkey.EventRenewed] == 0 || n[latchkey.EventAcquired] != n[latchkey.EventReleased] {
		return fmt.Errorf("events: %v", n)
	}
	return free(rig.NewAdmin(t, rig.Shared()), name)()
}

// Extend lengthens the lease once, never shortens it, and does not go beyond a limit.
func TestExtend(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		server, name := rig.Shared(), rig.Name(t)
		admin := rig.NewAdmin(t, server)
		hold := mustLock(t, k.open(connect(t, server), name), latchkey.Lease(5*time.Minute))
		require.NoError(t, hold.Extend(t.Context(), 20*time.Minute))
		assert.InDelta(t, 20, admin.PTTL(name).Minutes(), 2)
		assert.InDelta(t, 20, hold.ValidFor().Minutes(), 2)
		require.NoError(t, hold.Extend(t.Context(), time.Second))
		assert.InDelta(t, 20, admin.PTTL(name).Minutes(), 2)
		assert.ErrorIs(t, hold.Extend(t.Context(), 0), latchkey.ErrInvalid)
		mustUnlock(t, hold)
		assert.ErrorIs(t, hold.Extend(t.Context(), time.Second), latchkey.ErrNotHeld)

		limited := mustLock(t, k.open(connect(t, server), name), latchkey.MaxHold(5*time.Minute))
		assert.ErrorIs(t, limited.Extend(t.Context(), 20*time.Minute), latchkey.ErrMaxHold)
		mustUnlock(t, limited)
	})
}

// Do tells the function, and its caller, that the lock was lost.
func TestDoReportsTheLoss(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		server, name := rig.Shared(), rig.Name(t)
		lock := k.open(connect(t, server), name)
		err := lock.Do(t.Context(), func(ctx context.Context) error {
			rig.Await(t, soon, "the loss", ctx.Done())
			return nil
		}, latchkey.Lease(time.Second))
		assert.ErrorIs(t, err, latchkey.ErrLost)

		failure := errors.New("of the work")
		err = lock.Do(t.Context(), func(context.Context) error { return failure })
		assert.ErrorIs(t, err, failure)
		assert.NotErrorIs(t, err, latchkey.ErrLost)
		assert.Panics(t, func() { _ = lock.Do(t.Context(), func(context.Context) error { panic("at work") }) })
		assert.NoError(t, free(rig.NewAdmin(t, server), name)(), "released also after a panic")
	})
}

// renewable is a hold or a permit.
type renewable interface {
	Err() error
	ValidFor() time.Duration
}

// awaitRenewals waits until each of the holds has been renewed n times. It fails the test when one
// of them is over.
func awaitRenewals(t testing.TB, n int, holds ...renewable) {
	t.Helper()
	renewed, ends := make([]int, len(holds)), make([]time.Time, len(holds)) // when each hold ends at the latest
	rig.Eventually(t, time.Minute, fmt.Sprintf("%d renewals of each hold", n), func() error {
		for i, hold := range holds {
			require.NoError(t, hold.Err())
			asked := time.Now()
			valid := hold.ValidFor()
			switch latest := time.Now().Add(valid); {
			case ends[i].IsZero():
				ends[i] = latest
			case asked.Add(valid).After(ends[i]):
				renewed[i], ends[i] = renewed[i]+1, latest
			}
		}
		if slices.Min(renewed) < n {
			return fmt.Errorf("%d", renewed)
		}
		return nil
	})
}
