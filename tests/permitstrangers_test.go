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

// A process of Redisson that waits for permits has its turns, although clients of this library wait
// in the queue all the time.
func TestPermitsBesideAStranger(t *testing.T) {
	t.Parallel()
	for kind, open := range ttlPools {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			best := 0.0
			require.NoError(t, rig.InTime(t, func(int) error {
				share := strangerShare(t, rig.Name(t), open)
				best = max(best, share)
				if share < 1.0/11 {
					return fmt.Errorf("%.3f of the permits for the stranger", share)
				}
				return nil
			}))
			require.NotZero(t, best) // on the busiest machine too
		})
	}
}

// strangerShare returns which part of the permits the stranger has.
func strangerShare(t *testing.T, name string, open func(*latchkey.Client, string) ttlPool) float64 {
	t.Helper()
	server := rig.Shared()
	set := open(connect(t, server), name)
	require.NoError(t, firstOf(set.TrySetPermits(t.Context(), 1)))
	ctx, stop := context.WithTimeout(t.Context(), soon)
	defer stop()
	const enough = 300 // fewer say too little
	var all sync.WaitGroup
	var ours atomic.Int64
	for range 2 {
		pool := open(connect(t, server), name)
		for range 2 {
			all.Go(func() {
				for ctx.Err() == nil {
					if p, err := pool.Acquire(ctx); err == nil {
						if ours.Add(1) == enough {
							stop()
						}
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
	return float64(theirs) / max(1, float64(int(ours.Load())+theirs))
}
