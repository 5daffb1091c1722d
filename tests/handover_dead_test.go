package tests

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// seldom returns options for clients that poll again only long after the test: what they learn
// earlier, they learn by message.
func seldom() latchkey.Options {
	return latchkey.Options{Lease: 2 * time.Minute, Tuning: latchkey.Tuning{PollCeiling: time.Minute}}
}

// listening returns how many owners in the queue of a lock have a subscriber.
func listening(admin *rig.Admin, name string) (count int) {
	for _, entry := range admin.Strings("ZRANGE", "latchkey_queue:{"+name+"}", "0", "-1") {
		id, _, _ := strings.Cut(entry, ":")
		if admin.Subscribers("latchkey:{"+id+"}")+admin.Subscribers("latchkey:{"+name+"}:"+id) > 0 {
			count++
		}
	}
	return count
}

// Ten clients die while they wait, each with a place in the queue. The next release gives the lock
// to the waiter behind them at once.
func TestHandover_behind_many_dead(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		const dead = 10
		server, name := rig.Shared(), rig.Name(t)
		admin, tap := rig.NewAdmin(t, server), rig.NewTap(t, server)
		hold := mustLock(t, k.open(connect(t, server), name))
		ctx, leave := context.WithCancel(t.Context())
		for i := range dead {
			lockInBackground(ctx, k.open(connectVia(t, server, tap.Addr(), seldom()), name))
			queued(t, admin, name, int64(i+1))
		}
		waiter := lockInBackground(within(t, time.Minute), k.open(connect(t, server, seldom()), name))
		queued(t, admin, name, dead+1)
		t.Cleanup(leave)
		tap.Stop()
		rig.Eventually(t, soon, "the server knows who is dead", func() error {
			if n := listening(admin, name); n != 1 {
				return fmt.Errorf("%d of those in the queue listen", n)
			}
			return nil
		})
		before := admin.Dump(name)
		mustUnlock(t, hold)
		select {
		case next := <-waiter:
			require.NoError(t, next.err)
			mustUnlock(t, next.hold)
		case <-time.After(soon):
			t.Errorf("the waiter does not get it; the keys before the release: %v, and now: %v", before, admin.Dump(name))
		}
	}, handedOver)
}

// A hold that is granted by a release of its own client has the lease that it requested.
func TestHandover_to_the_own_client_for_the_whole_lease(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		server, name := rig.Shared(), rig.Name(t)
		admin := rig.NewAdmin(t, server)
		lock := k.open(connect(t, server, latchkey.Options{Tuning: latchkey.Tuning{Turn: -1}}), name)
		for _, options := range [][]latchkey.LockOption{nil, {latchkey.Lease(time.Minute)}} {
			hold := mustLock(t, lock)
			waiter := lockInLine(within(t, time.Minute), t, lock, options...)
			mustUnlock(t, hold)
			next := rig.Await(t, soon, "the waiter", waiter)
			require.NoError(t, next.err)
			assert.Greater(t, next.hold.ValidFor(), 15*time.Second)
			assert.Greater(t, admin.PTTL(name), 15*time.Second)
			mustUnlock(t, next.hold)
		}
	}, handedOver)
}

// A key that was a lock of one kind becomes a lock of the other while somebody waits for the first.
// A release of the second does not grant it to that waiter, which polls, and in the end gets the
// lock that it requested.
func TestHandover_of_one_kind_is_not_given_to_the_other(t *testing.T) {
	t.Parallel()
	kinds := []struct {
		stored string
		open   func(*latchkey.Client, string) anyLock
	}{
		{"string", func(c *latchkey.Client, n string) anyLock { return c.NewMutex(n) }},
		{"hash", func(c *latchkey.Client, n string) anyLock { return c.NewLock(n) }},
		{"hash", func(c *latchkey.Client, n string) anyLock { return c.NewFencedLock(n) }},
	}
	take := map[string]string{"string": "redis.call('SET', KEYS[1], ARGV[1], 'PX', 60000)", "hash": "redis.call('HSET', KEYS[1], ARGV[1], 1)"}
	polls := latchkey.Options{Tuning: latchkey.Tuning{PollCeiling: time.Second}}
	for i, waited := range kinds {
		for j, taken := range kinds {
			if waited.stored == taken.stored {
				continue
			}
			t.Run(fmt.Sprint(i, j), func(t *testing.T) {
				t.Parallel()
				server, name := rig.Shared(), rig.Name(t)
				admin, tap := rig.NewAdmin(t, server), rig.NewTap(t, server)
				mustLock(t, waited.open(connect(t, server), name))
				waiter := lockInBackground(within(t, time.Minute), waited.open(connectVia(t, server, tap.Addr(), polls), name))
				queued(t, admin, name, 1)
				other := taken.open(connect(t, server), name)
				_, err := other.TryLock(t.Context())
				require.ErrorIs(t, err, latchkey.ErrWrongKind)
				_, err = other.Lock(t.Context())
				require.ErrorIs(t, err, latchkey.ErrWrongKind)
				quiet(t, tap)
				poll := tap.HoldCommand(rig.Mentions(name)) // which would find the other kind
				admin.Do("EVAL", "redis.call('DEL', KEYS[1]) "+take[taken.stored], "1", name, "6c9e7d7a-2b1f-4a55-9f0e-1d2c3b4a5968:1")
				forced, err := other.ForceUnlock(t.Context())
				require.NoError(t, err)
				require.True(t, forced)
				poll.Release()
				next := rig.Await(t, soon, "the waiter", waiter)
				require.NoError(t, next.err)
				assert.Equal(t, waited.stored, admin.Text("TYPE", name))
				mustUnlock(t, next.hold)
			})
		}
	}
}
