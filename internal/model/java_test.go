package model

import (
	"strconv"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/primitive/rw"
	"github.com/latchkey-go/latchkey/internal/primitive/semaphore"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// This file has the scripts of Redisson, as far as the shared formats need them.

// javaLease is the lease that Redisson's watchdog renews when the caller gives none.
const javaLease = 30000

// javaThread is a thread of a Redisson process.
type javaThread struct {
	w     *world
	name  string
	owner string
	count int
	until int64 // ms until which it relies on its hold
}

func newJavaThread(w *world, number int) *javaThread {
	return &javaThread{w: w, name: "J" + strconv.Itoa(number),
		owner: "99999999-0000-4000-8000-000000000000:" + strconv.Itoa(number)}
}

func (j *javaThread) holds() bool { return j.count > 0 && j.w.ms() < j.until }

func (j *javaThread) crash() { j.count = 0 }

// run executes a script of the thread.
func (j *javaThread) run(what string, script transport.Command, keys []string, args ...string) any {
	j.w.tick()
	reply := j.w.Run(script, keys, args...)
	j.w.say("%s %s -> %s", j.name, what, show(reply))
	if isReplyError(reply) {
		j.w.fail("%s %s: %v", j.name, what, reply)
	}
	return reply
}

var javaLock = transport.NewScript(`
if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[1]) == 1 then
  redis.call('hincrby', KEYS[1], ARGV[1], 1)
  redis.call('pexpire', KEYS[1], ARGV[2])
  return nil
end
return redis.call('pttl', KEYS[1])`)

var javaUnlock = transport.NewScript(`
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  return nil
end
if redis.call('hincrby', KEYS[1], ARGV[1], -1) > 0 then
  redis.call('pexpire', KEYS[1], ARGV[2])
  return 0
end
redis.call('del', KEYS[1])
redis.call('publish', KEYS[2], '0')
return 1`)

// javaRenew is the script of the watchdog, also for the write side of a read/write lock.
var javaRenew = transport.NewScript(`
if redis.call('hexists', KEYS[1], ARGV[1]) == 1 then
  redis.call('pexpire', KEYS[1], ARGV[2])
  return 1
end
return 0`)

func (j *javaThread) granted(reply any) {
	if reply == nil {
		if !j.holds() {
			j.count = 0
		}
		j.count++
		j.until = j.w.ms() + javaLease
	}
}

// lock, unlock and renew are the calls of the re-entrant lock.
func (j *javaThread) lock(k *keyspace.Keys) any {
	reply := j.run("locks", javaLock, []string{k.Key}, j.owner, strconv.Itoa(javaLease))
	j.granted(reply)
	return reply
}

func (j *javaThread) unlock(k *keyspace.Keys) {
	certain := j.holds()
	reply := j.run("unlocks", javaUnlock, []string{k.Key, k.Channel}, j.owner, strconv.Itoa(javaLease))
	j.released(certain, reply)
}

func (j *javaThread) released(certain bool, reply any) {
	if reply == nil && certain {
		j.w.fail("%s has lost its hold", j.name)
	}
	j.count = max(j.count-1, 0)
	if reply == int64(0) {
		j.until = j.w.ms() + javaLease
	}
}

func (j *javaThread) renew(k *keyspace.Keys) {
	if j.run("renews", javaRenew, []string{k.Key}, j.owner, strconv.Itoa(javaLease)) == int64(1) {
		j.until = j.w.ms() + javaLease
	} else if j.holds() {
		j.w.fail("%s has lost its hold", j.name)
	}
}

var javaReadLock = transport.NewScript(`
local mode = redis.call('hget', KEYS[1], 'mode')
if not mode then
  redis.call('hset', KEYS[1], 'mode', 'read', ARGV[1], 1)
  redis.call('set', KEYS[2] .. ':1', '1', 'px', ARGV[2])
  redis.call('pexpire', KEYS[1], ARGV[2])
  return nil
end
if mode == 'read' or redis.call('hexists', KEYS[1], ARGV[1] .. ':write') == 1 then
  local count = redis.call('hincrby', KEYS[1], ARGV[1], 1)
  redis.call('set', KEYS[2] .. ':' .. count, '1', 'px', ARGV[2])
  redis.call('pexpire', KEYS[1], math.max(redis.call('pttl', KEYS[1]), tonumber(ARGV[2])))
  return nil
end
return redis.call('pttl', KEYS[1])`)

// javaReadUnlock reads all lease keys of all holders, as Redisson does.
var javaReadUnlock = transport.NewScript(`
if not redis.call('hget', KEYS[1], 'mode') then
  redis.call('publish', KEYS[3], '0')
  return nil
end
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  return nil
end
local count = redis.call('hincrby', KEYS[1], ARGV[1], -1)
if count == 0 then
  redis.call('hdel', KEYS[1], ARGV[1])
end
redis.call('del', KEYS[2] .. ':' .. count + 1)
if redis.call('hlen', KEYS[1]) > 1 then
  local longest = -3
  for _, field in ipairs(redis.call('hkeys', KEYS[1])) do
    local holds = tonumber(redis.call('hget', KEYS[1], field))
    for i = holds or 0, 1, -1 do
      longest = math.max(longest, redis.call('pttl', ARGV[2] .. ':' .. field .. ':rwlock_timeout:' .. i))
    end
  end
  if longest > 0 then
    redis.call('pexpire', KEYS[1], longest)
    return 0
  end
  if redis.call('hget', KEYS[1], 'mode') == 'write' then
    return 0
  end
end
redis.call('del', KEYS[1])
redis.call('publish', KEYS[3], '0')
return 1`)

var javaReadRenew = transport.NewScript(`
local count = redis.call('hget', KEYS[1], ARGV[1])
if not count then
  return 0
end
for i = tonumber(count), 1, -1 do
  redis.call('pexpire', KEYS[2] .. ':' .. i, ARGV[2])
end
redis.call('pexpire', KEYS[1], ARGV[2])
return 1`)

var javaWriteLock = transport.NewScript(`
local mode = redis.call('hget', KEYS[1], 'mode')
if not mode then
  redis.call('hset', KEYS[1], 'mode', 'write', ARGV[1], 1)
  redis.call('pexpire', KEYS[1], ARGV[2])
  return nil
end
if mode == 'write' and redis.call('hexists', KEYS[1], ARGV[1]) == 1 then
  redis.call('hincrby', KEYS[1], ARGV[1], 1)
  redis.call('pexpire', KEYS[1], redis.call('pttl', KEYS[1]) + ARGV[2])
  return nil
end
return redis.call('pttl', KEYS[1])`)

var javaWriteUnlock = transport.NewScript(`
local mode = redis.call('hget', KEYS[1], 'mode')
if not mode then
  redis.call('publish', KEYS[2], '1')
  return nil
end
if mode ~= 'write' or redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  return nil
end
if redis.call('hincrby', KEYS[1], ARGV[1], -1) > 0 then
  redis.call('pexpire', KEYS[1], ARGV[2])
  return 0
end
redis.call('hdel', KEYS[1], ARGV[1])
if redis.call('hlen', KEYS[1]) == 1 then
  redis.call('del', KEYS[1])
  redis.call('publish', KEYS[2], '1')
else
  redis.call('hset', KEYS[1], 'mode', 'read')
end
return 1`)

// readLock, readUnlock and readRenew are the calls of the read side of a read/write lock.
func (j *javaThread) readLock(k *keyspace.Keys) any {
	reply := j.run("locks to read", javaReadLock, j.readKeys(k), j.owner, strconv.Itoa(javaLease))
	j.granted(reply)
	return reply
}

func (j *javaThread) readUnlock(k *keyspace.Keys) {
	certain, until := j.holds(), j.until
	reply := j.run("stops to read", javaReadUnlock, j.readKeys(k), j.owner, keyspace.Tag(k.Key))
	j.released(certain, reply)
	j.until = until
}

func (j *javaThread) readRenew(k *keyspace.Keys) {
	if j.run("renews to read", javaReadRenew, j.readKeys(k), j.owner, strconv.Itoa(javaLease)) == int64(1) {
		j.until = j.w.ms() + javaLease
	} else if j.holds() {
		j.w.fail("%s has lost its hold", j.name)
	}
}

func (j *javaThread) readKeys(k *keyspace.Keys) []string {
	return []string{k.Key, keyspace.Tag(k.Key) + ":" + j.owner + ":rwlock_timeout", rw.Channel(k.Key)}
}

// writeLock, writeUnlock and writeRenew are the calls of the write side.
func (j *javaThread) writeLock(k *keyspace.Keys) any {
	reply := j.run("locks to write", javaWriteLock, []string{k.Key}, j.owner+":write", strconv.Itoa(javaLease))
	j.granted(reply)
	return reply
}

func (j *javaThread) writeUnlock(k *keyspace.Keys) {
	certain := j.holds()
	reply := j.run("stops to write", javaWriteUnlock, []string{k.Key, rw.Channel(k.Key)}, j.owner+":write", strconv.Itoa(javaLease))
	j.released(certain, reply)
}

func (j *javaThread) writeRenew(k *keyspace.Keys) {
	if j.run("renews to write", javaRenew, []string{k.Key}, j.owner+":write", strconv.Itoa(javaLease)) == int64(1) {
		j.until = j.w.ms() + javaLease
	} else if j.holds() {
		j.w.fail("%s has lost its hold", j.name)
	}
}

// javaPrune begins the scripts of the fair lock: it removes dead waiters from the head of the
// queue. KEYS are lock, queue and deadlines, and ARGV[1] is the time of the client.
const javaPrune = `
local now = tonumber(ARGV[1])
while true do
  local head = redis.call('lindex', KEYS[2], 0)
  local deadline = head and redis.call('zscore', KEYS[3], head)
  if not deadline or tonumber(deadline) > now then
    break
  end
  redis.call('zrem', KEYS[3], head)
  redis.call('lpop', KEYS[2])
end
`

// javaFairTake is an attempt. ARGV[2] is the owner, ARGV[3] the lease, and ARGV[4] how long each
// waiter waits.
const javaFairTake = javaPrune + `
local owner, lease, wait = ARGV[2], ARGV[3], tonumber(ARGV[4])
local head = redis.call('lindex', KEYS[2], 0)
if redis.call('exists', KEYS[1]) == 0 and (not head or head == owner) then
  redis.call('lpop', KEYS[2])
  redis.call('zrem', KEYS[3], owner)
  for _, waiter in ipairs(redis.call('zrange', KEYS[3], 0, -1)) do
    redis.call('zincrby', KEYS[3], -wait, waiter)
  end
  redis.call('hset', KEYS[1], owner, 1)
  redis.call('pexpire', KEYS[1], lease)
  return nil
end
if redis.call('hexists', KEYS[1], owner) == 1 then
  redis.call('hincrby', KEYS[1], owner, 1)
  redis.call('pexpire', KEYS[1], lease)
  return nil
end
`

var (
	javaFairTry  = transport.NewScript(javaFairTake + `return 1`)
	javaFairLock = transport.NewScript(javaFairTake + `
if redis.call('zscore', KEYS[3], owner) then
  return math.max(0, redis.call('pttl', KEYS[1]))
end
local last = redis.call('lindex', KEYS[2], -1)
local deadline = last and last ~= owner and redis.call('zscore', KEYS[3], last)
local delay = deadline and tonumber(deadline) - now or redis.call('pttl', KEYS[1])
if redis.call('zadd', KEYS[3], string.format('%.0f', delay + now + wait), owner) == 1 then
  redis.call('rpush', KEYS[2], owner)
end
return delay`)
	javaFairCancel = transport.NewScript(`
local behind = false
for _, waiter in ipairs(redis.call('lrange', KEYS[2], 0, -1)) do
  if waiter == ARGV[2] then
    behind = true
  elseif behind then
    redis.call('zincrby', KEYS[3], -tonumber(ARGV[4]), waiter)
  end
end
redis.call('zrem', KEYS[3], ARGV[2])
redis.call('lrem', KEYS[2], 0, ARGV[2])
return 0`)
	javaFairUnlock = transport.NewScript(javaPrune + `
local head = redis.call('lindex', KEYS[2], 0)
if redis.call('exists', KEYS[1]) == 0 then
  if head then
    redis.call('publish', KEYS[4] .. ':' .. head, '0')
  end
  return 1
end
if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then
  return nil
end
if redis.call('hincrby', KEYS[1], ARGV[2], -1) > 0 then
  redis.call('pexpire', KEYS[1], ARGV[3])
  return 0
end
redis.call('del', KEYS[1])
if head then
  redis.call('publish', KEYS[4] .. ':' .. head, '0')
end
return 1`)
)

// javaFairWait is Redisson's fairLockWaitTimeout, in ms.
const javaFairWait = 300000

func (j *javaThread) fair(what string, script transport.Command, k *keyspace.Keys) any {
	keys := append(k.FairKeys()[:3], k.Channel)
	return j.run(what, script, keys, strconv.FormatInt(j.w.ms(), 10), j.owner,
		strconv.Itoa(javaLease), strconv.Itoa(javaFairWait))
}

// java executes a script of Redisson that names no thread.
func (w *world) java(what string, script transport.Command, key string, n ...int64) any {
	var args []string
	for _, each := range n {
		args = append(args, strconv.FormatInt(each, 10))
	}
	w.tick()
	reply := w.Run(script, []string{key, semaphore.Channel(key)}, args...)
	w.say("J %s -> %s", what, show(reply))
	if isReplyError(reply) {
		w.fail("J %s: %v", what, reply)
	}
	return reply
}

var (
	javaAcquire = transport.NewScript(`
local value = redis.call('get', KEYS[1])
if value and tonumber(value) >= tonumber(ARGV[1]) then
  redis.call('decrby', KEYS[1], ARGV[1])
  return 1
end
return 0`)
	javaRelease = transport.NewScript(`
redis.call('publish', KEYS[2], redis.call('incrby', KEYS[1], ARGV[1]))
return nil`)
	javaDrain = transport.NewScript(`
local value = redis.call('get', KEYS[1])
if not value then
  return 0
end
redis.call('set', KEYS[1], 0)
return tonumber(value)`)
	javaSetOnce = transport.NewScript(`
if redis.call('exists', KEYS[1]) == 1 then
  return 0
end
redis.call('set', KEYS[1], ARGV[1])
redis.call('publish', KEYS[2], ARGV[1])
return 1`)
	javaAdd = transport.NewScript(`
local value = string.format('%.0f', (redis.call('get', KEYS[1]) or 0) + ARGV[1])
redis.call('set', KEYS[1], value)
redis.call('publish', KEYS[2], value)
return nil`)
	javaCountDown = transport.NewScript(`
local value = redis.call('decr', KEYS[1])
if value <= 0 then
  redis.call('del', KEYS[1])
end
if value == 0 then
  redis.call('publish', KEYS[2], '0')
end
return value`)
	javaDelete = transport.NewScript(`return redis.call('del', KEYS[1])`)
)

// javaReclaim begins the scripts of the permit semaphore: it takes back permits whose leases are
// over. KEYS are permits, channel and ids. ARGV[1] is the time of the client, and ARGV[2] how many
// permits to take back.
const javaReclaim = `
local over = redis.call('zrangebyscore', KEYS[3], 0, ARGV[1], 'limit', 0, ARGV[2])
if #over > 0 then
  redis.call('zrem', KEYS[3], unpack(over))
  local value = redis.call('incrby', KEYS[1], #over)
  if value > 0 then
    redis.call('publish', KEYS[2], value)
  end
end
`

var (
	// ARGV[3] is when the leases end; the rest are IDs.
	javaPermitAcquire = transport.NewScript(javaReclaim + `
local value = redis.call('get', KEYS[1])
if value and tonumber(value) >= #ARGV - 3 then
  redis.call('decrby', KEYS[1], #ARGV - 3)
  for i = 4, #ARGV do
    redis.call('zadd', KEYS[3], ARGV[3], ARGV[i])
  end
  local ttl = redis.call('pttl', KEYS[1])
  if ttl > 0 then
    redis.call('pexpire', KEYS[3], ttl)
  end
  return 1
end
return 0`)
	// ARGV[3] is an ID.
	javaPermitRelease = transport.NewScript(`
local score = redis.call('zscore', KEYS[3], ARGV[3])
if redis.call('zrem', KEYS[3], ARGV[3]) == 0 then
  return 0
end
redis.call('publish', KEYS[2], redis.call('incrby', KEYS[1], 1))
return tonumber(score) > tonumber(ARGV[1]) and 1 or 0`)
	javaPermitCount = transport.NewScript(javaReclaim + `return redis.call('get', KEYS[1])`)
)

func (w *world) javaPermits(what string, script transport.Command, key string, reclaim int, args ...string) any {
	w.tick()
	args = append([]string{strconv.FormatInt(w.ms(), 10), strconv.Itoa(reclaim)}, args...)
	reply := w.Run(script, []string{key, semaphore.Channel(key), keyspace.PermitIDsKey(key)}, args...)
	w.say("J %s -> %s", what, show(reply))
	if isReplyError(reply) {
		w.fail("J %s: %v", what, reply)
	}
	return reply
}
