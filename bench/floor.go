package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/redis/rueidis"
)

// floor is raw rueidis with the minimum that the workloads need. It shows the cost of the server,
// the connection and the client; do not use it as a lock. Waiters subscribe to a channel. At each
// message, one waiter of each client tries again. Fair locks and semaphores are lists of tokens.
// After a crash, a token is not given back.
type floor struct{}

func (floor) Name() string { return "floor" }

func (floor) About() string {
	return "raw rueidis: SET NX PX, a script that deletes and publishes, BLPOP for the fair lock and the semaphore, " +
		"Latchkey's own script for the rate limiter; not a lock to use"
}

func (floor) Commands() []string { return []string{"set", "rpush"} }

func (floor) Open(ctx context.Context, addr string, lease time.Duration) (Client, error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c := &floorClient{redis: client, lease: lease, cancel: cancel, wakeups: newWakeups(ctx, client)}
	c.renewer = newFloorRenewer(ctx, client, lease)
	return c, nil
}

type floorClient struct {
	redis   rueidis.Client
	lease   time.Duration
	cancel  context.CancelFunc
	wakeups *wakeups
	renewer *floorRenewer
}

func (c *floorClient) Close() {
	c.cancel()
	c.redis.Close()
}

// releaseScript deletes the lock KEYS[1] of the owner ARGV[1] and publishes a message on KEYS[2].
var releaseScript = rueidis.NewLuaScript(`if redis.call('get',KEYS[1])~=ARGV[1] then return 0 end
redis.call('del',KEYS[1]) redis.call('publish',KEYS[2],'') return 1`)

// errLost says that a release did not find the lock.
var errLost = errors.New("the lock was lost")

func (c *floorClient) Lock(ctx context.Context, key string) (Release, error) {
	owner := uuid.NewString()
	if err := c.take(ctx, key, wakeOne, func() (bool, error) { return c.set(ctx, key, owner) }); err != nil {
		return nil, err
	}
	return c.releaser(releaseScript, key, owner), nil
}

// set makes owner the holder of a free lock.
func (c *floorClient) set(ctx context.Context, key, owner string) (bool, error) {
	err := c.redis.Do(ctx, c.redis.B().Set().Key(key).Value(owner).Nx().Px(c.lease).Build()).Error()
	if rueidis.IsRedisNil(err) {
		return false, nil
	}
	return err == nil, err
}

// take calls try until it succeeds: at once, after it has subscribed, and at each wake-up.
func (c *floorClient) take(ctx context.Context, key string, w waking, try func() (bool, error)) error {
	if ok, err := try(); ok || err != nil {
		return err
	}
	waiter, err := c.wakeups.join(ctx, key, w)
	if err != nil {
		return err
	}
	defer waiter.leave()
	for {
		if ok, err := try(); ok || err != nil {
			return err
		}
		if err := waiter.wait(ctx); err != nil {
			return err
		}
	}
}

// releaser returns a Release that runs a script, which returns 1 if the lock was still held.
func (c *floorClient) releaser(script *rueidis.Lua, key string, args ...string) Release {
	return func(ctx context.Context) error {
		n, err := script.Exec(ctx, c.redis, []string{key, channelOf(key)}, args).AsInt64()
		if err == nil && n != 1 {
			err = errLost
		}
		return err
	}
}

// The value of a read/write lock is 'w' or the number of readers.
var (
	readScript = rueidis.NewLuaScript(`if redis.call('get',KEYS[1])=='w' then return 0 end
redis.call('incr',KEYS[1]) redis.call('pexpire',KEYS[1],ARGV[1]) return 1`)
	endReadScript = rueidis.NewLuaScript(`local left=redis.call('decr',KEYS[1])
if left==0 then redis.call('del',KEYS[1]) redis.call('publish',KEYS[2],'') end
if left<0 then return 0 end return 1`)
)

func (c *floorClient) RLock(ctx context.Context, key string) (Release, error) {
	lease := strconv.FormatInt(c.lease.Milliseconds(), 10)
	err := c.take(ctx, key, wakeAll, func() (bool, error) {
		return readScript.Exec(ctx, c.redis, []string{key}, []string{lease}).AsBool()
	})
	if err != nil {
		return nil, err
	}
	return c.releaser(endReadScript, key), nil
}

func (c *floorClient) WLock(ctx context.Context, key string) (Release, error) {
	if err := c.take(ctx, key, wakeAll, func() (bool, error) { return c.set(ctx, key, "w") }); err != nil {
		return nil, err
	}
	return c.releaser(releaseScript, key, "w"), nil
}
