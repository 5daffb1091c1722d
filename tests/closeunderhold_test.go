package tests

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// A program closes its client with the context under which it works, for example in a deferred
// call. Close ends the holds of the client, and with them that context, but releases everything all
// the same.
func TestCloseUnderAHold(t *testing.T) {
	derived := map[string]func(context.Context) (context.Context, context.CancelFunc){
		"itself":      func(ctx context.Context) (context.Context, context.CancelFunc) { return ctx, func() {} },
		"may end":     context.WithCancel,
		"has a limit": func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, soon) },
	}
	for _, k := range append(kinds, readKind, multiKind, redKind) {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			for what, derive := range derived {
				closesUnder(t, what, func(client *latchkey.Client, name string, work func(context.Context) error) error {
					return k.open(client, name).Do(t.Context(), func(ctx context.Context) error {
						ctx, cancel := derive(ctx)
						defer cancel()
						return work(ctx)
					})
				})
			}
		})
	}
	others := map[string]func(client *latchkey.Client, name string, work func(context.Context) error) error{
		"a leader": func(client *latchkey.Client, name string, work func(context.Context) error) error {
			return client.NewElection(name+"e").Run(t.Context(), "value", func(ctx context.Context, _ *latchkey.Leadership) error {
				return work(ctx)
			})
		},
		"a permit": func(client *latchkey.Client, name string, work func(context.Context) error) error {
			if err := client.NewPermitSemaphore(name+"p").SetPermits(t.Context(), 1); err != nil {
				return err
			}
			return client.NewPermitSemaphore(name+"p").Do(t.Context(), work)
		},
		"a party": func(client *latchkey.Client, name string, work func(context.Context) error) error {
			return client.NewBarrier(name+"b", 1).Do(t.Context(), work)
		},
		"two locks": func(client *latchkey.Client, name string, work func(context.Context) error) error {
			return client.NewLock(name+"1").Do(t.Context(), func(ctx context.Context) error {
				return client.NewFairLock(name+"2").Do(ctx, work)
			})
		},
	}
	for what, do := range others {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			closesUnder(t, what, do)
		})
	}
}

// closesUnder closes a client in work under one of its objects, and checks that all its locks are
// free.
func closesUnder(t *testing.T, what string, do func(*latchkey.Client, string, func(context.Context) error) error) {
	t.Helper()
	server, name := rig.Shared(), rig.Name(t)
	client := connect(t, server, patient)
	mustLock(t, client.NewLock(name+" beside"))
	closed := false
	err := do(client, name, func(ctx context.Context) error {
		closed = true
		assert.NoError(t, client.Close(ctx), what)
		return nil
	})
	require.True(t, closed, "%s: %v", what, err)
	admin, other := rig.NewAdmin(t, server), connect(t, server, patient)
	require.NoError(t, free(admin, name+" beside")(), what)
	switch what {
	case "a leader": // its announcement stays, and counts only with the lock
		_, err = other.NewElection(name+"e").TryCampaign(t.Context(), "other")
	case "a permit":
		_, err = other.NewPermitSemaphore(name + "p").TryAcquire(t.Context())
	case "a party":
		err = nil
	default:
		err = free(admin, name)()
	}
	require.NoError(t, err, what)
}

// The limits of such a context still count: its deadline, and at the latest the retry budget after
// its end.
func TestCloseUnderAHold_without_a_server(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Process)
	server := rig.Fresh(t)
	for budget, limit := range map[time.Duration]time.Duration{300 * time.Millisecond: time.Minute, time.Minute: 300 * time.Millisecond} {
		client := connect(t, server, latchkey.Options{RetryBudget: budget, Lease: time.Minute})
		hold := mustLock(t, client.NewLock(rig.Name(t)))
		ctx, cancel := context.WithTimeout(hold.Context(t.Context()), limit)
		defer cancel()
		server.Pause(t)
		start := time.Now()
		err := client.Close(ctx)
		server.Resume(t)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Less(t, time.Since(start), 300*time.Millisecond+leeway)
	}
}

// Releases work with the context that they end.
func TestReleaseUnderItsOwnHold(t *testing.T) {
	server, ctx := rig.Shared(), t.Context()
	client, admin := connect(t, server, patient), rig.NewAdmin(t, server)
	for _, k := range append(kinds, readKind, multiKind, redKind) {
		name := rig.Name(t)
		hold := mustLock(t, k.open(client, name))
		assert.NoError(t, hold.Unlock(hold.Context(ctx)), k.name)
		assert.NoError(t, free(admin, name)(), k.name)
	}
	e := client.NewElection(rig.Name(t))
	l := mustLead(t, e, "value")
	assert.NoError(t, l.Resign(l.Context(ctx)))
	assert.NoError(t, free(admin, e.Name())())
	pool := newPermits(t, client, 2)
	permit, err := pool.Acquire(ctx)
	require.NoError(t, err)
	assert.NoError(t, permit.Release(permit.Context(ctx)))
	permit, err = pool.Acquire(ctx)
	require.NoError(t, err)
	_, err = pool.Release(permit.Context(ctx), permit.ID())
	assert.NoError(t, err)
	counts(t, pool, 2, 0)
	write := mustLock(t, client.NewRWLock(rig.Name(t)).Writer())
	read, err := write.Downgrade(write.Context(ctx))
	require.NoError(t, err)
	mustUnlock(t, read)
}
