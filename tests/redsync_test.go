package tests

import (
	"context"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// A RedLock over mutexes and redsync use the same keys of the same servers: they are never both
// inside. LATCHKEY_TEST_REDSYNC=1 makes it ten thousand rounds.
func TestRedLockAndRedsync(t *testing.T) {
	t.Parallel()
	rounds := int32(200)
	if os.Getenv("LATCHKEY_TEST_REDSYNC") != "" {
		rounds = 10_000
	}
	m := newMasters(t, 3)
	var pools []redsyncredis.Pool
	for _, server := range m.servers {
		client := redis.NewClient(&redis.Options{Addr: server.Addr()})
		t.Cleanup(func() { assert.NoError(t, client.Close()) })
		pools = append(pools, goredis.NewPool(client))
	}
	var inside, total atomic.Int32
	var passes [2]atomic.Int32
	pass := func(who int) {
		if n := inside.Add(1); n != 1 {
			t.Errorf("%d are inside", n)
		}
		passes[who].Add(1)
		total.Add(1)
		inside.Add(-1)
	}
	all := rig.Goroutines(t)
	for range 2 {
		l := latchkey.NewRedLock(latchkey.RedLockOptions{RetryDelay: 4 * time.Millisecond}, m.mutexes(t, "x")...)
		all.Go(func() {
			for total.Load() < rounds {
				hold, err := l.Lock(within(t, time.Minute))
				if !assert.NoError(t, err) {
					return
				}
				pass(0)
				assert.NoError(t, hold.Unlock(context.Background()))
			}
		})
		other := redsync.New(pools...)
		all.Go(func() {
			for total.Load() < rounds {
				mu := other.NewMutex("x", redsync.WithExpiry(30*time.Second), redsync.WithTries(10_000),
					redsync.WithRetryDelayFunc(func(int) time.Duration { return jitterOf(4 * time.Millisecond) }))
				if !assert.NoError(t, mu.LockContext(within(t, time.Minute))) {
					return
				}
				pass(1)
				_, err := mu.UnlockContext(context.Background())
				assert.NoError(t, err)
			}
		})
	}
	all.Wait()
	t.Logf("%d rounds of RedLock, %d of redsync", passes[0].Load(), passes[1].Load())
	require.Positive(t, passes[0].Load())
	require.Positive(t, passes[1].Load())
	m.comesTo(t, "x", 0)
}
