package main

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/rueidis"
)

// renewBatch is how many locks one command renews.
const renewBatch = 500

// renewScript renews those of KEYS that the owner ARGV[1] holds.
var renewScript = rueidis.NewLuaScript(`for i=1,#KEYS do
if redis.call('get',KEYS[i])==ARGV[1] then redis.call('pexpire',KEYS[i],ARGV[2]) end end return 1`)

// A floorRenewer renews all locks of a client every third of their lease.
type floorRenewer struct {
	redis rueidis.Client
	owner string
	lease time.Duration

	start sync.Once
	ctx   context.Context // ends with the client
	mu    sync.Mutex
	held  map[string]struct{}
}

func newFloorRenewer(ctx context.Context, redis rueidis.Client, lease time.Duration) *floorRenewer {
	return &floorRenewer{redis: redis, owner: uuid.NewString(), lease: lease, ctx: ctx, held: map[string]struct{}{}}
}

func (c *floorClient) LockRenewed(ctx context.Context, key string) (Release, error) {
	r := c.renewer
	if err := c.take(ctx, key, wakeOne, func() (bool, error) { return c.set(ctx, key, r.owner) }); err != nil {
		return nil, err
	}
	r.start.Do(func() { go r.run() })
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held[key] = struct{}{}
	release := c.releaser(releaseScript, key, r.owner)
	return func(ctx context.Context) error {
		r.forget(key)
		return release(ctx)
	}, nil
}

func (r *floorRenewer) forget(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.held, key)
}

func (r *floorRenewer) run() {
	ticker := time.NewTicker(r.lease / 3)
	defer ticker.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-ticker.C:
			r.renew()
		}
	}
}

func (r *floorRenewer) renew() {
	r.mu.Lock()
	keys := slices.Collect(maps.Keys(r.held))
	r.mu.Unlock()
	args := []string{r.owner, strconv.FormatInt(r.lease.Milliseconds(), 10)}
	for batch := range slices.Chunk(keys, renewBatch) {
		// If a renewal fails and the lock is lost, its release counts the loss.
		_ = renewScript.Exec(r.ctx, r.redis, batch, args).Error()
	}
}
