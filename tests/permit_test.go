package tests

import (
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// newPermits returns a semaphore with leased permits, under a fresh name.
func newPermits(t *testing.T, client *latchkey.Client, permits int) *latchkey.PermitSemaphore {
	t.Helper()
	s := client.NewPermitSemaphore(rig.Name(t))
	set, err := s.TrySetPermits(t.Context(), permits)
	require.NoError(t, err)
	require.True(t, set)
	return s
}

// counts checks how many permits are available and held.
func counts(t *testing.T, s *latchkey.PermitSemaphore, available, acquired int) {
	t.Helper()
	stats, err := statsOf(t.Context(), s)
	require.NoError(t, err)
	assert.Equal(t, []int{available, acquired, available + acquired},
		[]int{stats.Available, stats.HolderCount, stats.Total}, "available, acquired, all")
}

func idsOf(name string) string { return "{" + name + "}:timeout" }

func TestGoldenPermitSemaphore(t *testing.T) {
	server, ctx := rig.Shared(), t.Context()
	admin := rig.NewAdmin(t, server)
	s := newPermits(t, connect(t, server), 2)
	heard := subscribeRaw(t, server, semaphoreChannelOf(s.Name()))

	forever, err := s.Acquire(ctx, latchkey.Lease(latchkey.NoExpiry))
	require.NoError(t, err)
	asked := time.Now()
	leased, err := s.Acquire(ctx, latchkey.Lease(goldenLease))
	require.NoError(t, err)
	assert.Equal(t, "0", admin.Text("GET", s.Name()))
	raw, err := hex.DecodeString(forever.ID())
	require.NoError(t, err)
	assert.Len(t, raw, 16)
	assert.Equal(t, "922337203685477", admin.Text("ZSCORE", idsOf(s.Name()), string(raw)))
	raw, err = hex.DecodeString(leased.ID())
	require.NoError(t, err)
	ends := time.UnixMilli(admin.Int("ZSCORE", idsOf(s.Name()), string(raw))).Add(-goldenLease) // by the server's clock
	assert.WithinRange(t, ends, asked.Add(-3*time.Second), time.Now().Add(3*time.Second))
	assert.Equal(t, latchkey.NoExpiry, forever.ValidFor())
	counts(t, s, 0, 2)

	require.NoError(t, leased.Release(ctx))
	assert.Equal(t, "1", rig.Await(t, soon, "the message", heard))
	require.NoError(t, forever.Release(ctx))
	assert.Equal(t, "2", rig.Await(t, soon, "the message", heard))
	counts(t, s, 2, 0)
	assert.Equal(t, []string{s.Name()}, keysLeft(admin, s.Name()), "the number of permits is all that is left")
}

// keysLeft are the keys that contain the name, without the notes of operations, which expire by
// themselves.
func keysLeft(admin *rig.Admin, name string) []string {
	return slices.DeleteFunc(admin.KeysOf(name), func(key string) bool { return strings.HasPrefix(key, "latchkey_op:") })
}

func TestPermitsAreSetOnce(t *testing.T) {
	server, ctx := rig.Shared(), t.Context()
	s := connect(t, server).NewPermitSemaphore(rig.Name(t))
	_, err := s.Acquire(ctx)
	require.ErrorIs(t, err, latchkey.ErrNotSet)
	_, err = s.TryAcquire(ctx)
	require.ErrorIs(t, err, latchkey.ErrNotSet)
	_, err = statsOf(ctx, s)
	require.ErrorIs(t, err, latchkey.ErrNotSet)
	waiting := make(chan error, 1)
	go func() {
		p, err := s.Acquire(ctx, latchkey.AwaitSet())
		waiting <- errors.Join(err, p.Release(context.WithoutCancel(ctx)))
	}()
	awaitWaiter(t, rig.NewAdmin(t, server), s.Name())
	other := connect(t, server).NewPermitSemaphore(s.Name())
	set, err := other.TrySetPermits(ctx, 1)
	require.NoError(t, err)
	assert.True(t, set)
	require.NoError(t, rig.Await(t, soon, "the waiter", waiting))
	set, err = s.TrySetPermits(ctx, 5)
	require.NoError(t, err)
	assert.False(t, set)
	counts(t, s, 1, 0)
}

// Shrinking the total below the number of held permits never lets anybody in and never ends a hold.
func TestPermitsShrinkAndGrow(t *testing.T) {
	ctx := t.Context()
	s := newPermits(t, connect(t, rig.Shared()), 10)
	permits, err := s.AcquireN(ctx, 8)
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, s.SetPermits(ctx, 3), "twice is harmless")
		counts(t, s, -5, 8)
	}
	for i, p := range permits[:6] {
		_, err := s.TryAcquire(ctx)
		require.ErrorIs(t, err, latchkey.ErrNotAcquired, "%d are released", i)
		require.NoError(t, p.Release(ctx))
	}
	extra, err := s.TryAcquire(ctx)
	require.NoError(t, err, "two are held of three")
	waiting := make(chan error, 1)
	go func() { waiting <- firstOf(s.Acquire(ctx)) }()
	awaitWaiter(t, rig.NewAdmin(t, rig.Shared()), s.Name())
	require.NoError(t, s.AddPermits(ctx, 1))
	require.NoError(t, rig.Await(t, soon, "who waits for more permits", waiting))
	require.NoError(t, extra.Err())
	counts(t, s, 0, 4)
}

// The release of a mixed batch reports the exact outcome for each permit.
func TestReleaseTellsEachApart(t *testing.T) {
	t.Parallel()
	server, ctx := rig.Shared(), t.Context()
	admin := rig.NewAdmin(t, server)
	s := newPermits(t, connect(t, server), 5)
	live, err := s.AcquireN(ctx, 2)
	require.NoError(t, err)
	brief, err := s.Acquire(ctx, latchkey.Lease(time.Second))
	require.NoError(t, err)
	rig.Await(t, soon, "the end of the lease", brief.Lost())
	rig.Eventually(t, soon, "the server sees it too", func() error {
		if n, err := acquiredIn(ctx, s); n != 2 || err != nil {
			return errors.Join(errors.New("not yet"), err)
		}
		return nil
	})
	foreign := connect(t, server).NewPermitSemaphore(s.Name())
	const invented = "00112233445566778899aabbccddeeff"
	states, err := foreign.Release(ctx, live[0].ID(), brief.ID(), invented)
	assert.ErrorIs(t, err, latchkey.ErrNotHeld)
	assert.Equal(t, []latchkey.PermitState{latchkey.PermitReleased, latchkey.PermitExpired, latchkey.PermitUnknown}, states)
	counts(t, s, 4, 1)
	assert.Equal(t, "4", admin.Text("GET", s.Name()), "the expired one is put back, once")

	states, err = s.Release(ctx, live[1].ID())
	require.NoError(t, err)
	assert.Equal(t, []latchkey.PermitState{latchkey.PermitReleased}, states)
	assert.ErrorIs(t, live[1].Err(), latchkey.ErrNotHeld, "its own client knows at once")
	assert.ErrorIs(t, live[1].Release(ctx), latchkey.ErrNotHeld)
	counts(t, s, 5, 0)
	for _, bad := range []string{"", "x", "abc", "AB"} {
		_, err = s.Release(ctx, bad)
		assert.ErrorIs(t, err, latchkey.ErrInvalid, bad)
	}
	_, err = s.Release(ctx)
	assert.ErrorIs(t, err, latchkey.ErrInvalid)
}

// A permit is renewed. A permit that somebody else has released is lost.
func TestPermitsAreRenewed(t *testing.T) {
	t.Parallel()
	server, ctx := rig.Shared(), t.Context()
	const lease = 3 * time.Second
	client := connect(t, server, latchkey.Options{Lease: lease})
	s := newPermits(t, client, 3)
	permits, err := s.AcquireN(ctx, 2)
	require.NoError(t, err)
	awaitRenewals(t, 3, permits[0], permits[1]) // one lease
	counts(t, s, 1, 2)
	_, err = connect(t, server).NewPermitSemaphore(s.Name()).Release(ctx, permits[0].ID())
	require.NoError(t, err)
	work := permits[0].Context(ctx)
	rig.Await(t, soon, "the loss", work.Done())
	assert.ErrorIs(t, context.Cause(work), latchkey.ErrLost)
	require.NoError(t, permits[1].Err(), "the other goes on")
	require.NoError(t, permits[1].Release(ctx))
	counts(t, s, 3, 0)
}

func TestLeaseOfAPermitIsSet(t *testing.T) {
	t.Parallel()
	server, ctx := rig.Shared(), t.Context()
	s := newPermits(t, connect(t, server), 2)
	p, err := s.Acquire(ctx)
	require.NoError(t, err)
	left, err := s.RemainingLease(ctx, p.ID())
	require.NoError(t, err)
	assert.InDelta(t, defaultLease, left, float64(leeway))
	require.NoError(t, s.SetLease(ctx, p.ID(), latchkey.NoExpiry))
	left, err = s.RemainingLease(ctx, p.ID())
	require.NoError(t, err)
	assert.Equal(t, latchkey.NoExpiry, left)
	require.NoError(t, s.SetLease(ctx, p.ID(), time.Second))
	assert.LessOrEqual(t, p.ValidFor(), time.Second)
	rig.Await(t, soon, "its end", p.Lost())
	rig.Eventually(t, soon, "its end on the server", func() error {
		if _, err := s.RemainingLease(ctx, p.ID()); !errors.Is(err, latchkey.ErrNotHeld) {
			return errors.New("still held")
		}
		return nil
	})
	assert.ErrorIs(t, s.SetLease(ctx, p.ID(), time.Second), latchkey.ErrNotHeld)
	counts(t, s, 2, 0)
}

// A waiter wakes at the next expiry, without any other traffic.
func TestWaiterWakesWhenAPermitExpires(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	s := newPermits(t, connect(t, server), 1)
	_, err := s.Acquire(t.Context(), latchkey.Lease(time.Second))
	require.NoError(t, err)
	p, err := connect(t, server, byMessages).NewPermitSemaphore(s.Name()).Acquire(within(t, soon))
	require.NoError(t, err)
	require.NoError(t, p.Release(t.Context()))
}
