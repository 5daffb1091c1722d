package main

import (
	"github.com/latchkey-go/latchkey"
)

func fairGrowth() Growth {
	return Growth{
		Name: "growth-fair", Title: "Fair lock: owners that wait in its queue", Beside: "waiting owners",
		Operations: []string{tryRefused, lockRefused, unlockGrants},
		Run:        growFairQueue,
	}
}

// growFairQueue puts many waiters behind some real ones, grants the lock to the real ones in turn,
// and then adds more waiters.
func growFairQueue(e *env, s *stopwatch) error {
	clients, err := e.connect(2, latchkey.Options{})
	if err != nil {
		return err
	}
	hold, err := clients[0].NewFairLock(growingName).Lock(e.ctx)
	if err != nil {
		return err
	}
	front, err := s.stand(clients[1])
	if err != nil {
		return err
	}
	clear(s.times) // the queue was short
	if err := e.fillFairQueue(); err != nil {
		return err
	}
	for _, next := range front {
		err := s.time(unlockGrants, func() error { return hold.Unlock(e.ctx) })
		if err != nil {
			return err
		}
		got := <-next
		if got.err != nil {
			return got.err
		}
		hold = got.hold
	}
	for range growthRounds {
		err := s.time(tryRefused, func() error { return refused(clients[0].NewFairLock(growingName).TryLock(e.ctx)) })
		if err != nil {
			return err
		}
	}
	_, err = s.stand(clients[0])
	return err
}

// stand makes goroutines of a client join the queue one after the other.
func (s *stopwatch) stand(client *latchkey.Client) ([]<-chan attempt, error) {
	length, err := s.env.length("LLEN", fairQueueKey)
	if err != nil {
		return nil, err
	}
	var waiters []<-chan attempt
	for range growthRounds {
		length++
		err := s.time(lockRefused, func() error {
			waiters = append(waiters, inBackground(s.env.ctx, client.NewFairLock(growingName)))
			return s.env.awaitLength("LLEN", fairQueueKey, length)
		})
		if err != nil {
			return nil, err
		}
	}
	return waiters, nil
}
