package tests

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// triedGroups are groups of members, by number, that are free and tried by one client each at the
// same moment.
var triedGroups = map[string][][]int{
	"the same":           {{0, 1, 2}, {0, 1, 2}, {0, 1, 2}, {0, 1, 2}},
	"in another order":   {{2, 1, 0}, {0, 2, 1}, {1, 0, 2}},
	"overlapping":        {{0, 1, 2}, {1, 2, 3}, {2, 3, 4}, {3, 4, 0}},
	"a ring":             {{0, 1}, {1, 2}, {2, 3}, {3, 0}},
	"one within another": {{0, 1, 2, 3}, {1, 2}, {2, 3}},
	"nested":             {{0, 1, 2}, {0, 1, 2}, {2, 0, 1}},
}

// Of several groups that are tried at the same moment, and of which nobody holds a member, at least
// one is acquired.
func TestMultiLock_one_of_several_tries_wins(t *testing.T) {
	t.Parallel()
	open := map[string]func(c *latchkey.Client, name string) latchkey.Locker{
		"lock":       func(c *latchkey.Client, name string) latchkey.Locker { return c.NewLock(name) },
		"fair lock":  func(c *latchkey.Client, name string) latchkey.Locker { return c.NewFairLock(name) },
		"write lock": func(c *latchkey.Client, name string) latchkey.Locker { return c.NewRWLock(name).Writer() },
	}
	for sort, member := range open {
		for what, groups := range triedGroups {
			t.Run(sort+", "+what, func(t *testing.T) {
				t.Parallel()
				name := rig.Name(t)
				locks := make([]*latchkey.MultiLock, len(groups))
				for i, group := range groups {
					c := connect(t, rig.Shared())
					members := make([]latchkey.Locker, 0, len(group))
					for _, n := range group {
						members = append(members, member(c, fmt.Sprint(name, n)))
					}
					if what == "nested" {
						members = []latchkey.Locker{latchkey.NewMultiLock(members[:2]...), members[2]}
					}
					locks[i] = latchkey.NewMultiLock(members...)
				}
				for range rig.Paced(30) {
					require.NotZero(t, winners(t, locks), "nobody wins")
				}
			})
		}
	}
}

// Members with one key on several servers have no order but that in which they are given.
func TestMultiLock_one_of_several_tries_wins_across_servers(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Single)
	name, servers := rig.Name(t), []*rig.Server{rig.Shared(), rig.Fresh(t)}
	locks := make([]*latchkey.MultiLock, 4)
	for i := range locks {
		var members []latchkey.Locker
		for _, server := range servers {
			members = append(members, connect(t, server).NewLock(name))
		}
		locks[i] = latchkey.NewMultiLock(members...)
	}
	for range rig.Paced(30) {
		require.NotZero(t, winners(t, locks), "nobody wins")
	}
}

// winners tries all groups at once, and returns how many were acquired.
func winners(t *testing.T, locks []*latchkey.MultiLock) (n int) {
	t.Helper()
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
	for i, err := range errs {
		if err == nil {
			n++
			require.NoError(t, holds[i].Unlock(ctx))
		} else if !errors.Is(err, latchkey.ErrNotAcquired) {
			require.NoError(t, err)
		}
	}
	return n
}

// A group that cannot be acquired, because its first member is held, leaves its other members
// alone.
func TestMultiLock_that_cannot_win_disturbs_nobody(t *testing.T) {
	t.Parallel()
	for verb, acquire := range map[string]func(context.Context, *latchkey.MultiLock) error{
		"TryLock": func(ctx context.Context, l *latchkey.MultiLock) error { return ignore(l.TryLock(ctx)) },
		"Lock": func(ctx context.Context, l *latchkey.MultiLock) error {
			return ignore(l.Lock(ctx, latchkey.Wait(5*time.Millisecond)))
		},
	} {
		t.Run(verb, func(t *testing.T) {
			server, name, ctx := rig.Shared(), rig.Name(t), within(t, soon)
			a, b := connect(t, server), connect(t, server)
			mustLock(t, b.NewLock(name+"1"))
			group := latchkey.NewMultiLock(a.NewLock(name+"1"), a.NewLock(name+"2"), a.NewLock(name+"3"))
			stop, end := context.WithCancel(ctx)
			defer end()
			trying := rig.Goroutines(t)
			trying.Go(func() {
				for stop.Err() == nil {
					assert.Error(t, acquire(ctx, group))
				}
			})
			for range 50 {
				hold, err := b.NewLock(name + "3").TryLock(ctx)
				if assert.NoError(t, err) {
					require.NoError(t, hold.Unlock(ctx))
				}
			}
			end()
			trying.Wait()
		})
	}
}

func ignore(_ *latchkey.Hold, err error) error { return err }

// The time of a call is over while the first member is held, or when the second has been asked:
// nothing is wrong with a server.
func TestMultiLock_out_of_time_is_no_outage(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	tap := rig.NewTap(t, server)
	client := connectVia(t, server, tap.Addr())
	group := latchkey.NewMultiLock(client.NewLock(name+"1"), client.NewLock(name+"2"))
	require.NoError(t, rig.InTime(t, func(int) error {
		asked := tap.HoldCommand(rig.Mentions(name + "2"))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		waiting := lockInBackground(ctx, group)
		rig.Await(t, soon, "the question", asked.Arrived)
		cancel()
		err := rig.Await(t, soon, "the call", waiting).err
		asked.Release()
		require.ErrorIs(t, err, context.Canceled)
		rig.Eventually(t, soon, "nothing is held", free(rig.NewAdmin(t, server), name))
		if !errors.Is(err, latchkey.ErrNotAcquired) || errors.Is(err, latchkey.ErrUnavailable) {
			return err // the answer was missing for long enough to be an outage
		}
		require.ErrorContains(t, err, `"`+name+`2": not acquired: no time was left for it`)
		return nil
	}))
}
