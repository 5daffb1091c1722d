package latchkey

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// holdLimit is how long a hold may last at most: what MaxHold says, counted from a stamp. The
// zero holdLimit allows everything.
type holdLimit struct {
	max  time.Duration
	from transport.Stamp
}

// left is what is left until the limit, never without one.
func (l holdLimit) left(now transport.Stamp) time.Duration {
	if l.max == 0 {
		return never
	}
	return l.max - now.Since(l.from)
}

// valid is for how long the limit lets a hold be relied on.
func (l holdLimit) valid(now transport.Stamp) time.Duration { return l.left(now) - driftMargin(l.max) }

// limitHold sets the timer of a re-entry, if it has a limit of its own. t.mu is held.
func (t *ownership) limitHold(s *holdState) {
	if s.limit.max > 0 {
		s.timer = time.AfterFunc(s.limit.valid(t.client.clock()), func() { t.limitReached(s) })
	}
}

// limitReached ends a re-entry at its own limit, and gives its count back in the
// background. The outer hold goes on.
func (t *ownership) limitReached(s *holdState) {
	t.mu.Lock()
	if !s.active() || t.phase != held {
		t.mu.Unlock()
		return
	}
	t.giveUp(s)
	endings := t.holds.remove(s, ErrMaxHold)
	t.plan()
	lease := t.lease.span()
	t.mu.Unlock()
	endAll(endings, ErrMaxHold)
	t.undoLater(0, lease)
}

// endLimited ends the re-entries whose own limit is over, should their timers not have
// noticed that the machine slept.
func (t *ownership) endLimited() {
	now := t.client.clock()
	t.mu.Lock()
	past := t.holds.pastLimit(now)
	t.mu.Unlock()
	for _, s := range past {
		t.limitReached(s)
	}
}
