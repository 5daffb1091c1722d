package latchkey

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errSlots means that no command could be sent before the call's time was over,
// because too many are waiting for an answer.
var errSlots = errors.New("latchkey: too many commands wait for an answer")

const (
	// abandonedFor is how long a command whose caller has left is taken to occupy
	// the connection: a silent one is closed well before that.
	abandonedFor = 5 * time.Second
	slotRecheck  = 50 * time.Millisecond
)

// slots bounds the commands in flight. rueidis makes callers wait without looking
// at their contexts once 1024 commands queue on a connection; whoever waits here
// can leave.
type slots struct {
	taken     chan struct{}
	mu        sync.Mutex
	abandoned []time.Time // slots of callers that left, oldest first
}

func newSlots(n int) *slots { return &slots{taken: make(chan struct{}, n)} }

// take waits for a slot until ctx ends or the time is over.
func (s *slots) take(ctx context.Context, patience time.Duration) error {
	select {
	case s.taken <- struct{}{}:
		return nil
	default:
	}
	recheck := time.NewTicker(slotRecheck)
	defer recheck.Stop()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		s.reclaim()
		select {
		case s.taken <- struct{}{}:
			return nil
		case <-ctx.Done():
			return errSlots
		case <-recheck.C:
		}
	}
	return errSlots
}

// give frees a slot whose command has been answered.
func (s *slots) give() { <-s.taken }

// abandon leaves the slot taken: the command still occupies the connection.
func (s *slots) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abandoned = append(s.abandoned, time.Now())
}

// reclaim frees the slots of commands that must be over by now.
func (s *slots) reclaim() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.abandoned) > 0 && time.Since(s.abandoned[0]) > abandonedFor {
		s.abandoned = s.abandoned[1:]
		s.give()
	}
}
