package latchkey

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// errSlots means that no command could be sent before the call's time was over,
// because too many are waiting for an answer.
var errSlots = errors.New("latchkey: too many commands wait for an answer")

const (
	// abandonedFor is how long a command whose caller has left is taken to occupy
	// the connection at most: a silent one of our own is closed well before that.
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
	abandoned []departure // oldest first; the slot of each is taken
	departed  int64       // how many ever
	probing   bool
	left      atomic.Bool // some are abandoned
}

// departure is a caller that left before its command was answered.
type departure struct {
	number int64
	at     time.Time
}

func newSlots(n int) *slots { return &slots{taken: make(chan struct{}, n)} }

// take waits for a slot until ctx ends or the time is over. The command of a probe
// must be heard out, also when its caller leaves, and then be reported by probed.
func (s *slots) take(ctx context.Context, patience time.Duration) (probe bool, err error) {
	select {
	case s.taken <- struct{}{}:
		return false, nil
	default:
	}
	recheck := time.NewTicker(slotRecheck)
	defer recheck.Stop()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		s.reclaim(time.Now().Add(-abandonedFor))
		if s.probe() {
			return true, nil
		}
		select {
		case s.taken <- struct{}{}:
			return false, nil
		case <-ctx.Done():
			return false, errSlots
		case <-recheck.C:
		}
	}
	return false, errSlots
}

// probe hands on the slot that was abandoned first, when all are abandoned: nobody
// would notice that the server answers again. One command goes beyond the bound so,
// and the next only when that is answered.
func (s *slots) probe() bool {
	if !s.left.Load() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.probing || len(s.abandoned) < cap(s.taken) {
		return false
	}
	s.abandoned = s.abandoned[1:]
	s.probing = true
	return true
}

// probed says that the probe has been answered.
func (s *slots) probed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.probing = false
}

// give frees the slot of a command that was sent at a time and has been answered.
// Answers come in the order of the commands, so those that were abandoned before
// are over too.
func (s *slots) give(sent time.Time) {
	<-s.taken
	s.reclaim(sent)
}

// abandon leaves the slot taken: the command still occupies the connection. Whoever
// hears its answer after all settles the departure by its number.
func (s *slots) abandon() (number int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.departed++
	s.abandoned = append(s.abandoned, departure{s.departed, time.Now()})
	s.left.Store(true)
	return s.departed
}

// settle is give for a command whose caller has left. A later answer may have freed
// its slot already.
func (s *slots) settle(number int64, sent time.Time) {
	s.free(func(d departure) bool { return d.number == number || d.at.Before(sent) })
}

// reclaim frees the slots that were abandoned before a time.
func (s *slots) reclaim(before time.Time) {
	if s.left.Load() {
		s.free(func(d departure) bool { return d.at.Before(before) })
	}
}

// free never blocks, since whoever is in the list has a slot.
func (s *slots) free(over func(departure) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stay := slices.DeleteFunc(s.abandoned, over)
	for range len(s.abandoned) - len(stay) {
		<-s.taken
	}
	s.abandoned = stay
	s.left.Store(len(stay) > 0)
}
