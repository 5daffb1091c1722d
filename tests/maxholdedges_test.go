package tests

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// brieflyHeld ends renewed holds before the fixed leases of these tests.
var brieflyHeld = latchkey.Options{MaxHold: 700 * time.Millisecond, Lease: 3 * time.Second}

// hasALimit checks that a renewed hold ends before a fixed lease, the limit and two renewed leases
// are over.
func hasALimit(t *testing.T, hold *latchkey.Hold) {
	t.Helper()
	rig.Await(t, 6*time.Second, "the end of a renewed hold, which has no limit", hold.Lost())
	assert.Error(t, hold.Err(), "a renewed hold without a limit")
}

// Options.MaxHold limits every renewed hold. A renewed re-entry of a hold with a fixed lease is
// one: nothing else ends it.
func TestMaxHold_of_a_client_renewed_reentry_of_a_fixed_lease(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		lock := k.open(connect(t, rig.Shared(), brieflyHeld), rig.Name(t))
		outer := mustLock(t, lock, latchkey.Lease(2*time.Second))
		inner, err := lock.Lock(outer.Context(t.Context()))
		require.NoError(t, err)
		hasALimit(t, inner)
	}, reentrant)
}

// The read hold that Downgrade makes is renewed, too.
func TestMaxHold_of_a_client_downgrade_of_a_fixed_lease(t *testing.T) {
	t.Parallel()
	client := connect(t, rig.Shared(), brieflyHeld)
	write := mustLock(t, client.NewRWLock(rig.Name(t)).Writer(), latchkey.Lease(2*time.Second))
	read, err := write.Downgrade(t.Context())
	require.NoError(t, err)
	hasALimit(t, read)
}

// A reader under a write hold with a fixed lease is renewed as well.
func TestMaxHold_of_a_client_reader_under_a_fixed_writer(t *testing.T) {
	t.Parallel()
	client := connect(t, rig.Shared(), brieflyHeld)
	rw := client.NewRWLock(rig.Name(t))
	write := mustLock(t, rw.Writer(), latchkey.Lease(2*time.Second))
	read, err := rw.Reader().Lock(write.Context(t.Context()))
	require.NoError(t, err)
	hasALimit(t, read)
}

// SetLease of a permit of one's own either counts or fails.
func TestMaxHold_of_a_client_set_lease(t *testing.T) {
	t.Parallel()
	ctx := within(t, soon)
	client := connect(t, rig.Shared())
	s := newPermits(t, client, 1)
	p, err := s.Acquire(ctx, latchkey.MaxHold(time.Second))
	require.NoError(t, err)
	if err := s.SetLease(ctx, p.ID(), time.Minute); err != nil {
		require.ErrorIs(t, err, latchkey.ErrMaxHold)
		return
	}
	rest(2 * time.Second)
	if p.Err() == nil {
		return
	}
	rig.Eventually(t, soon, "the server does not keep what the holder has lost", func() error {
		if left, err := s.RemainingLease(ctx, p.ID()); !errors.Is(err, latchkey.ErrNotHeld) {
			return fmt.Errorf("holder: %w; server: %v, %w", p.Err(), left, err)
		}
		return nil
	})
}
