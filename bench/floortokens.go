package main

import (
	"context"
	"time"

	"github.com/redis/rueidis"
)

// tokenWait is how long one BLPOP waits. The server serves blocked clients in the order of arrival,
// so a caller that waits longer starts again at the end.
const tokenWait = 5 * time.Second

// FairLock takes the only token of a list. The first caller creates the token.
func (c *floorClient) FairLock(ctx context.Context, key string) (Release, error) {
	first, err := c.set(ctx, key+":made", "1")
	if err == nil && first {
		err = c.SetPermits(ctx, key, 1)
	}
	if err != nil {
		return nil, err
	}
	return c.Acquire(ctx, key)
}

func (c *floorClient) SetPermits(ctx context.Context, key string, n int) error {
	for range n {
		if err := c.giveToken(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

func (c *floorClient) Acquire(ctx context.Context, key string) (Release, error) {
	for {
		err := c.redis.Do(ctx, c.redis.B().Blpop().Key(key).Timeout(tokenWait.Seconds()).Build()).Error()
		if err == nil {
			return func(ctx context.Context) error { return c.giveToken(ctx, key) }, nil
		}
		if !rueidis.IsRedisNil(err) {
			return nil, err
		}
	}
}

func (c *floorClient) giveToken(ctx context.Context, key string) error {
	return c.redis.Do(ctx, c.redis.B().Rpush().Key(key).Element("1").Build()).Error()
}
