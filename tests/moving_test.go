package tests

import (
	"context"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// Migration from a lock of another library to a lock of another kind under a new name: first,
// processes hold both locks, then only the new one. Wherever processes of two adjacent steps run at
// the same time, only one is inside.
func TestMovingOfALockInSteps(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"the first and the second", "the second and the third"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			server, before := rig.Shared(), rig.Name(t)
			after := before + ":fenced"
			both := func() latchkey.Locker {
				client := connect(t, server)
				return latchkey.NewMultiLock(client.NewMutex(before), client.NewFencedLock(after))
			}
			c := &contest{lasts: rig.Lasting(time.Second), both: true, hold: time.Millisecond, dump: dumpOf(t, []*rig.Server{server}, before)}
			c.contenders = []contender{{name: "both", goroutines: 2, acquire: locking(both())}}
			if step == "the first and the second" {
				c.contenders = append(c.contenders,
					contender{name: "redsync", goroutines: 1, acquire: redsyncingOn(plainRedis(t, server), before), polls: true},
					contender{name: "mutex", goroutines: 1, acquire: locking(connect(t, server).NewMutex(before))})
			} else {
				c.contenders = append(c.contenders, contender{name: "fenced", goroutines: 2, acquire: locking(connect(t, server).NewFencedLock(after))})
			}
			c.run(t)
		})
	}
}

func redsyncingOn(client redis.UniversalClient, name string) acquire {
	locks := redsync.New(goredis.NewPool(client))
	return func(ctx context.Context) (taken, error) {
		mu := locks.NewMutex(name, redsync.WithExpiry(recipeLease), redsync.WithTries(10_000), redsync.WithRetryDelay(2*time.Millisecond), unhurriedRedsync)
		err := mu.LockContext(ctx)
		return taken{release: func(ctx context.Context) error { return sure(mu.UnlockContext(ctx)) }}, err
	}
}

// Migration from a quorum to a lock on one server: a RedLock can be one of the two members.
func TestMovingFromAQuorum(t *testing.T) {
	m := newMasters(t, 3)
	var pools []redsyncredis.Pool
	for _, server := range m.servers {
		pools = append(pools, goredis.NewPool(plainRedis(t, server)))
	}
	client := connect(t, rig.Shared())
	red := m.unhurried(t, "x")
	after := client.NewFencedLock(rig.Name(t))
	both := latchkey.NewMultiLock(red, after)

	hold := mustLock(t, both)
	require.Positive(t, hold.Member(after.Name()).Token())
	theirs := redsync.New(pools...).NewMutex("x", redsync.WithTries(1), redsync.WithExpiry(recipeLease), unhurriedRedsync)
	require.Error(t, theirs.LockContext(within(t, soon)), "the first step")
	_, err := after.TryLock(within(t, soon))
	require.ErrorIs(t, err, latchkey.ErrNotAcquired, "the third step")
	mustUnlock(t, hold)
	require.NoError(t, theirs.LockContext(within(t, soon)))
	_, err = both.TryLock(within(t, soon))
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
	require.NoError(t, sure(theirs.UnlockContext(within(t, soon))))
	m.comesTo(t, "x", 0)
}

// A name belongs to one kind of lock: changing the kind in place is an error and never leads to two
// holders.
func TestMovingInPlaceIsRefused(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	theirs, err := withRedislock(plainRedis(t, server), name, nil)(within(t, soon))
	require.NoError(t, err)
	_, err = connect(t, server).NewLock(name).Lock(within(t, soon))
	require.ErrorIs(t, err, latchkey.ErrWrongKind)
	require.NoError(t, theirs.release(within(t, soon)))
	hold := mustLock(t, connect(t, server).NewLock(name))
	_, err = withRedislock(plainRedis(t, server), name, nil)(within(t, soon))
	require.ErrorContains(t, err, "WRONGTYPE")
	_, err = withRedsync(plainRedis(t, server), name)(within(t, soon))
	require.ErrorIs(t, err, errBusyElsewhere)
	mustUnlock(t, hold)
}
