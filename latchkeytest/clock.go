package latchkeytest

import (
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// clock is the server's time when a test moves it.
type clock struct {
	redis *miniredis.Miniredis

	mu     sync.Mutex
	manual bool
	now    time.Time
}

func newClock(redis *miniredis.Miniredis) *clock {
	return &clock{redis: redis}
}

// ManualTime stops the server's clock at the time of its start: nothing expires,
// and TIME returns the same time, until [Server.Advance] or [Server.SetTime]
// moves the clock. A test that is stopped in a debugger or starved of CPU then
// loses no lock.
//
// Clients do not see that clock. A client that holds a lock still counts its
// lease in real time and renews it. If the lease expired on the server, the
// client learns it at its next renewal. A waiter polls again after its poll
// ceiling at the latest.
func ManualTime() ServerOption {
	return func(s *Server) { s.clock.stop() }
}

// Advance moves the server's clock forward by d and expires everything that is
// due. The server must have [ManualTime], and d must not be negative.
func (s *Server) Advance(d time.Duration) {
	s.helper()
	if d < 0 {
		s.fail("Advance(%v): time does not run backwards", d)
	}
	if !s.clock.move(func(now time.Time) time.Time { return now.Add(d) }) {
		s.fail("Advance needs a server with ManualTime()")
	}
}

// SetTime sets the server's clock to t. Everything that is due by t expires. A
// step back changes the result of TIME, but restores nothing that has expired.
// The server must have [ManualTime].
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

// move sets the clock. It reports false, and changes nothing, without ManualTime.
func (c *clock) move(to func(time.Time) time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.manual {
		return false
	}
	c.now = to(c.now)
	c.redis.SetTime(c.now)
	// Keys expire when a database is accessed. If that waited for the next command,
	// a step back before that command would undo a step forward.
	c.redis.DB(0)
	return true
}
