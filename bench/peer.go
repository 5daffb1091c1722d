package main

import (
	"context"
	"time"
)

// A Release releases the lock or permit of the call that returned it. It is called once, by the
// goroutine that made that call.
type Release func(ctx context.Context) error

// A Peer is a lock library in one configuration.
type Peer interface {
	// Name identifies the peer in flags and tables.
	Name() string
	// About says in one line what the peer is and how it is configured.
	About() string
	// Open returns a client with connections of its own, as one process would have. Locks
	// have the given lease.
	Open(ctx context.Context, addr string, lease time.Duration) (Client, error)
}

// A Client is the client of one process. All methods may be called from any goroutine.
type Client interface {
	Locker
	Close()
}

// A Locker has a lock that excludes all others.
type Locker interface {
	// Lock waits until it holds the lock or ctx ends.
	Lock(ctx context.Context, key string) (Release, error)
}

// A FairLocker has a lock that is granted in the order of arrival.
type FairLocker interface {
	FairLock(ctx context.Context, key string) (Release, error)
}

// An RWLocker has a read/write lock.
type RWLocker interface {
	RLock(ctx context.Context, key string) (Release, error)
	WLock(ctx context.Context, key string) (Release, error)
}

// A Semaphorer has a semaphore.
type Semaphorer interface {
	// SetPermits creates the semaphore. It is called once, before Acquire.
	SetPermits(ctx context.Context, key string, n int) error
	// Acquire waits until it holds one permit or ctx ends.
	Acquire(ctx context.Context, key string) (Release, error)
}

// An AutoRenewer has a lock whose lease is renewed until it is released.
type AutoRenewer interface {
	LockRenewed(ctx context.Context, key string) (Release, error)
}

// A Chooser is a Peer that takes part in some workloads only.
type Chooser interface {
	Joins(workload string) bool
}

// A Commander is a Peer that sends commands that scripts call too. Redis counts both in one
// figure, which is too high if scripts of this peer call the commands that Commands returns.
type Commander interface {
	Commands() []string
}

// A Runner is a Peer that runs the workloads itself, in another language.
type Runner interface {
	Run(e *env) (Metrics, error)
}

// peers returns all peers in the order of the tables. The first is the floor of the ratios.
func peers() []Peer {
	return []Peer{
		floor{},
		latchkeyLock(),
		latchkeyMutex(),
		latchkeyWithoutTurn(),
		redsyncPeer{name: "redsync"},
		redsyncPeer{name: "redsync-5ms", delay: shortDelay},
		redislockPeer{name: "redislock", delay: 100 * time.Millisecond},
		redislockPeer{name: "redislock-5ms", delay: shortDelay},
		rueidislockPeer{},
		redisRatePeer{},
		redisson{},
	}
}

// shortDelay is the delay between two tries of the peers that poll more often than by default.
const shortDelay = 5 * time.Millisecond

// waits reports whether callers wait for each other in a workload. In other workloads the delay
// between tries has no effect.
func waits(workload string) bool {
	switch workload {
	case "contended-1x16", "contended-8x4", "clients-lock", "wakeup":
		return true
	}
	return false
}

// shares reports whether goroutines of one client use the same lock. In other workloads a client
// has nothing to pass on among its goroutines.
func shares(workload string) bool {
	switch workload {
	case "contended-1x16", "contended-8x4", "readwrite", "semaphore":
		return true
	}
	return false
}
