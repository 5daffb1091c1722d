package main

import (
	"context"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

// redislockPeer is redislock over go-redis. Its waiters poll.
type redislockPeer struct {
	name  string
	delay time.Duration // between two tries; the library has no default
}

func (p redislockPeer) Name() string { return p.name }

func (p redislockPeer) About() string {
	return "bsm/redislock over go-redis, LinearBackoff(" + p.delay.String() + ")"
}

func (p redislockPeer) Joins(workload string) bool { return p.delay != shortDelay || waits(workload) }

func (p redislockPeer) Open(_ context.Context, addr string, lease time.Duration) (Client, error) {
	client := redis.NewClient(&redis.Options{Addr: addr})
	return &redislockClient{redis: client, locks: redislock.New(client), delay: p.delay, lease: lease}, nil
}

type redislockClient struct {
	redis        *redis.Client
	locks        *redislock.Client
	delay, lease time.Duration
}

func (c *redislockClient) Close() { _ = c.redis.Close() } // the process ends soon

func (c *redislockClient) Lock(ctx context.Context, key string) (Release, error) {
	options := &redislock.Options{RetryStrategy: redislock.LinearBackoff(c.delay)}
	l, err := c.locks.Obtain(ctx, key, c.lease, options)
	if err != nil {
		return nil, err
	}
	return l.Release, nil
}
