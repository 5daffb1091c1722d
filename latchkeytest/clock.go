package latchkeytest

import (
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// clock is the server's time when it is moved by hand.
type clock struct {
	redis *miniredis.Miniredis

	mu     sync.Mutex
	manual bool
	now    time.Time
}

func newClock(redis *miniredis.Miniredis) *clock {
	return &clock{redis: redis}
}

// ManualTime makes the server's clock stand still, at the time of its start:
// nothing expires, and TIME gives the same answer, until [Server.Advance] or
// [Server.SetTime] moves it. A test that is stopped in a debugger or starved of
// CPU then loses no lock.
//
// Clients do not see that clock. One that holds a lock still counts its lease in
// real time and renews it; it notices at its next renewal that the server let it
// expire, and one that waits asks again after its poll ceiling at the latest.
func ManualTime() ServerOption {
	return func(s *Server) { s.clock.stop() }
}

// Advance moves the server's clock forward by d and with it everything that
// expires. The server must have [ManualTime], and d must not be negative.
func (s *Server) Advance(d time.Duration) {
	s.helper()
	if d < 0 {
		s.fail("Advance(%v): time does not run backwards", d)
	}
	if !s.clock.move(func(now time.Time) time.Time { return now.Add(d) }) {
		s.fail("Advance needs a server with ManualTime()")
	}
}

// SetTime sets the server's clock to t. What expires before t is gone; a step
// back changes what TIME answers and brings nothing back. The server must have
// [ManualTime].
func (s *Server) SetTime(t time.Time) {
	s.helper()
	if !s.clock.move(func(time.Time) time.Time { return t }) {
		s.fail("SetTime needs a server with ManualTime()")
	}
}

func (c *clock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.manual, c.now = true, time.Now()
	c.redis.SetTime(c.now)
}

// move reports false, and moves nothing, when the clock runs by itself.
func (c *clock) move(to func(time.Time) time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.manual {
		return false
	}
	c.now = to(c.now)
	c.redis.SetTime(c.now)
	// Expiry happens when a database is looked at. If that were left to the next
	// command, a step back before it would undo a step forward.
	c.redis.DB(0)
	return true
}
