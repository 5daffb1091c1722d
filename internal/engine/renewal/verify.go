package renewal

import (
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/async"
)

// Goroutines in line behind a hold of their own client send nothing to the server. Instead the
// watchdog renews such a hold once within a poll ceiling, to notice if the holder has lost the
// lock. A hold without renewal is only verified.

const (
	// shortestVerifyPause is the shortest time between two rounds that look for such holds.
	shortestVerifyPause = 10 * time.Millisecond
	// pausesUnheard is how many pauses without news of a hold pass before it is to be verified. The
	// next round does that, within a poll ceiling.
	pausesUnheard = 3
)

// verifyPause is how often the watchdog looks for holds that are to be verified.
func (w *Watchdog) verifyPause() time.Duration {
	return max(w.config.PollCeiling/4, shortestVerifyPause)
}

// VerifyAt returns when a hold of which there is news now is to be verified.
func (w *Watchdog) VerifyAt(now time.Duration) time.Duration {
	return now + pausesUnheard*w.verifyPause()
}

// verify starts the verification of holds with waiters, if it is time for a round. There may be
// many holds, so it looks for their waiters without holding w.mu.
func (w *Watchdog) verify(now time.Duration) {
	found := slices.DeleteFunc(w.unheard(now), func(h Hold) bool { return !h.Awaited() })
	if len(found) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.startRenewals(slices.DeleteFunc(found, func(h Hold) bool {
		return h.item().at == async.NotInHeap || now < h.item().due.VerifyAt // it may be over by now, or renewed
	}))
}

// unheard returns the holds without news for a while, if it is time for a round.
func (w *Watchdog) unheard(now time.Duration) (found []Hold) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now < w.nextVerify {
		return nil
	}
	w.nextVerify = now + w.verifyPause()
	for _, h := range w.planned {
		if h.item().due.VerifyAt <= now && now < h.item().due.Deadline {
			found = append(found, h)
		}
	}
	return found
}
