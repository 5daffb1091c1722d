package tests

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// What a process of Redisson does with a permit whose id it knows.
const (
	strangerTakes = `if tonumber(redis.call('get', KEYS[1])) < 1 then return 0 end
		redis.call('decrby', KEYS[1], 1) redis.call('zadd', KEYS[2], ARGV[1], ARGV[2]) return 1`
	strangerGives = `if redis.call('zrem', KEYS[2], ARGV[1]) == 1 then
		return redis.call('publish', KEYS[3], redis.call('incrby', KEYS[1], 1)) end`
)

// A process of Redisson that waits for permits has its turns, although clients of this library wait in the queue all the
// time.
func TestPermitsBesideAStranger(t *testing.T) {
	t.Parallel()
	for kind, open := range ttlPools {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, rig.InTime(t, func(int) error { return sharePermits(t, rig.Name(t), open) }))
		})
	}
}

// sharePermits returns an error if the stranger has too few turns.
func sharePermits(t *testing.T, name string, open func(*latchkey.Client, string) ttlPool) error {
	t.Helper()
	server := rig.Shared()
	set := open(connect(t, server), name)
	require.NoError(t, firstOf(set.TrySetPermits(t.Context(), 1)))
	ctx, stop := context.WithTimeout(t.Context(), rig.Lasting(2*time.Second))
	defer stop()
	var all sync.WaitGroup
	var ours atomic.Int64
	for range 2 {
		pool := open(connect(t, server), name)
		for range 2 {
			all.Go(func() {
				for ctx.Err() == nil {
					if p, err := pool.Acquire(ctx); err == nil {
						ours.Add(1)
						rest(time.Millisecond)
						_ = p.Release(t.Context())
					}
				}
			})
		}
	}
	raw, heard, theirs := server.Raw(t), subscribeRaw(t, server, semaphoreChannelOf(name)), 0
	keys := []string{name, idsOf(name), semaphoreChannelOf(name)}
	run := func(script string, args ...string) int64 {
		n, _ := raw.Do(t.Context(), raw.B().Eval().Script(script).Numkeys(3).Key(keys...).Arg(args...).Build()).AsInt64()
		return n
	}
	for ctx.Err() == nil {
		select {
		case <-heard:
		case <-ctx.Done():
			continue
		}
		if run(strangerTakes, strconv.FormatInt(time.Now().Add(time.Minute).UnixMilli(), 10), "stranger") == 1 {
			theirs++
			rest(time.Millisecond)
			run(strangerGives, "stranger")
		}
	}
	all.Wait()
	t.Logf("%d permits for clients, %d for the stranger", ours.Load(), theirs)
	if theirs*10 < int(ours.Load()) {
		return fmt.Errorf("%d of %d permits for the stranger", theirs, int(ours.Load())+theirs)
	}
	return nil
}
