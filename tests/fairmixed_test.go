package tests

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// What Redisson does with a fair lock, as our own scripts for its wire format. KEYS are lock,
// queue, deadlines. Each script first removes dead heads.
const (
	javaPrune = `
		local now = redis.call('time')
		now = now[1] * 1000 + math.floor(now[2] / 1000)
		while true do
		  local head = redis.call('lindex', KEYS[2], 0)
		  local score = head and redis.call('zscore', KEYS[3], head)
		  if not score or tonumber(score) > now then break end
		  redis.call('zrem', KEYS[3], head)
		  redis.call('lpop', KEYS[2])
		end `
	// ARGV owner, wait timeout. Replies -1 if it has acquired.
	javaAcquire = javaPrune + `
		local head = redis.call('lindex', KEYS[2], 0)
		if redis.call('exists', KEYS[1]) == 0 and (not head or head == ARGV[1]) then
		  redis.call('lpop', KEYS[2])
		  redis.call('zrem', KEYS[3], ARGV[1])
		  for _, other in ipairs(redis.call('zrange', KEYS[3], 0, -1)) do
		    redis.call('zincrby', KEYS[3], -ARGV[2], other)
		  end
		  redis.call('hset', KEYS[1], ARGV[1], 1)
		  redis.call('pexpire', KEYS[1], 30000)
		  return -1
		end
		if redis.call('zscore', KEYS[3], ARGV[1]) then return 0 end
		local last = redis.call('lindex', KEYS[2], -1)
		local score = last and redis.call('zscore', KEYS[3], last)
		local ahead = score and score - now or redis.call('pttl', KEYS[1])
		redis.call('zadd', KEYS[3], now + ahead + ARGV[2], ARGV[1])
		redis.call('rpush', KEYS[2], ARGV[1])
		return ahead`
	// ARGV owner, channel.
	javaUnlock = javaPrune + `
		if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return 0 end
		redis.call('del', KEYS[1])
		local head = redis.call('lindex', KEYS[2], 0)
		if head then redis.call('publish', ARGV[2] .. ':' .. head, '0') end
		return 1`
)

// javaFair is Redisson's side of a fair lock.
type javaFair struct {
	t    *testing.T
	raw  rueidis.Client
	name string
}

func (j javaFair) run(script string, args ...string) int64 {
	j.t.Helper()
	reply, err := j.raw.Do(context.Background(), j.raw.B().Eval().Script(script).Numkeys(3).
		Key(j.name, queueOf(j.name), deadlinesOf(j.name)).Arg(args...).Build()).AsInt64()
	require.NoError(j.t, err)
	return reply
}

func javaOwner(i int) string { return "99999999-9999-4999-8999-999999999999:" + strconv.Itoa(i) }

func (j javaFair) acquire(i int) bool {
	j.t.Helper()
	return j.run(javaAcquire, javaOwner(i), "300000") == -1
}

func (j javaFair) unlock(i int) {
	j.t.Helper()
	require.EqualValues(j.t, 1, j.run(javaUnlock, javaOwner(i), channelOf(j.name)), "it held the lock")
}

// deadline returns the time until Redisson gives up an owner.
func (j javaFair) deadline(admin *rig.Admin, owner string) time.Duration {
	j.t.Helper()
	ms, err := strconv.ParseFloat(admin.Text("ZSCORE", deadlinesOf(j.name), owner), 64)
	require.NoError(j.t, err, "it waits")
	return time.Until(time.UnixMilli(int64(ms)))
}

// A Java process holds the lock just before a Go waiter, and another Java waiter is behind. The Go
// waiter is not overtaken, even if Redisson left notes behind: those of a Go process that died, or
// those of the waiter itself.
func TestJavaDoesNotOvertakeALiveWaiter(t *testing.T) {
	t.Parallel()
	for what, prepare := range map[string]func(t *testing.T, admin *rig.Admin, name string){
		"no notes": func(*testing.T, *rig.Admin, string) {},
		"notes of the dead": func(_ *testing.T, admin *rig.Admin, name string) {
			for i := range 3 {
				admin.Do("HSET", notesOf(name), "44444444-4444-4444-8444-444444444444:"+strconv.Itoa(i), "17:42")
			}
		},
	} {
		for _, removed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, removed once %v", what, removed), func(t *testing.T) {
				t.Parallel()
				server, name := rig.Shared(), rig.Name(t)
				admin := rig.NewAdmin(t, server)
				java := javaFair{t, server.Raw(t), name}
				require.True(t, java.acquire(0))
				require.False(t, java.acquire(1))
				prepare(t, admin, name)
				waiter := lockInBackground(within(t, time.Minute), connect(t, server).NewFairLock(name))
				queueLength(t, admin, name, 2)
				me := admin.Text("LINDEX", queueOf(name), "1")
				if removed { // as Redisson does if a process is stopped for a while
					admin.Do("LREM", queueOf(name), "1", me)
					admin.Do("ZREM", deadlinesOf(name), me)
					queueLength(t, admin, name, 2)
				}
				require.False(t, java.acquire(2))
				java.unlock(0)
				require.True(t, java.acquire(1))
				java.unlock(1) // removes heads whose deadline is over
				assert.False(t, java.acquire(2), "the Go waiter is in front of it")
				next := rig.Await(t, soon, "the Go waiter", waiter)
				require.NoError(t, next.err)
				mustUnlock(t, next.hold)
				assert.True(t, java.acquire(2))
				java.unlock(2)
			})
		}
	}
}

// Hundreds of Go waiters leave the end of a queue, most of them from its middle. A Java waiter that
// joins afterwards gets its full waiting time.
func TestJavaComesAfterManyWhoLeft(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	admin, client := rig.NewAdmin(t, server), connect(t, server)
	java := javaFair{t, server.Raw(t), name}
	holder := mustLock(t, client.NewFairLock(name))
	first := lockInBackground(within(t, time.Minute), client.NewFairLock(name))
	queueLength(t, admin, name, 1)
	const leaving = 300
	ctx, cancel := context.WithCancel(t.Context())
	crowd := queueSome(ctx, t, admin, client, name, leaving)
	cancel()
	for range leaving {
		require.Error(t, rig.Await(t, soon, "a waiter leaves", crowd).err)
	}
	rig.Eventually(t, 3*soon, "they are out of the queue", func() error {
		if n := admin.Int("LLEN", queueOf(name)); n != 1 {
			return fmt.Errorf("%d are in it", n)
		}
		return nil
	})
	require.False(t, java.acquire(1))
	assert.Greater(t, java.deadline(admin, javaOwner(1)), 4*time.Minute)
	second := lockInBackground(within(t, time.Minute), client.NewFairLock(name))
	queueLength(t, admin, name, 3)
	mustUnlock(t, holder)
	mustUnlock(t, rig.Await(t, soon, "the first", first).hold)
	assert.True(t, java.acquire(1), "it is the next")
	assert.Empty(t, second)
	java.unlock(1)
	mustUnlock(t, rig.Await(t, soon, "the second", second).hold)
}

// A Go process died long ago and left its entry behind a live waiter. A refresh removes the entry
// from the end, because Java would compute its own deadline from it.
func TestJavaComesAfterADeadGoWaiter(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	admin := rig.NewAdmin(t, server)
	java := javaFair{t, server.Raw(t), name}
	holder := mustLock(t, connect(t, server).NewFairLock(name))
	waiter := lockInBackground(within(t, time.Minute), connect(t, server, shortStale).NewFairLock(name))
	queueLength(t, admin, name, 1)
	dead, died := "55555555-5555-4555-8555-555555555555:7", time.Now().Add(-6*time.Minute)
	admin.Do("RPUSH", queueOf(name), dead)
	admin.Do("ZADD", deadlinesOf(name), strconv.FormatInt(died.UnixMilli(), 10), dead)
	admin.Do("HSET", notesOf(name), dead, fmt.Sprintf("%d:%d", died.UnixMicro(), died.UnixMilli()))
	rig.Eventually(t, soon, "it is gone", func() error {
		if last := admin.Text("LINDEX", queueOf(name), "-1"); last == dead {
			return fmt.Errorf("%s is the last", last)
		}
		return nil
	})
	require.False(t, java.acquire(1))
	assert.Greater(t, java.deadline(admin, javaOwner(1)), 4*time.Minute)
	mustUnlock(t, holder)
	mustUnlock(t, rig.Await(t, soon, "the waiter", waiter).hold)
	assert.True(t, java.acquire(1))
	java.unlock(1)
}

// A waiter has a sign of life from before the server's clock was set back by a minute, and its
// process is killed. The waiter behind it does not wait for that minute.
func TestClockSetBackHidesNoDeath(t *testing.T) {
	t.Parallel()
	const stale = 4 * time.Second
	server, name := rig.Shared(), rig.Name(t)
	admin := rig.NewAdmin(t, server)
	lock := connect(t, server).NewFairLock(name)
	holder := mustLock(t, lock)
	child := fairWaiterProcess.Start(t, name, server.Ticket(), "1", stale.String())
	queueLength(t, admin, name, 1)
	owner, before := admin.Text("LINDEX", queueOf(name), "0"), time.Now().Add(time.Minute)
	admin.Do("HSET", notesOf(name), owner, fmt.Sprintf("%d:%d", before.UnixMicro(), before.UnixMilli()))
	admin.Do("ZADD", deadlinesOf(name), strconv.FormatInt(before.UnixMilli(), 10), owner)
	rig.Eventually(t, soon, "its life is what it would be", func() error {
		list, err := lock.Waiters(t.Context())
		if err == nil && (len(list) != 1 || list[0].Alive > 2*stale) {
			err = fmt.Errorf("%v", list)
		}
		return err
	})
	behind := connect(t, server, latchkey.Options{Tuning: latchkey.Tuning{StaleWaiterTimeout: stale}}).NewFairLock(name)
	waiter := lockInBackground(within(t, time.Minute), behind)
	queueLength(t, admin, name, 2)
	child.Kill()
	mustUnlock(t, holder)
	next := rig.Await(t, soon, "the one behind the dead", waiter)
	require.NoError(t, next.err)
	mustUnlock(t, next.hold)
}
