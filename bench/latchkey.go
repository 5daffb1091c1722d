package main

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey"
)

// latchkeyPeer is Latchkey in one configuration.
type latchkeyPeer struct {
	name, about string
	all         bool // has all kinds of locks, not only that of newLock
	turn        time.Duration
	commands    []string
	newLock     func(c *latchkey.Client, key string) latchkey.Locker
}

func latchkeyLock() Peer {
	return latchkeyPeer{
		name: "latchkey", all: true,
		about:   "Latchkey, re-entrant Lock (and FairLock, RWLock, Semaphore), defaults",
		newLock: func(c *latchkey.Client, key string) latchkey.Locker { return c.NewLock(key) },
	}
}

// latchkeyWithoutTurn shows the figures when nothing is passed on in memory.
func latchkeyWithoutTurn() Peer {
	return latchkeyPeer{
		name: "latchkey-noturn", all: true, turn: -1,
		about:   "Latchkey with Tuning.Turn -1: nothing is passed on in memory, each hold begins and ends on the server",
		newLock: func(c *latchkey.Client, key string) latchkey.Locker { return c.NewLock(key) },
	}
}

func latchkeyMutex() Peer {
	return latchkeyPeer{
		name:    "latchkey-mutex",
		about:   "Latchkey, Mutex, which is not re-entrant, defaults",
		newLock: func(c *latchkey.Client, key string) latchkey.Locker { return c.NewMutex(key) },
		// On a contended lock its scripts call SET too, so there the figure is too high.
		commands: []string{"set"},
	}
}

func (p latchkeyPeer) Name() string  { return p.name }
func (p latchkeyPeer) About() string { return p.about }

func (p latchkeyPeer) Commands() []string { return p.commands }

func (p latchkeyPeer) Joins(workload string) bool { return p.turn == 0 || shares(workload) }

func (p latchkeyPeer) Open(ctx context.Context, addr string, lease time.Duration) (Client, error) {
	options := latchkey.Options{Lease: lease, Tuning: latchkey.Tuning{Turn: p.turn}}
	client, err := latchkey.Connect(ctx, "redis://"+addr, options)
	if err != nil {
		return nil, err
	}
	basic := &latchkeyClient{client: client, newLock: p.newLock}
	if p.all {
		return &latchkeyAll{basic}, nil
	}
	return basic, nil
}

type latchkeyClient struct {
	client  *latchkey.Client
	newLock func(c *latchkey.Client, key string) latchkey.Locker
}

// Close ends the client. Holds that it cannot release end with their leases.
func (c *latchkeyClient) Close() { _ = c.client.Close(context.Background()) }

func (c *latchkeyClient) Lock(ctx context.Context, key string) (Release, error) {
	return hold(ctx, c.newLock(c.client, key))
}

// LockRenewed is Lock: without the option Lease, leases are renewed.
func (c *latchkeyClient) LockRenewed(ctx context.Context, key string) (Release, error) {
	return c.Lock(ctx, key)
}

func hold(ctx context.Context, lock latchkey.Locker) (Release, error) {
	h, err := lock.Lock(ctx)
	if err != nil {
		return nil, err
	}
	return h.Unlock, nil
}

// latchkeyAll has the other kinds of locks too.
type latchkeyAll struct{ *latchkeyClient }

func (c *latchkeyAll) FairLock(ctx context.Context, key string) (Release, error) {
	return hold(ctx, c.client.NewFairLock(key))
}

func (c *latchkeyAll) RLock(ctx context.Context, key string) (Release, error) {
	return hold(ctx, c.client.NewRWLock(key).Reader())
}

func (c *latchkeyAll) WLock(ctx context.Context, key string) (Release, error) {
	return hold(ctx, c.client.NewRWLock(key).Writer())
}

func (c *latchkeyAll) SetPermits(ctx context.Context, key string, n int) error {
	_, err := c.client.NewSemaphore(key).TrySetPermits(ctx, n)
	return err
}

func (c *latchkeyAll) Acquire(ctx context.Context, key string) (Release, error) {
	s := c.client.NewSemaphore(key)
	if err := s.Acquire(ctx); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return s.Release(ctx) }, nil
}
