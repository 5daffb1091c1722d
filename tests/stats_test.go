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

// freeIn returns how many permits of a semaphore of either kind are available.
func freeIn(ctx context.Context, semaphore looked) (int, error) {
	stats, err := statsOf(ctx, semaphore)
	return stats.Available, err
}

func acquiredIn(ctx context.Context, s *latchkey.PermitSemaphore) (int, error) {
	stats, err := statsOf(ctx, s)
	return stats.HolderCount, err
}

// ttlNear checks a TTL.
func ttlNear(t *testing.T, want, got time.Duration) {
	t.Helper()
	assert.LessOrEqual(t, got, want)
	assert.Greater(t, got, want/2)
}

// Inspect of a semaphore describes one moment and cost one round trip. It includes the total if
// this library has set it, but not if Redisson has.
func TestSemaphoreStats(t *testing.T) {
	t.Parallel()
	server, ctx := rig.Shared(), t.Context()
	admin, tap := rig.NewAdmin(t, server), rig.NewTap(t, server)
	s := connectVia(t, server, tap.Addr()).NewSemaphore(rig.Name(t))
	_, err := statsOf(ctx, s)
	require.ErrorIs(t, err, latchkey.ErrNotSet)
	_, err = s.TrySetPermits(ctx, 5)
	require.NoError(t, err)
	require.NoError(t, s.AcquireN(ctx, 2))
	tap.Forget()
	stats, err := statsOf(ctx, s)
	require.NoError(t, err)
	assert.Equal(t, latchkey.Object{
		Name: s.Name(), Key: s.Name(), Kind: latchkey.KindSemaphore, What: "a semaphore",
		Available: 3, HolderCount: 2, Total: 5, TTL: latchkey.NoExpiry,
	}, stats)
	assert.Len(t, tap.Commands(), 1, "one round trip")

	require.NoError(t, s.SetPermits(ctx, 1))
	_, err = s.SetTTL(ctx, time.Hour)
	require.NoError(t, err)
	stats, err = statsOf(ctx, s)
	require.NoError(t, err)
	assert.Equal(t, []int{-1, 1}, []int{stats.Available, stats.Total}, "a debt")
	ttlNear(t, time.Hour, stats.TTL)

	for what, total := range map[string][]string{
		"Redisson made it":         {"DEL", totalKeyOf(s.Name())},
		"what is there is foreign": {"HSET", totalKeyOf(s.Name()), "a", "1"},
	} {
		admin.Do("DEL", totalKeyOf(s.Name()))
		admin.Do(total...)
		stats, err = statsOf(ctx, s)
		require.NoError(t, err, what)
		assert.Equal(t, []int{-1, 0}, []int{stats.Available, stats.Total}, what)
	}
}

func totalKeyOf(name string) string { return "latchkey_sc_total:{" + name + "}" }

// Inspect of a semaphore with leases counts expired permits as available, and costs one round trip.
func TestPermitStats(t *testing.T) {
	t.Parallel()
	server, ctx := rig.Shared(), t.Context()
	tap := rig.NewTap(t, server)
	s := connectVia(t, server, tap.Addr()).NewPermitSemaphore(rig.Name(t))
	_, err := statsOf(ctx, s)
	require.ErrorIs(t, err, latchkey.ErrNotSet)
	_, err = s.TrySetPermits(ctx, 5, latchkey.TTL(time.Hour))
	require.NoError(t, err)
	_, err = s.AcquireN(ctx, 2)
	require.NoError(t, err)
	brief, err := s.Acquire(ctx, latchkey.Lease(time.Second))
	require.NoError(t, err)
	tap.Forget()
	stats, err := statsOf(ctx, s)
	require.NoError(t, err)
	assert.Equal(t, 5, stats.Total)
	assert.Equal(t, 5, stats.Available+stats.HolderCount)
	assert.Len(t, tap.Commands(), 1, "one round trip")
	ttlNear(t, time.Hour, stats.TTL)

	rig.Await(t, soon, "the end of the lease", brief.Lost())
	rig.Eventually(t, soon, "the server sees it", func() error {
		stats, err = statsOf(ctx, s)
		if err == nil && stats.HolderCount != 2 {
			err = errors.New("not yet")
		}
		return err
	})
	assert.Equal(t, []int{3, 2, 5}, []int{stats.Available, stats.HolderCount, stats.Total})

	require.NoError(t, s.SetPermits(ctx, 1))
	_, err = s.SetTTL(ctx, latchkey.NoExpiry)
	require.NoError(t, err)
	stats, err = statsOf(ctx, s)
	require.NoError(t, err)
	assert.Equal(t, latchkey.Object{
		Name: s.Name(), Key: s.Name(), Kind: latchkey.KindSemaphore, What: "a permit semaphore",
		Available: -1, HolderCount: 2, Total: 1, TTL: latchkey.NoExpiry,
	}, stats)
}

// The numbers describe one moment: while permits come and go, they add up in every reply.
func TestPermitStatsAddUp(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	s := newPermits(t, connect(t, server), 4)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	other := connect(t, server).NewPermitSemaphore(s.Name())
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if p, err := other.TryAcquire(t.Context()); err == nil {
				_ = p.Release(t.Context())
			}
		}
	}()
	for range 100 {
		stats, err := statsOf(t.Context(), s)
		require.NoError(t, err)
		require.Equal(t, 4, stats.Available+stats.HolderCount)
	}
	stop()
	rig.Await(t, soon, "the other", done)
}
