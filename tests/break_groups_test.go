package tests

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// A group that cannot be acquired, because its first member is held, leaves its other members alone, also if it waits.
func TestBreakGroups_short_waits_disturb_nobody(t *testing.T) {
	t.Parallel()
	for _, wait := range []time.Duration{5 * time.Millisecond, 50 * time.Millisecond} {
		t.Run(wait.String(), func(t *testing.T) {
			server, name, ctx := rig.Shared(), rig.Name(t), within(t, soon)
			b := connect(t, server)
			mustLock(t, b.NewLock(name+"1"))
			done := make(chan struct{})
			var trying sync.WaitGroup
			for range 4 {
				a := connect(t, server)
				group := latchkey.NewMultiLock(a.NewLock(name+"1"), a.NewLock(name+"2"), a.NewLock(name+"3"))
				trying.Go(func() {
					for {
						select {
						case <-done:
							return
						default:
							_, err := group.Lock(ctx, latchkey.Wait(wait))
							assert.ErrorIs(t, err, latchkey.ErrNotAcquired)
						}
					}
				})
			}
			failed := 0
			for range 200 {
				hold, err := b.NewLock(name + "3").TryLock(ctx)
				if errors.Is(err, latchkey.ErrNotAcquired) {
					failed++
					continue
				}
				require.NoError(t, err)
				require.NoError(t, hold.Unlock(ctx))
			}
			close(done)
			trying.Wait()
			assert.Zero(t, failed, "of 200 tries of a free member")
		})
	}
}

// Of several groups that wait for a short time at the same moment, at least one is acquired.
func TestBreakGroups_one_of_several_short_waits_wins(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	for _, wait := range []time.Duration{2 * time.Millisecond, 20 * time.Millisecond} {
		var locks []*latchkey.MultiLock
		for range 4 {
			c := connect(t, server)
			locks = append(locks, latchkey.NewMultiLock(c.NewLock(name+"1"), c.NewLock(name+"2"), c.NewLock(name+"3")))
		}
		none := 0
		for range 50 {
			ctx, start := within(t, soon), make(chan struct{})
			holds, errs := make([]*latchkey.Hold, len(locks)), make([]error, len(locks))
			var tries sync.WaitGroup
			for i, l := range locks {
				tries.Go(func() {
					<-start
					holds[i], errs[i] = l.Lock(ctx, latchkey.Wait(wait))
					if errs[i] == nil {
						time.Sleep(2 * wait)
					}
				})
			}
			close(start)
			tries.Wait()
			n := 0
			for i, err := range errs {
				if err == nil {
					n++
					require.NoError(t, holds[i].Unlock(ctx))
				}
			}
			if n == 0 {
				none++
			}
		}
		assert.Zero(t, none, "of 50 rounds, waits of %v", wait)
	}
}

// Of several RedLocks that are tried at the same moment, how often does none win?
func TestBreakGroups_red(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Topology)
	name := rig.Name(t)
	servers := []*rig.Server{rig.Fresh(t), rig.Fresh(t), rig.Fresh(t)}
	var locks []*latchkey.RedLock
	for range 3 {
		var members []latchkey.Locker
		for _, s := range servers {
			members = append(members, connect(t, s).NewLock(name))
		}
		locks = append(locks, latchkey.NewRedLock(latchkey.RedLockOptions{}, members...))
	}
	none := 0
	for range 100 {
		ctx, start := within(t, soon), make(chan struct{})
		holds, errs := make([]*latchkey.Hold, len(locks)), make([]error, len(locks))
		var tries sync.WaitGroup
		for i, l := range locks {
			tries.Go(func() {
				<-start
				holds[i], errs[i] = l.TryLock(ctx)
			})
		}
		close(start)
		tries.Wait()
		n := 0
		for i, err := range errs {
			if err == nil {
				n++
				require.NoError(t, holds[i].Unlock(ctx))
			}
		}
		require.LessOrEqual(t, n, 1)
		if n == 0 {
			none++
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Logf("in %d of 100 rounds none of three tries won", none)
}
