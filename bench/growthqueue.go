package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey"
)

// The operations of growths with waiters.
const (
	tryRefused   = "TryLock, refused"
	lockRefused  = "Lock, refused"
	unlockGrants = "Unlock, which grants"
)

// growingName is the name of the lock or semaphore of a growth.
const growingName = "growing"

func queueGrowth() Growth {
	return Growth{
		Name: "growth-waiters", Title: "Lock: clients that wait in its queue", Beside: "waiting clients",
		Operations: []string{tryRefused, lockRefused, unlockGrants},
		Run:        growQueue,
	}
}

// growQueue makes two clients take turns at the front of a long queue.
func growQueue(e *env, s *stopwatch) error {
	clients, err := e.connect(3, latchkey.Options{})
	if err != nil {
		return err
	}
	holder, next, third := clients[0].NewLock(growingName), clients[1].NewLock(growingName), clients[2].NewLock(growingName)
	hold, err := holder.Lock(e.ctx)
	if err != nil {
		return err
	}
	for round := range growthRounds + 2 {
		if round == 2 { // both clients have subscribed now
			if err := e.fillQueue(); err != nil {
				return err
			}
			clear(s.times)
		}
		if err := s.time(tryRefused, func() error { return refused(third.TryLock(e.ctx)) }); err != nil {
			return err
		}
		if hold, err = s.passOn(hold, next); err != nil {
			return err
		}
		holder, next = next, holder
	}
	return nil
}

// passOn makes the next client wait for the lock, and then releases it.
func (s *stopwatch) passOn(hold *latchkey.Hold, next latchkey.Locker) (*latchkey.Hold, error) {
	e := s.env
	before, err := e.length("ZCARD", queueKey)
	if err != nil {
		return nil, err
	}
	var granted <-chan attempt
	err = s.time(lockRefused, func() error {
		granted = inBackground(e.ctx, next)
		return e.awaitLength("ZCARD", queueKey, before+1)
	})
	if err != nil {
		return nil, err
	}
	var got attempt
	err = s.time(unlockGrants, func() error {
		if err := hold.Unlock(e.ctx); err != nil {
			return err
		}
		got = <-granted
		return got.err
	})
	return got.hold, err
}

// connect returns clients of Latchkey.
func (e *env) connect(n int, options latchkey.Options) ([]*latchkey.Client, error) {
	clients := make([]*latchkey.Client, n)
	for i := range clients {
		var err error
		if clients[i], err = latchkey.Connect(e.ctx, "redis://"+e.Addr, options); err != nil {
			return nil, err
		}
	}
	return clients, nil
}

// An attempt is what a call of Lock returns.
type attempt struct {
	hold *latchkey.Hold
	err  error
}

func inBackground(ctx context.Context, lock latchkey.Locker) <-chan attempt {
	done := make(chan attempt, 1)
	go func() {
		hold, err := lock.Lock(ctx)
		done <- attempt{hold, err}
	}()
	return done
}

// refused returns an error if an attempt was not refused.
func refused(hold *latchkey.Hold, err error) error {
	if hold != nil {
		return errors.New("a lock that another client holds was acquired")
	}
	if errors.Is(err, latchkey.ErrNotAcquired) {
		return nil
	}
	return err
}

// length returns how many members a key has.
func (e *env) length(command, key string) (int64, error) {
	return e.server.Do(e.ctx, e.server.B().Arbitrary(command).Keys(key).Build()).AsInt64()
}

// awaitLength returns when a key has want members. It polls, with a pause, so that its commands do
// not disturb the measurement.
func (e *env) awaitLength(command, key string, want int64) error {
	for end := time.Now().Add(drainLimit); time.Now().Before(end); time.Sleep(100 * time.Microsecond) {
		if n, err := e.length(command, key); err != nil || n == want {
			return err
		}
	}
	return fmt.Errorf("%s did not get %d members within %v", key, want, drainLimit)
}
