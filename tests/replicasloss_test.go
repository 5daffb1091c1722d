package tests

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// The replica is silent, so that nothing is confirmed. The loss of a hold needs no confirmation:
// the hold is lost at its next renewal, not at the end of its lease, and the holds that are renewed
// with it are not lost.
func TestReplicas_loss_needs_no_confirmation(t *testing.T) {
	t.Parallel()
	r := rig.NewReplicated(t, 1, 0)
	admin := rig.NewAdmin(t, r.Master)
	options := confirmed(time.Second)
	options.Lease = 9 * time.Second
	eachKind(t, func(t *testing.T, k kind) {
		lines, options := make(chan string, 100), options
		options.Logger = slog.New(logFunc(func(r slog.Record) { lines <- r.Message }))
		client, name := connect(t, r.Master, options), rig.Name(t)
		gone, kept := mustLock(t, k.open(client, name)), mustLock(t, k.open(client, name+" kept"))
		r.Replicas[0].Pause(t)
		admin.Do("DEL", name)
		rig.Await(t, soon, "the loss", gone.Lost())
		require.NoError(t, kept.Err())
		line := ""
		for !strings.HasPrefix(line, "latchkey: hold lost") {
			line = rig.Await(t, soon, "the line", lines)
		}
		assert.Contains(t, line, "the key is gone")
		r.Replicas[0].Resume(t)
		mustUnlock(t, kept)
		require.ErrorIs(t, gone.Unlock(t.Context()), latchkey.ErrLost)
	})
}

// The same applies to Extend and SetLease.
func TestReplicas_extension_of_nothing_needs_no_confirmation(t *testing.T) {
	t.Parallel()
	r := rig.NewReplicated(t, 1, 0)
	admin := rig.NewAdmin(t, r.Master)
	client := connect(t, r.Master, confirmed(time.Second))
	holds := map[string]*latchkey.Hold{}
	eachKind(t, func(t *testing.T, k kind) {
		name := rig.Name(t)
		holds[name] = mustLock(t, k.open(client, name), latchkey.Lease(time.Minute))
	})
	permits := newPermits(t, client, 1)
	permit, err := permits.Acquire(t.Context(), latchkey.Lease(time.Minute))
	require.NoError(t, err)
	r.Replicas[0].Pause(t)
	for name, hold := range holds {
		require.ErrorIs(t, hold.Extend(t.Context(), 2*time.Minute), latchkey.ErrNotReplicated, name)
		admin.Do("DEL", name)
		err := hold.Extend(t.Context(), 2*time.Minute)
		assert.ErrorIs(t, err, latchkey.ErrNotHeld, name)
		assert.ErrorIs(t, hold.Err(), latchkey.ErrLost, name)
	}
	_, err = connect(t, r.Master).NewPermitSemaphore(permits.Name()).Release(t.Context(), permit.ID())
	require.NoError(t, err)
	assert.ErrorIs(t, permits.SetLease(t.Context(), permit.ID(), time.Hour), latchkey.ErrNotHeld)
}
