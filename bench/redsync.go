package main

import (
	"context"
	"math"
	"time"

	"github.com/go-redsync/redsync/v4"
	pool "github.com/go-redsync/redsync/v4/redis/rueidis"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidiscompat"
)

// redsyncPeer is redsync over rueidis. Its waiters poll.
type redsyncPeer struct {
	name  string
	delay time.Duration // between two tries; 0 is the library's default
}

func (p redsyncPeer) Name() string { return p.name }

func (p redsyncPeer) About() string {
	delay := "its default delay (50 to 250 ms at random)"
	if p.delay > 0 {
		delay = "a delay of " + p.delay.String()
	}
	return "redsync over rueidis, tries without limit, " + delay + " between them"
}

func (p redsyncPeer) Commands() []string { return []string{"set"} }

func (p redsyncPeer) Joins(workload string) bool { return p.delay == 0 || waits(workload) }

func (p redsyncPeer) Open(_ context.Context, addr string, lease time.Duration) (Client, error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
	if err != nil {
		return nil, err
	}
	c := &redsyncClient{
		redis:   client,
		redsync: redsync.New(pool.NewPool(rueidiscompat.NewAdapter(client))),
		options: []redsync.Option{redsync.WithExpiry(lease), redsync.WithTries(math.MaxInt)},
	}
	if p.delay > 0 {
		c.options = append(c.options, redsync.WithRetryDelay(p.delay))
	}
	return c, nil
}

type redsyncClient struct {
	redis   rueidis.Client
	redsync *redsync.Redsync
	options []redsync.Option
}

func (c *redsyncClient) Close() { c.redis.Close() }

func (c *redsyncClient) Lock(ctx context.Context, key string) (Release, error) {
	m := c.redsync.NewMutex(key, c.options...)
	if err := m.LockContext(ctx); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		_, err := m.UnlockContext(ctx)
		return err
	}, nil
}
