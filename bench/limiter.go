package main

import (
	"context"
	"strconv"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/lua"
)

// limiterRate is so high that no request is refused.
const limiterRate = 1_000_000_000

// A Limiter has a rate limiter.
type Limiter interface {
	// NewLimiter returns a function that asks whether one request may go.
	NewLimiter(key string) func(ctx context.Context) error
}

// askLimiter returns a function that asks a rate limiter of its own.
func askLimiter(c Client, key string) (func(ctx context.Context) error, error) {
	l, is := c.(Limiter)
	if !is {
		return nil, errMissing
	}
	return l.NewLimiter(key), nil
}

// isLimiter reports whether a workload is about rate limiters.
func isLimiter(workload string) bool {
	return workload == "limiter-1" || workload == "limiter-64"
}

// takeScript is the script of Latchkey, which the floor runs without the library.
var takeScript = rueidis.NewLuaScript(lua.Text("rate/take"))

// NewLimiter implements [Limiter] with the script of Latchkey.
func (c *floorClient) NewLimiter(key string) func(ctx context.Context) error {
	n := strconv.Itoa(limiterRate)
	keys, args := []string{key}, []string{n + "/1000000/" + n, "1", "0"}
	return func(ctx context.Context) error { return takeScript.Exec(ctx, c.redis, keys, args).Error() }
}

// NewLimiter implements [Limiter].
func (c *latchkeyAll) NewLimiter(key string) func(ctx context.Context) error {
	l := c.client.NewRateLimiter(key, latchkey.Rate{N: limiterRate, Per: time.Second})
	return func(ctx context.Context) error { _, err := l.Allow(ctx); return err }
}

// redisRatePeer is redis_rate, which has nothing but a rate limiter.
type redisRatePeer struct{}

func (redisRatePeer) Name() string { return "redis_rate" }

func (redisRatePeer) About() string { return "go-redis/redis_rate v10, Allow; a rate limiter only" }

func (redisRatePeer) Joins(workload string) bool { return isLimiter(workload) }

func (redisRatePeer) Open(_ context.Context, addr string, _ time.Duration) (Client, error) {
	client := redis.NewClient(&redis.Options{Addr: addr})
	return &redisRateClient{client, redis_rate.NewLimiter(client)}, nil
}

type redisRateClient struct {
	redis   *redis.Client
	limiter *redis_rate.Limiter
}

func (c *redisRateClient) Close() { _ = c.redis.Close() } // the process ends soon

func (*redisRateClient) Lock(context.Context, string) (Release, error) { return nil, errMissing }

// NewLimiter implements [Limiter].
func (c *redisRateClient) NewLimiter(key string) func(ctx context.Context) error {
	rate := redis_rate.PerSecond(limiterRate)
	return func(ctx context.Context) error { _, err := c.limiter.Allow(ctx, key, rate); return err }
}
