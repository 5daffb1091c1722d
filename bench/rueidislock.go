package main

import (
	"context"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// rueidislockPeer is rueidislock in the configuration that its README gives for one server.
type rueidislockPeer struct{}

func (rueidislockPeer) Name() string { return "rueidislock" }

func (rueidislockPeer) About() string {
	return "rueidislock, KeyMajority 1 and NoLoopTracking (Redis 7.0.5 or newer), as its README recommends for one server"
}

func (rueidislockPeer) Open(_ context.Context, addr string, lease time.Duration) (Client, error) {
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption:   rueidis.ClientOption{InitAddress: []string{addr}},
		KeyValidity:    lease,
		KeyMajority:    1,
		NoLoopTracking: true,
	})
	if err != nil {
		return nil, err
	}
	return rueidislockClient{locker}, nil
}

type rueidislockClient struct{ locker rueidislock.Locker }

func (c rueidislockClient) Close() { c.locker.Close() }

func (c rueidislockClient) Lock(ctx context.Context, key string) (Release, error) {
	held, release, err := c.locker.WithContext(ctx, key)
	if err != nil {
		return nil, err
	}
	return func(context.Context) error {
		lost := held.Err() // the context of a hold ends when the lock is lost
		release()
		if lost != nil {
			return errLost
		}
		return nil
	}, nil
}

// LockRenewed is Lock: rueidislock always renews.
func (c rueidislockClient) LockRenewed(ctx context.Context, key string) (Release, error) {
	return c.Lock(ctx, key)
}
