package tests

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// AtLeast when processes, replies and servers fail, and where it is refused.

// Close ends holds and leaves their locks taken.
func TestAtLeastOutlivesClose(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		server, name := rig.Shared(), rig.Name(t)
		admin := rig.NewAdmin(t, server)
		client := connect(t, server)
		hold, at := take(t, admin, k.open(client, name), time.Hour)
		require.NoError(t, client.Close(within(t, soon)))
		require.ErrorIs(t, hold.Err(), latchkey.ErrClosed)
		at.stays(t)
		at.ends(t)
		i, err := k.open(connect(t, server), name).Inspect(t.Context())
		require.NoError(t, err)
		require.Len(t, i.Holders, 1)
		assert.True(t, i.Holders[0].Kept)
	})
}

// atLeastProcess takes a lock for longer than its lease and does not release it.
var atLeastProcess = rig.Child("AtLeast holder", func(ctx context.Context, args []string) error {
	k, err := kindNamed(args[0])
	if err != nil {
		return err
	}
	client, _, err := dialTicket(args[2], "", latchkey.Options{Lease: crashLease, Tuning: latchkey.Tuning{StaleWaiterTimeout: crashLease}})
	if err != nil {
		return err
	}
	hold, err := k.open(client, args[1]).Lock(ctx, latchkey.AtLeast(3*crashLease))
	if err != nil {
		return err
	}
	fmt.Println("held")
	<-hold.Lost()
	return hold.Err()
})

// A killed holder leaves the lock taken, although the lease that it renewed is shorter.
func TestAtLeastOutlivesAKilledHolder(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		server, name := rig.Shared(), rig.Name(t)
		at := stayTaken{admin: rig.NewAdmin(t, server), name: name, d: 3 * crashLease, before: time.Now()}
		child := atLeastProcess.Start(t, k.name, name, server.Ticket())
		child.Line(t, soon, "held")
		at.after = time.Now()
		rest(crashLease / 2) // it is renewed during this time
		at.stays(t)
		child.Kill()
		at.stays(t)
		next := mustLock(t, k.open(connect(t, server), name))
		assert.GreaterOrEqual(t, time.Since(at.before), at.d, "not before")
		mustUnlock(t, next)
	})
}

// The reply of each command is lost in turn. If the call acquired the lock, it stays taken. If the
// call failed, the lock is free: the option applies only to a hold.
func TestAtLeastWithLostReplies(t *testing.T) {
	t.Parallel()
	rig.Long(t)
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		warmUp(t, k)
		for _, each := range losses {
			for n := range 4 {
				t.Run(fmt.Sprintf("%s %d", each.name, n+1), func(t *testing.T) {
					t.Parallel()
					r := newLossRun(t, k)
					r.tap.Lose(n+1, rig.Any, each.loss)
					before := time.Now()
					hold, err := r.lock.TryLock(t.Context(), latchkey.AtLeast(time.Hour))
					if err != nil {
						rig.Eventually(t, soon+undoBudget, "it is undone", free(r.admin, r.name))
						return
					}
					at := stayTaken{r.admin, r.name, time.Hour, before, time.Now()}
					if err := hold.Unlock(t.Context()); err != nil {
						require.ErrorIs(t, err, latchkey.ErrUnknownOutcome)
					}
					at.stays(t)
					witness := k.open(connect(t, rig.Shared()), r.name)
					rig.Eventually(t, soon, "it is released", func() error {
						i, err := witness.Inspect(t.Context())
						if err != nil || len(i.Holders) != 1 || !i.Holders[0].Kept {
							return errors.Join(err, fmt.Errorf("%+v", i))
						}
						return nil
					})
					at.stays(t)
				})
			}
		}
	})
}

// A late release does not affect the next holder.
func TestAtLeastLateReleaseDoesNoHarm(t *testing.T) {
	t.Parallel()
	const d = 2 * time.Second
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		server, name := rig.Shared(), rig.Name(t)
		admin, tap := rig.NewAdmin(t, server), rig.NewTap(t, server)
		hold, _ := take(t, admin, k.open(connectVia(t, server, tap.Addr()), name), d, latchkey.Lease(d))
		held := tap.HoldCommand(rig.Both(rig.Named("EVALSHA", "EVAL"), rig.Mentions(name)))
		unlocked := make(chan error, 1)
		go func() { unlocked <- hold.Unlock(context.Background()) }()
		rig.Await(t, soon, "the release", held.Arrived)
		next := mustLock(t, k.open(connect(t, server), name))
		held.Release()
		rig.Await(t, soon, "Unlock", unlocked) // nil if its first copy arrived in time, otherwise an error
		require.NoError(t, next.Err())
		require.NoError(t, next.Extend(t.Context(), time.Minute))
		mustUnlock(t, next)
	})
}

// A lock stays taken on a server that is out of memory.
func TestAtLeastOutOfMemory(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Settings)
	server := rig.Fresh(t)
	admin, client := rig.NewAdmin(t, server), connect(t, server)
	var holds []*latchkey.Hold
	var taken []stayTaken
	for _, k := range kinds {
		hold, at := take(t, admin, k.open(client, k.name), time.Hour)
		holds, taken = append(holds, hold), append(taken, at)
	}
	admin.Do("CONFIG", "SET", "maxmemory", "1")
	for i, at := range taken {
		mustUnlock(t, holds[i])
		at.stays(t)
		at.ends(t)
	}
}

// Options and calls that exclude AtLeast fail without sending anything.
func TestAtLeastWhereItCannotWork(t *testing.T) {
	sendsNothing(t, func(client *latchkey.Client) {
		ctx, at := t.Context(), latchkey.AtLeast(time.Second)
		a, b := client.NewLock("a"), client.NewLock("b")
		for what, try := range map[string]func() error{
			"a reader":        func() error { _, err := client.NewRWLock("name").Reader().TryLock(ctx, at); return err },
			"a MultiLock":     func() error { _, err := latchkey.NewMultiLock(a, b).Lock(ctx, at); return err },
			"a RedLock":       func() error { _, err := latchkey.NewRedLock(latchkey.RedLockOptions{}, a).Lock(ctx, at); return err },
			"a short lease":   func() error { _, err := a.TryLock(ctx, at, latchkey.Lease(time.Second-1)); return err },
			"the other order": func() error { _, err := a.TryLock(ctx, latchkey.Lease(time.Second-1), at); return err },
			"a short limit":   func() error { _, err := a.TryLock(ctx, latchkey.MaxHold(time.Second-1), at); return err },
			"no time":         func() error { _, err := a.TryLock(ctx, latchkey.AtLeast(0)); return err },
			"below zero":      func() error { _, err := a.TryLock(ctx, latchkey.AtLeast(-time.Second)); return err },
		} {
			assert.ErrorIs(t, try(), latchkey.ErrInvalid, what)
		}
	})
}
