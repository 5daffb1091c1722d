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
	type losing struct {
		gone, kept *latchkey.Hold
		lines      chan string
	}
	all, base := map[string]losing{}, rig.Name(t)
	for _, k := range kinds {
		lines, options := make(chan string, 100), confirmed(time.Second)
		options.Lease = 15 * time.Second
		options.Logger = slog.New(logFunc(func(r slog.Record) { lines <- r.Message }))
		client := connect(t, r.Master, options)
		all[k.name] = losing{confirmedHold(t, k.open(client, base+k.name)), confirmedHold(t, k.open(client, base+k.name+" kept")), lines}
	}
	r.Replicas[0].Pause(t)
	for name := range all {
		admin.Do("DEL", base+name)
	}
	for name, l := range all {
		rig.Await(t, soon, "the loss", l.gone.Lost())
		require.NoError(t, l.kept.Err(), name)
		line := ""
		for !strings.HasPrefix(line, "latchkey: hold lost") {
			line = rig.Await(t, soon, "the line", l.lines)
		}
		assert.Contains(t, line, "the key is gone", name)
	}
	r.Replicas[0].Resume(t)
	for name, l := range all {
		mustUnlock(t, l.kept)
		require.ErrorIs(t, l.gone.Unlock(t.Context()), latchkey.ErrLost, name)
	}
}

// The same applies to Extend and SetLease.
func TestReplicas_extension_of_nothing_needs_no_confirmation(t *testing.T) {
	t.Parallel()
	r := rig.NewReplicated(t, 1, 0)
	admin := rig.NewAdmin(t, r.Master)
	options := confirmed(time.Second)
	client := connect(t, r.Master, options)
	var holds []*latchkey.Hold
	for _, k := range kinds {
		holds = append(holds, confirmedHold(t, k.open(client, rig.Name(t)+k.name), latchkey.Lease(time.Hour)))
	}
	permits := newPermits(t, client, 1)
	var permit *latchkey.Permit
	rig.Eventually(t, soon, "a permit", func() (err error) {
		permit, err = permits.Acquire(t.Context(), latchkey.Lease(time.Hour))
		return err
	})
	r.Replicas[0].Pause(t)
	extendAll := func(want error) {
		extending := rig.Goroutines(t)
		for _, hold := range holds {
			extending.Go(func() {
				assert.ErrorIs(t, hold.Extend(t.Context(), 2*time.Hour), want, hold.Name())
			})
		}
		extending.Wait()
	}
	extendAll(latchkey.ErrNotReplicated)
	for _, hold := range holds {
		admin.Do("DEL", hold.Name())
	}
	extendAll(latchkey.ErrNotHeld)
	for _, hold := range holds {
		assert.ErrorIs(t, hold.Err(), latchkey.ErrLost, hold.Name())
	}
	_, err := connect(t, r.Master).NewPermitSemaphore(permits.Name()).Release(t.Context(), permit.ID())
	require.NoError(t, err)
	assert.ErrorIs(t, permits.SetLease(t.Context(), permit.ID(), time.Hour), latchkey.ErrNotHeld)
}
