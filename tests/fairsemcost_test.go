package tests

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// permitStrangers puts n waiters of another client at the end of the queue of a fair semaphore.
// They are alive for the given time, or dead if that is negative.
func permitStrangers(t testing.TB, server *rig.Server, name string, n int, alive time.Duration) {
	t.Helper()
	const fill = `
		local now = redis.call('time')[1] * 1000
		for i = 1, 100 do
		  local entry = '55555555-5555-4555-8555-555555555555:' .. string.format('%012d%012d00010000', ARGV[1], i)
		  redis.call('zadd', KEYS[1], now * 1000 + 60000000 + i, entry) -- behind all who are there
		  redis.call('zadd', KEYS[2], now + tonumber(ARGV[2]), entry)
		end`
	raw := server.Raw(t)
	for i := range n / 100 {
		require.NoError(t, ignoreNil(raw.Do(context.Background(), raw.B().Eval().Script(fill).Numkeys(2).
			Key(permitQueueOf(name), permitAliveOf(name)).Arg(strconv.Itoa(i), strconv.FormatInt(alive.Milliseconds(), 10)).Build()).Error()))
	}
}

// fairPermitCosts measures the cost of the scripts of a fair semaphore in a queue of n.
func fairPermitCosts(t *testing.T, n int) map[string][]time.Duration {
	t.Helper()
	const some = 50
	server, name := rig.Fresh(t), rig.Name(t)
	admin, client := rig.NewAdmin(t, server), connect(t, server)
	costs := map[string][]time.Duration{}
	phase := func(what string, do func()) { costs[what] = scriptTimes(t, admin, do) }
	s := client.NewFairSemaphore(name)
	require.NoError(t, s.SetPermits(t.Context(), 2))
	got := make(chan permitsGot, some)
	begin := func(ctx context.Context) {
		for range some {
			go func() {
				permits, err := s.AcquireN(ctx, 2)
				got <- permitsGot{permits, err}
			}()
		}
	}
	join := func(ctx context.Context) {
		before := admin.Int("ZCARD", permitQueueOf(name))
		begin(ctx)
		rig.Eventually(t, soon, "they are in the queue", func() error {
			if now := admin.Int("ZCARD", permitQueueOf(name)); now < before+some {
				return fmt.Errorf("%d", now)
			}
			return nil
		})
	}

	held, err := s.AcquireN(t.Context(), 2)
	require.NoError(t, err)
	permitStrangers(t, server, name, n, time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	phase("join the queue", func() { join(ctx) })
	phase("refresh 50 waiters", func() { rest(2500 * time.Millisecond) })
	phase("try", func() {
		for range some {
			_, err := s.TryAcquire(t.Context())
			require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		}
	})
	phase("leave the queue", func() {
		cancel()
		for range some {
			require.Error(t, rig.Await(t, soon, "a waiter leaves", got).err)
		}
		permitQueueLength(t, admin, name, int64(n))
	})
	admin.Do("DEL", permitQueueOf(name), permitAliveOf(name))

	join(t.Context())
	permitStrangers(t, server, name, n, time.Hour)
	phase("hand over", func() {
		for range some {
			permitsGot{permits: held}.release(t)
			next := rig.Await(t, soon, "the next", got)
			require.NoError(t, next.err)
			held = next.permits
		}
	})
	admin.Do("DEL", permitQueueOf(name), permitAliveOf(name))

	permitStrangers(t, server, name, n, -time.Hour)
	permitStrangersAlive(admin, name)
	phase(passDead, func() {
		begin(t.Context())
		permitsGot{permits: held}.release(t)
		rig.Eventually(t, soon, "the dead are gone", func() error {
			if left := admin.Int("ZCARD", permitQueueOf(name)); left > some+1 {
				return fmt.Errorf("%d in the queue", left)
			}
			return nil
		})
	})
	return costs
}

// permitStrangersAlive adds a live waiter, without which all the dead would be removed at once.
func permitStrangersAlive(admin *rig.Admin, name string) {
	last := "55555555-5555-4555-8555-555555555555:ffffffffffffffffffffffff00010000"
	admin.Do("ZADD", permitQueueOf(name), "2e15", last)
	admin.Do("ZADD", permitAliveOf(name), "2e12", last)
}

// The scripts of a fair semaphore cost the same in a queue of a hundred and of fifty thousand: less
// than a millisecond by the clock of the server.
func TestFairSemaphoreScriptsDoNotGrow(t *testing.T) {
	rig.Long(t)
	rig.Need(t, rig.Settings|rig.Stats|rig.Private)
	// Passing over dead waiters is bounded, but by more than a hundred.
	checkScriptTimes(t, fairPermitCosts, 50_000, func(what string) bool { return what != passDead })
}
