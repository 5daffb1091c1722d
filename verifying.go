package latchkey

import (
	"math"
	"slices"
	"time"
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
	// roundsUnheard is how many rounds without news of a hold pass before it is verified: three
	// to four pauses, a poll ceiling at most.
	roundsUnheard = 4
)

// verifyPause is how often the watchdog looks for holds that are to be verified.
func (c *Client) verifyPause() time.Duration {
	return max(c.options.PollCeiling/4, shortestVerifyPause)
}

// skipVerifying excludes a hold from verification until it is planned again. w.mu is held.
func (w *watchdog) skipVerifying(o *ownership) {
	o.schedule.plannedInRound = w.verifyRounds + math.MaxInt32/2
}

// isUnheard reports whether a hold is to be verified because there was no news of it for a while.
// w.mu is held.
func (w *watchdog) isUnheard(o *ownership) bool {
	return w.verifyRounds-o.schedule.plannedInRound >= roundsUnheard
}

// isWaitedFor reports whether goroutines of this client are in line behind the ownership, or behind
// the RedLock of which it is a member.
func (o *ownership) isWaitedFor() bool {
	line := o.redLine.Load()
	return o.hasLine() || line != nil && line.isWaitedFor()
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
		return o.schedule.index == notInHeap || !w.isUnheard(o) // it may be over by now, or renewed
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
	w.verifyRounds++
	for _, o := range w.queue {
		if w.isUnheard(o) && now < o.schedule.deadline {
			found = append(found, o)
		}
	}
	return found
}
