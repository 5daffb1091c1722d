package latchkey

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// errSlots means that no command could be sent before the call's time was over,
// because too many are waiting for an answer.
var errSlots = errors.New("latchkey: too many commands wait for an answer")

const (
	// abandonedFor is how long a command whose caller has left is taken to occupy
	// the connection at most: a silent one is closed well before that.
	abandonedFor = 5 * time.Second
	slotRecheck  = 50 * time.Millisecond
	// reservedSlots are for what keeps and gives back holds, which must not queue
	// behind those who want one.
	reservedSlots = 120
)

// slots bounds the commands in flight. rueidis makes callers wait without looking
// at their contexts once 1024 commands queue on a connection; whoever waits here
// can leave.
type slots struct {
	taken     chan struct{}
	mu        sync.Mutex
	abandoned []time.Time // slots of callers that left, oldest first
	left      atomic.Bool // there are any
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
		s.reclaim(time.Now().Add(-abandonedFor))
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

// give frees the slot of a command that was sent at a time and has been answered.
// Answers come in the order of the commands, so those that were abandoned before
// are over too.
func (s *slots) give(sent time.Time) {
	<-s.taken
	s.reclaim(sent)
}

// abandon leaves the slot taken: the command still occupies the connection.
func (s *slots) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abandoned = append(s.abandoned, time.Now())
	s.left.Store(true)
}

// reclaim frees the slots that were abandoned before a time.
func (s *slots) reclaim(before time.Time) {
	if !s.left.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.abandoned) > 0 && s.abandoned[0].Before(before) {
		s.abandoned = s.abandoned[1:]
		<-s.taken
	}
	s.left.Store(len(s.abandoned) > 0)
}
