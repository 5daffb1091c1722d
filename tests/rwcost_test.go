package tests

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// holdForReaders lets n readers of other clients hold the lock for an hour.
func holdForReaders(t *testing.T, server *rig.Server, name string, n int) {
	t.Helper()
	const fill = `
		local later = redis.call('time')[1] * 1000 + 3600000
		redis.call('hset', KEYS[1], 'mode', 'read')
		for i = 1, tonumber(ARGV[1]) do
		  local owner = '55555555-5555-4555-8555-555555555555:' .. ARGV[2] .. i
		  redis.call('hset', KEYS[1], owner, 1)
		  redis.call('zadd', KEYS[2], later, owner)
		  redis.call('set', ARGV[3] .. owner .. ':rwlock_timeout:1', 1, 'px', 3600000)
		end
		redis.call('pexpire', KEYS[1], 3600000)
		redis.call('pexpire', KEYS[2], 3600000)`
	raw := server.Raw(t)
	for i := range n / 100 {
		require.NoError(t, ignoreNil(raw.Do(context.Background(), raw.B().Eval().Script(fill).Numkeys(2).
			Key(name, "latchkey_rw_leases:{"+name+"}").Arg("100", strconv.Itoa(i)+"000", "{"+name+"}:").Build()).Error()))
	}
}

// rwCosts measures what the scripts of a read/write lock cost while n readers hold it.
func rwCosts(t *testing.T, n int) map[string][]time.Duration {
	t.Helper()
	const some, lease = 50, 6 * time.Second
	server, name := rig.Fresh(t), rig.Name(t)
	admin := rig.NewAdmin(t, server)
	rw := connect(t, server, latchkey.Options{Lease: lease}).NewRWLock(name)
	holdForReaders(t, server, name, n)
	costs := map[string][]time.Duration{}
	phase := func(what string, do func()) { costs[what] = scriptTimes(t, admin, do) }
	var holds []*latchkey.Hold
	phase("read", func() {
		for range some {
			holds = append(holds, mustLock(t, rw.Reader()))
		}
	})
	phase("renew 25 readers", func() { renewedAgain(t, lease, holds...) })
	phase("try to write", func() {
		for range some {
			_, err := rw.Writer().TryLock(t.Context())
			require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		}
	})
	phase("stop to read", func() {
		for _, hold := range holds {
			mustUnlock(t, hold)
		}
	})
	phase("a writer waits, readers are kept out", func() {
		ctx, giveUp := context.WithCancel(t.Context())
		waiter := lockInBackground(ctx, rw.Writer())
		awaitWaiter(t, admin, name)
		for range some {
			_, err := rw.Reader().TryLock(t.Context())
			require.True(t, err == nil || errors.Is(err, latchkey.ErrNotAcquired))
		}
		giveUp()
		require.Error(t, rig.Await(t, soon, "the writer", waiter).err)
	})
	return costs
}

// The scripts of a read/write lock cost the same with a hundred readers as with ten thousand, by
// the clock of the server: less than a millisecond.
func TestReadWriteScriptsDoNotGrow(t *testing.T) {
	rig.Long(t)
	rig.Need(t, rig.Settings|rig.Stats|rig.Private)
	checkScriptTimes(t, rwCosts, 10_000, func(string) bool { return true })
}
