package tests

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// Options.MaxHold limits every renewed hold. A renewed re-entry of a hold with a fixed lease is one: nothing else ends it.
func TestMaxHold_of_a_client_renewed_reentry_of_a_fixed_lease(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		if !k.reentrant {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			client := connect(t, rig.Shared(), latchkey.Options{MaxHold: 700 * time.Millisecond, Lease: 3 * time.Second})
			lock := k.open(client, rig.Name(t))
			outer := mustLock(t, lock, latchkey.Lease(2*time.Second))
			inner, err := lock.Lock(outer.Context(t.Context()))
			require.NoError(t, err)
			time.Sleep(6 * time.Second) // the fixed lease, the limit and two renewed leases are over
			assert.Error(t, inner.Err(), "a renewed hold without a limit")
		})
	}
}

// The read hold that Downgrade makes is renewed, too.
func TestMaxHold_of_a_client_downgrade_of_a_fixed_lease(t *testing.T) {
	t.Parallel()
	client := connect(t, rig.Shared(), latchkey.Options{MaxHold: 700 * time.Millisecond, Lease: 3 * time.Second})
	write := mustLock(t, client.NewRWLock(rig.Name(t)).Writer(), latchkey.Lease(2*time.Second))
	read, err := write.Downgrade(t.Context())
	require.NoError(t, err)
	time.Sleep(6 * time.Second)
	assert.Error(t, read.Err(), "a renewed hold without a limit")
}

// A reader under a write hold with a fixed lease is renewed as well.
func TestMaxHold_of_a_client_reader_under_a_fixed_writer(t *testing.T) {
	t.Parallel()
	client := connect(t, rig.Shared(), latchkey.Options{MaxHold: 700 * time.Millisecond, Lease: 3 * time.Second})
	rw := client.NewRWLock(rig.Name(t))
	write := mustLock(t, rw.Writer(), latchkey.Lease(2*time.Second))
	read, err := rw.Reader().Lock(write.Context(t.Context()))
	require.NoError(t, err)
	time.Sleep(6 * time.Second)
	assert.Error(t, read.Err(), "a renewed hold without a limit")
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
	time.Sleep(2 * time.Second)
	left, err := s.RemainingLease(ctx, p.ID())
	t.Logf("holder: %v; server: %v, %v", p.Err(), left, err)
	if p.Err() != nil {
		assert.ErrorIs(t, err, latchkey.ErrNotHeld, "the holder has lost it, and the server keeps it")
	}
}
