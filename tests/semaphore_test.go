package tests

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

func semaphoreChannelOf(name string) string { return "redisson_sc:{" + name + "}" }

// presenceChannelOf is the channel on which clients of this library listen in addition.
func presenceChannelOf(name string) string { return "latchkey:{" + name + "}:waits" }

// newSemaphore returns a semaphore with permits under a fresh name.
func newSemaphore(t *testing.T, client *latchkey.Client, permits int) *latchkey.Semaphore {
	t.Helper()
	s := client.NewSemaphore(rig.Name(t))
	set, err := s.TrySetPermits(t.Context(), permits)
	require.NoError(t, err)
	require.True(t, set)
	return s
}

func available(t *testing.T, s *latchkey.Semaphore) int {
	t.Helper()
	n, err := freeIn(t.Context(), s)
	require.NoError(t, err)
	return n
}

func TestGoldenSemaphore(t *testing.T) {
	server := rig.Shared()
	admin := rig.NewAdmin(t, server)
	s := newSemaphore(t, connect(t, server), 3)
	heard := subscribeRaw(t, server, semaphoreChannelOf(s.Name()))

	require.NoError(t, s.Acquire(t.Context()))
	assert.Equal(t, "2", admin.Text("GET", s.Name()))
	require.NoError(t, s.Release(t.Context()))
	assert.Equal(t, "3", admin.Text("GET", s.Name()))
	assert.Equal(t, "3", rig.Await(t, soon, "the message", heard))
	assert.Negative(t, admin.PTTL(s.Name()), "it does not expire")
}

// Setting, adding, draining and deleting permits, and what these calls report.
func TestSemaphoreAdministration(t *testing.T) {
	server, ctx := rig.Shared(), t.Context()
	admin := rig.NewAdmin(t, server)
	s := newSemaphore(t, connect(t, server), 3)
	set, err := s.TrySetPermits(ctx, 5)
	require.NoError(t, err)
	assert.False(t, set, "it is set")
	require.NoError(t, s.AcquireN(ctx, 2))
	for range 2 {
		require.NoError(t, s.SetPermits(ctx, 10), "twice is harmless")
		assert.Equal(t, 8, available(t, s), "two are taken")
	}
	require.NoError(t, s.AddPermits(ctx, -3))
	assert.Equal(t, 5, available(t, s))
	require.NoError(t, s.SetPermits(ctx, 1))
	assert.Equal(t, -1, available(t, s), "a debt")
	assert.ErrorIs(t, s.TryAcquire(ctx), latchkey.ErrNotAcquired)
	drained, err := s.Drain(ctx)
	require.NoError(t, err)
	assert.Equal(t, -1, drained)
	require.NoError(t, s.ReleaseN(ctx, 4))
	drained, err = s.Drain(ctx)
	require.NoError(t, err)
	assert.Equal(t, 4, drained)
	assert.Zero(t, available(t, s))

	there, err := s.ReleaseIfExists(ctx, 1)
	require.NoError(t, err)
	assert.True(t, there)
	gone, err := s.Delete(ctx)
	require.NoError(t, err)
	assert.True(t, gone)
	there, err = s.ReleaseIfExists(ctx, 1)
	require.NoError(t, err)
	assert.False(t, there)
	_, err = statsOf(ctx, s)
	assert.ErrorIs(t, err, latchkey.ErrNotSet)
	assert.ErrorIs(t, s.Acquire(ctx), latchkey.ErrNotSet)
	assert.False(t, admin.Exists(s.Name()))
}

func TestSemaphoreWithATimeToLive(t *testing.T) {
	t.Parallel()
	server, ctx := rig.Shared(), t.Context()
	admin := rig.NewAdmin(t, server)
	s := connect(t, server).NewSemaphore(rig.Name(t))
	_, err := s.TrySetPermits(ctx, 3, latchkey.TTL(time.Hour))
	require.NoError(t, err)
	lives := func(what string) {
		t.Helper()
		assert.InDelta(t, time.Hour, admin.PTTL(s.Name()), float64(time.Minute), what)
	}
	require.NoError(t, s.Acquire(ctx))
	lives("after a take")
	require.NoError(t, s.Release(ctx))
	lives("after a release")
	require.NoError(t, s.AddPermits(ctx, 2))
	lives("after an addition")
	require.NoError(t, s.SetPermits(ctx, 7))
	lives("after a change")
	_, err = s.Drain(ctx)
	require.NoError(t, err)
	lives("after a drain")
	_, err = s.SetTTL(ctx, latchkey.NoExpiry)
	require.NoError(t, err)
	assert.Negative(t, admin.PTTL(s.Name()))
	_, err = s.SetTTL(ctx, 50*time.Millisecond)
	require.NoError(t, err)
	assert.ErrorIs(t, s.Acquire(within(t, soon)), latchkey.ErrNotSet, "who waits is told that it is gone")
}
