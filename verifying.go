package latchkey

import (
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/async"
)

// Goroutines in line behind a hold of their own client send nothing to the server. Instead the
// watchdog renews such a hold once within a poll ceiling, to notice if the holder has lost the
// lock. A hold without renewal is only verified.

const (
	// verifyOnly is the lease of a renewal that only checks whether the owner holds the lock. It is
	// shorter than any remaining lease, so the renewal changes nothing.
	verifyOnly = -time.Second
	// shortestVerifyPause is the shortest time between two rounds that look for such holds.
	shortestVerifyPause = 10 * time.Millisecond
	// pausesUnheard is how many pauses without news of a hold pass before it is to be verified. The next
	// round does that, within a poll ceiling.
	pausesUnheard = 3
)

// verifyPause is how often the watchdog looks for holds that are to be verified.
func (c *Client) verifyPause() time.Duration {
	return max(c.options.PollCeiling/4, shortestVerifyPause)
}

// IsWaitedFor reports whether goroutines of this client are in line behind the ownership, or behind
// the RedLock of which it is a member.
func (o *ownership) isWaitedFor() bool {
	line := o.redLine.Load()
	return o.links.HasLine() || line != nil && line.IsWaitedFor()
}

// verify starts the verification of holds with waiters, if it is time for a round. There may be many
// holds, so it looks for their waiters without holding w.mu.
func (w *watchdog) verify(now time.Duration) {
	found := slices.DeleteFunc(w.unheard(now), func(o *ownership) bool { return !o.isWaitedFor() })
	if len(found) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.startRenewals(slices.DeleteFunc(found, func(o *ownership) bool {
		return o.schedule.index == async.NotInHeap || now < o.schedule.verifyAt // it may be over by now, or renewed
	}))
}

// unheard returns the holds without news for a while, if it is time for a round.
func (w *watchdog) unheard(now time.Duration) (found []*ownership) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now < w.verifyAt {
		return nil
	}
	w.verifyAt = now + w.client.verifyPause()
	for _, o := range w.queue {
		if o.schedule.verifyAt <= now && now < o.schedule.deadline {
			found = append(found, o)
		}
	}
	return found
}
