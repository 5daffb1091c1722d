package tests

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// The last member is busy for longer than the lease or the maximum hold, again and again. The group
// is still acquired, and then has the lease or limit that was requested, and no more.
func TestMultiLockOutlastsItsLease(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		options func(short time.Duration) []latchkey.LockOption
		ends    error
	}{
		"Lease": {func(short time.Duration) []latchkey.LockOption {
			return []latchkey.LockOption{latchkey.Lease(short)}
		}, latchkey.ErrLost},
		"MaxHold": {func(short time.Duration) []latchkey.LockOption {
			return []latchkey.LockOption{latchkey.MaxHold(short)}
		}, latchkey.ErrMaxHold},
		"Lease and MaxHold": {func(short time.Duration) []latchkey.LockOption {
			return []latchkey.LockOption{latchkey.Lease(short), latchkey.MaxHold(short)}
		}, latchkey.ErrLost},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			inTime(t, func(short time.Duration) bool { return outlasts(t, short, c.options(short), c.ends) })
		})
	}
}

// outlasts reports whether there was time to see that the group has what is left of its lease or
// limit, and no more.
func outlasts(t *testing.T, short time.Duration, options []latchkey.LockOption, ends error) bool {
	t.Helper()
	server, name := rig.Shared(), rig.Name(t)
	client, admin := connect(t, server), rig.NewAdmin(t, server)
	stop := busy(t, server, name+"b", short+short/6)
	defer stop()
	lock := latchkey.NewMultiLock(client.NewLock(name+"a"), client.NewFairLock(name+"b"))
	hold, err := lock.Lock(within(t, 3*soon), options...)
	got := time.Now()
	require.NoError(t, err)
	assert.LessOrEqual(t, hold.ValidFor(), short)
	stop()
	valid := hold.Err() == nil
	rig.Await(t, soon, "the end, long before the lease of the client", hold.Lost())
	lasted, end := time.Since(got), hold.Err()
	rig.Eventually(t, soon, "nothing is left", free(admin, name))
	return valid && lasted > short/2 && errors.Is(end, ends) // a renewal may have come too late for the lease
}

// busy has rivals hold a fair lock in turns, each for the given duration, so that it is never free.
func busy(t *testing.T, server *rig.Server, name string, each time.Duration) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	for range 2 {
		rival := connect(t, server).NewFairLock(name)
		hold, err := rival.Lock(within(t, soon))
		require.NoError(t, err)
		go func() {
			for ctx.Err() == nil {
				rest(each)
				_ = hold.Unlock(context.Background())
				if hold, err = rival.Lock(ctx); err != nil {
					return
				}
			}
			_ = hold.Unlock(context.Background())
		}()
	}
	return cancel
}

// A nested group keeps to the limits of the whole, even for members that join late.
func TestMultiLockConfinesNestedGroups(t *testing.T) {
	t.Parallel()
	m := newMasters(t, 3)
	for what, c := range map[string]struct {
		option func(short time.Duration) latchkey.LockOption
		ends   error
	}{
		"Lease":   {func(short time.Duration) latchkey.LockOption { return latchkey.Lease(short) }, latchkey.ErrLost},
		"MaxHold": {func(short time.Duration) latchkey.LockOption { return latchkey.MaxHold(short) }, latchkey.ErrMaxHold},
	} {
		t.Run(what, func(t *testing.T) {
			inTime(t, func(short time.Duration) bool { return confines(t, m, short, c.option(short), c.ends) })
		})
	}
}

// confines reports whether the members of the nested group were renewed in time while the whole
// waited for another.
func confines(t *testing.T, m *masters, short time.Duration, option latchkey.LockOption, ends error) (inTime bool) {
	t.Helper()
	client := connect(t, m.servers[0])
	blocker := mustLock(t, client.NewLock("z"))
	var lost atomic.Int64
	observed := latchkey.Options{Observer: func(e latchkey.Event) {
		if e.Type == latchkey.EventLost {
			lost.Add(1)
		}
	}}
	red := latchkey.NewRedLock(latchkey.RedLockOptions{MemberTimeout: soon}, each(m.clients(t, observed), mutexX)...)
	waiting := lockInBackground(within(t, 3*time.Minute), latchkey.NewMultiLock(red, connect(t, m.servers[0]).NewLock("z")), option)
	awaitWaiter(t, m.admins[0], "z")
	rest(2 * short)
	rig.Eventually(t, soon, "all servers have it, or a member is lost", func() error { // held, and kept
		inTime = m.held("x") == 3 && lost.Load() == 0
		if !inTime && lost.Load() == 0 {
			return fmt.Errorf("%d have it", m.held("x"))
		}
		return nil
	})
	mustUnlock(t, blocker)
	got := rig.Await(t, soon, "both", waiting)
	require.NoError(t, got.err)
	require.LessOrEqual(t, got.hold.ValidFor(), short)
	rig.Await(t, short+soon, "the end", got.hold.Lost())
	require.True(t, errors.Is(got.hold.Err(), ends) || errors.Is(got.hold.Err(), latchkey.ErrLost), "a renewal may come too late")
	m.comesTo(t, "x", 0)
	m.comesTo(t, "z", 0)
	return inTime
}

// The caller gives up while the last member is silent and many others are held. All of them are
// released, although nobody waits for that.
func TestMultiLockIsLeftWithManyMembers(t *testing.T) {
	const many = 100
	server, name := rig.Shared(), rig.Name(t)
	admin, link, near := rig.NewAdmin(t, server), rig.NewLink(t, server), connect(t, server)
	members := []latchkey.Locker{connectVia(t, server, link.Addr()).NewLock(name + " 2")}
	for i := range many {
		members = append(members, near.NewLock(fmt.Sprintf("%s 1 %d", name, i)))
	}
	link.Silence()
	ctx, cancel := context.WithCancel(t.Context())
	waiting := lockInBackground(ctx, latchkey.NewMultiLock(members...))
	rig.Eventually(t, soon, "all but the last are held", func() error {
		if held := len(admin.KeysOf(name)); held != many {
			return fmt.Errorf("%d are", held)
		}
		return nil
	})
	cancel()
	require.ErrorIs(t, rig.Await(t, soon, "the one who leaves", waiting).err, context.Canceled)
	link.Heal()
	rig.Eventually(t, soon, "nothing is held", free(admin, name))
}
