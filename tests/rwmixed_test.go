package tests

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// What a reader of Redisson does, in scripts of our own that use its wire format. KEYS is the lock.
// ARGV are the prefix of its lease keys, the owner, and the lease or the channel.
const (
	javaReadLock = `
		local mode = redis.call('hget', KEYS[1], 'mode')
		if not mode then redis.call('hset', KEYS[1], 'mode', 'read') end
		if mode == 'write' and redis.call('hexists', KEYS[1], ARGV[2] .. ':write') == 0 then return 0 end
		local i = redis.call('hincrby', KEYS[1], ARGV[2], 1)
		redis.call('set', ARGV[1] .. ':' .. ARGV[2] .. ':rwlock_timeout:' .. i, 1, 'px', ARGV[3])
		redis.call('pexpire', KEYS[1], math.max(redis.call('pttl', KEYS[1]), ARGV[3]))
		return 1`
	// It keeps the lock for as long as the longest lease key of any holder.
	javaReadUnlock = `
		local i = redis.call('hincrby', KEYS[1], ARGV[2], -1)
		if i == 0 then redis.call('hdel', KEYS[1], ARGV[2]) end
		redis.call('del', ARGV[1] .. ':' .. ARGV[2] .. ':rwlock_timeout:' .. (i + 1))
		if redis.call('hlen', KEYS[1]) > 1 then
		  local longest = -3
		  for _, field in ipairs(redis.call('hkeys', KEYS[1])) do
		    local holds = tonumber(redis.call('hget', KEYS[1], field))
		    for n = 1, holds or 0 do
		      longest = math.max(longest, redis.call('pttl', ARGV[1] .. ':' .. field .. ':rwlock_timeout:' .. n))
		    end
		  end
		  if longest > 0 then
		    redis.call('pexpire', KEYS[1], longest)
		    return 0
		  end
		  if redis.call('hget', KEYS[1], 'mode') == 'write' then return 0 end
		end
		redis.call('del', KEYS[1])
		redis.call('publish', ARGV[3], '0')
		return 1`
)

// javaRW is Redisson's side of a read/write lock.
type javaRW struct {
	t    *testing.T
	raw  rueidis.Client
	name string
}

func (j javaRW) run(script, last string) int64 {
	j.t.Helper()
	reply, err := j.raw.Do(context.Background(), j.raw.B().Eval().Script(script).Numkeys(1).Key(j.name).
		Arg("{"+j.name+"}", javaOwner(1), last).Build()).AsInt64()
	require.NoError(j.t, err)
	return reply
}

// reads lets a thread acquire and release a read lock.
func (j javaRW) reads() {
	j.t.Helper()
	require.EqualValues(j.t, 1, j.run(javaReadLock, "30000"))
	j.run(javaReadUnlock, rwChannelOf(j.name))
}

// excludes checks that a hold that is certain to last keeps a writer out, for longer than a shorter
// lease.
func excludes(t *testing.T, server *rig.Server, hold *latchkey.Hold, shorter time.Duration) {
	t.Helper()
	lock := connect(t, server).NewRWLock(hold.Name()).Writer()
	writer, err := lock.Lock(t.Context(), latchkey.Wait(shorter+200*time.Millisecond))
	for tries := 0; errors.Is(err, latchkey.ErrUnavailable) && tries < 3; tries++ { // as on a busy machine
		writer, err = lock.TryLock(within(t, soon))
	}
	if err == nil {
		defer mustUnlock(t, writer)
	}
	require.NoError(t, hold.Err())
	assert.Greater(t, hold.ValidFor(), 10*time.Second)
	assert.ErrorIs(t, err, latchkey.ErrNotAcquired, "a writer got in while a hold was valid for %v", hold.ValidFor())
}

// One hold of a re-entered lock is released, and a Java reader comes and goes. Java still respects
// the remaining hold for as long as it is valid.
func TestJavaLeavesALockThatWasReleasedInPart(t *testing.T) {
	t.Parallel()
	const short = 2 * time.Second
	start := func(t *testing.T, again ...latchkey.LockOption) (server *rig.Server, java javaRW, outer, inner *latchkey.Hold) {
		t.Parallel()
		server = rig.Shared()
		name := rig.Name(t)
		lock := connect(t, server).NewRWLock(name).Reader()
		outer = mustLock(t, lock, latchkey.Lease(short))
		inner, err := lock.Lock(outer.Context(within(t, soon)), again...)
		require.NoError(t, err)
		return server, javaRW{t, server.Raw(t), name}, outer, inner
	}
	t.Run("the outer, whose lease is over", func(t *testing.T) {
		server, java, outer, inner := start(t)
		admin := rig.NewAdmin(t, server)
		first := "{" + java.name + "}:" + outer.Owner().String() + ":rwlock_timeout:1"
		rig.Eventually(t, soon, "the first lease ends", func() error {
			if admin.Exists(first) {
				return assert.AnError
			}
			return nil
		})
		mustUnlock(t, outer)
		java.reads()
		excludes(t, server, inner, 0)
		mustUnlock(t, inner)
	})
	t.Run("the inner, whose lease is longer", func(t *testing.T) {
		server, java, outer, inner := start(t, latchkey.Lease(time.Minute))
		mustUnlock(t, inner)
		java.reads()
		excludes(t, server, outer, short)
		mustUnlock(t, outer)
	})
}

// The server evicts the records next to a lock. A re-entry or a renewal with a shorter lease than
// the lock has then does not shorten it.
func TestHoldsOutliveTheirEvictedLeases(t *testing.T) {
	t.Parallel()
	const short = 3 * time.Second
	for side, open := range map[string]func(*latchkey.RWLock) anyLock{
		"read":  func(l *latchkey.RWLock) anyLock { return l.Reader() },
		"write": func(l *latchkey.RWLock) anyLock { return l.Writer() },
	} {
		beside := func(hold *latchkey.Hold) context.Context {
			if side == "write" {
				return hold.Context(within(t, time.Minute)) // a writer may also read
			}
			return within(t, time.Minute)
		}
		t.Run(side+", entered again", func(t *testing.T) {
			t.Parallel()
			server, name := rig.Shared(), rig.Name(t)
			rw := connect(t, server).NewRWLock(name)
			lock := open(rw)
			hold := mustLock(t, lock, latchkey.Lease(time.Minute))
			evictLeases(t, server, name)
			again, err := lock.Lock(hold.Context(within(t, soon)), latchkey.Lease(short))
			require.NoError(t, err)
			readOnce(beside(hold), t, rw)
			excludes(t, server, hold, short)
			_ = again.Unlock(t.Context()) // its lease may be over
			mustUnlock(t, hold)
		})
		t.Run(side+", renewed", func(t *testing.T) {
			t.Parallel()
			server, name := rig.Shared(), rig.Name(t)
			link, renewed := rig.NewLink(t, server), make(chan struct{}, 100)
			rw := connectVia(t, server, link.Addr(), latchkey.Options{
				Lease: short,
				Observer: func(e latchkey.Event) {
					if e.Type == latchkey.EventRenewed {
						renewed <- struct{}{}
					}
				},
			}).NewRWLock(name)
			hold := mustLock(t, open(rw))
			require.NoError(t, hold.Extend(t.Context(), time.Minute))
			evictLeases(t, server, name)
			for len(renewed) > 0 {
				<-renewed
			}
			for range 2 { // the first may have been in flight
				rig.Await(t, soon, "a renewal", renewed)
			}
			readOnce(beside(hold), t, rw)
			link.Cut()
			excludes(t, server, hold, short)
		})
	}
}

func evictLeases(t *testing.T, server *rig.Server, name string) {
	t.Helper()
	rig.NewAdmin(t, server).Do("DEL", "latchkey_rw_leases:{"+name+"}")
}

// readOnce acquires and releases a read hold with a long lease, so that the record of leases exists
// again.
func readOnce(ctx context.Context, t *testing.T, rw *latchkey.RWLock) {
	t.Helper()
	read, err := rw.Reader().Lock(ctx, latchkey.Lease(time.Minute))
	require.NoError(t, err)
	mustUnlock(t, read)
}
