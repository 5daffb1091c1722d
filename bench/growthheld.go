package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey"
)

// growingLease is the lease of the holds that are renewed.
const growingLease = 3 * time.Second

const (
	renewOne  = "renewal of one hold"
	lockOne   = "Lock of another"
	unlockOne = "Unlock of another"
)

func holdsGrowth() Growth {
	return Growth{
		Name: "growth-holds", Title: "Lock: holds of one client", Beside: "holds",
		Operations: []string{renewOne, lockOne, unlockOne},
		Run:        growHolds,
	}
}

// growHolds makes a client hold many locks and renew them.
func growHolds(e *env, s *stopwatch) error {
	clients, err := e.connect(2, latchkey.Options{Lease: growingLease})
	if err != nil {
		return err
	}
	err = e.eachOfMany(func(ctx context.Context, i int) error {
		_, err := clients[0].NewLock(fmt.Sprint("held:", i)).Lock(ctx)
		return err
	})
	if err != nil {
		return err
	}
	if err := s.timeRenewals(); err != nil {
		return err
	}
	return s.timePairs(clients[1].NewLock(growingName), lockOne, unlockOne)
}

// timeRenewals waits for two periods of renewal, and records the time per renewed hold. One script
// renews several holds.
func (s *stopwatch) timeRenewals() error {
	scripts, err := s.scripts(func() error { time.Sleep(growingLease * 2 / 3); return nil })
	if err != nil {
		return err
	}
	var took time.Duration
	var holds int64
	for _, script := range scripts {
		took, holds = took+script.took, holds+script.keys
	}
	if holds == 0 {
		return errors.New("no hold was renewed")
	}
	s.times[renewOne] = []float64{micros(took) / float64(holds)}
	return nil
}

// timePairs acquires and releases a lock.
func (s *stopwatch) timePairs(lock latchkey.Locker, acquire, release string) error {
	for range growthRounds {
		var hold *latchkey.Hold
		err := s.time(acquire, func() (err error) { hold, err = lock.Lock(s.env.ctx); return err })
		if err != nil {
			return err
		}
		if err := s.time(release, func() error { return hold.Unlock(s.env.ctx) }); err != nil {
			return err
		}
	}
	return nil
}

// eachOfMany calls do Many times, in several goroutines.
func (e *env) eachOfMany(do func(ctx context.Context, i int) error) error {
	failed := make([]error, heldWorkers)
	var group sync.WaitGroup
	for worker := range heldWorkers {
		group.Go(func() {
			for i := worker; i < e.Many && failed[worker] == nil; i += heldWorkers {
				failed[worker] = do(e.ctx, i)
			}
		})
	}
	group.Wait()
	return errors.Join(failed...)
}
