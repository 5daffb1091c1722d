package tests

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// A master that becomes a replica ends each WAIT with UNBLOCKED. The script before it has run: the
// outcome is unknown, and what may be held is undone.
const unblocked = "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)"

func unblocking(t *testing.T) (client *latchkey.Client, admin *rig.Admin, other *latchkey.Client, begin func() (end func())) {
	t.Helper()
	r := rig.NewReplicated(t, 1, 0)
	tap := rig.NewTap(t, r.Master)
	options := confirmed(400 * time.Millisecond)
	options.RetryBudget, options.Lease = 500*time.Millisecond, 30*time.Second
	client = connectVia(t, r.Master, tap.Addr(), options)
	return client, rig.NewAdmin(t, r.Master), connect(t, r.Master), func() func() { return tap.Refuse(rig.Named("WAIT"), unblocked) }
}

// requireUnconfirmed requires the error of a call that no replica has confirmed: WAIT has ended, or
// on a crowded machine it could not be sent in time.
func requireUnconfirmed(t *testing.T, err error) {
	t.Helper()
	require.True(t, errors.Is(err, latchkey.ErrUnavailable) || errors.Is(err, latchkey.ErrNotReplicated), "%v", err)
}

func TestEndedWAIT_downgrade(t *testing.T) {
	t.Parallel()
	client, _, other, begin := unblocking(t)
	name := rig.Name(t)
	write := mustLock(t, client.NewRWLock(name).Writer())
	end := begin()
	_, err := write.Downgrade(t.Context())
	requireUnconfirmed(t, err)
	end()
	start := time.Now()
	next, err := other.NewRWLock(name).Writer().Lock(within(t, 50*time.Second))
	require.NoError(t, err)
	assert.Less(t, time.Since(start), 12*time.Second, "a read hold that nobody has")
	mustUnlock(t, next)
}

func TestEndedWAIT_extend(t *testing.T) {
	t.Parallel()
	client, admin, _, begin := unblocking(t)
	for _, k := range kinds {
		name := rig.Name(t) + k.name
		hold := mustLock(t, k.open(client, name))
		end := begin()
		err := hold.Extend(t.Context(), time.Hour)
		end()
		requireUnconfirmed(t, err)
		if admin.PTTL(name) > time.Minute {
			assert.ErrorIs(t, err, latchkey.ErrUnknownOutcome, "%s: the lease is %v: %v", k.name, admin.PTTL(name), err)
		}
		_ = hold.Unlock(t.Context())
	}
}

func TestEndedWAIT_set_lease(t *testing.T) {
	t.Parallel()
	client, _, other, begin := unblocking(t)
	ctx := within(t, soon)
	s := newPermits(t, other, 1)
	p, err := s.Acquire(ctx, latchkey.Lease(30*time.Second))
	require.NoError(t, err)
	end := begin()
	err = client.NewPermitSemaphore(s.Name()).SetLease(ctx, p.ID(), time.Hour)
	end()
	requireUnconfirmed(t, err)
	left, failed := s.RemainingLease(ctx, p.ID())
	require.NoError(t, failed)
	if left > time.Minute {
		assert.ErrorIs(t, err, latchkey.ErrUnknownOutcome, "the lease is %v: %v", left, err)
	}
}
