package tests

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// What a process of Redisson does with a lock.
const (
	strangerLocks = `if redis.call('exists', KEYS[1]) == 1 then return 0 end
		redis.call('hset', KEYS[1], ARGV[1], 1) redis.call('pexpire', KEYS[1], 30000) return 1`
	strangerWrites = `if redis.call('exists', KEYS[1]) == 1 then return 0 end
		redis.call('hset', KEYS[1], 'mode', 'write', ARGV[1] .. ':write', 1) redis.call('pexpire', KEYS[1], 30000) return 1`
	strangerUnlocks = `redis.call('del', KEYS[1]) return redis.call('publish', KEYS[2], '0')`
)

// A process of Redisson that waits for a lock has its turns beside one client whose goroutines want
// it all the time. A thread of Java needs a moment after the message.
func TestLockBesideAStranger(t *testing.T) {
	t.Parallel()
	for kind, k := range map[string]struct {
		open             func(*latchkey.Client, string) anyLock
		channel, acquire string
	}{
		"lock":  {func(c *latchkey.Client, name string) anyLock { return c.NewLock(name) }, "redisson_lock__channel:", strangerLocks},
		"write": {func(c *latchkey.Client, name string) anyLock { return c.NewRWLock(name).Writer() }, "redisson_rwlock:", strangerWrites},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			name := rig.Name(t)
			require.NoError(t, rig.InTime(t, func(int) error {
				l := k.open(connect(t, rig.Shared()), name)
				if theirs := turnsOfStranger(t, l, k.channel+"{"+name+"}", k.acquire); theirs < 10 {
					return fmt.Errorf("only %d turns", theirs)
				}
				return nil
			}))
		})
	}
}

// turnsOfStranger returns how often a stranger acquires a lock while two goroutines of a client
// acquire it 50 times.
func turnsOfStranger(t *testing.T, l anyLock, channel, acquire string) (theirs int) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), soon)
	defer stop()
	var all sync.WaitGroup
	var ours atomic.Int64
	for range 2 {
		all.Go(func() {
			for ctx.Err() == nil {
				if hold, err := l.Lock(ctx); err == nil {
					if ours.Add(1) == 50 {
						stop()
					}
					rest(20 * time.Millisecond)
					_ = hold.Unlock(t.Context())
				}
			}
		})
	}
	server := rig.Shared()
	raw, heard := server.Raw(t), subscribeRaw(t, server, channel)
	run := func(script string, args ...string) int64 {
		n, _ := raw.Do(t.Context(), raw.B().Eval().Script(script).Numkeys(2).Key(l.Name(), channel).Arg(args...).Build()).AsInt64()
		return n
	}
	for ctx.Err() == nil {
		select {
		case <-heard:
		case <-ctx.Done():
			continue
		}
		rest(2 * time.Millisecond)
		if run(acquire, "8d2f4c1e-0b51-4c55-9a63-6f1f6d9a1234:52") == 1 {
			theirs++
			rest(20 * time.Millisecond)
			run(strangerUnlocks)
		}
	}
	all.Wait()
	t.Logf("%d holds of the client, %d of the stranger", ours.Load(), theirs)
	return theirs
}
