package latchkey

import (
	"math/rand/v2"
	"time"
)

// pauseUntil shortens a pause to what is left of something, a little later so that it is
// over by then, and not with everybody. Negative means that it has no end.
func pauseUntil(left, pause time.Duration) time.Duration {
	if left < 0 || left >= pause { // left may be more than can be added to
		return pause
	}
	return min(pause, left+time.Millisecond+rand.N(2*time.Millisecond))
}

// signal sends on a channel that has room for one, and never blocks: a signal that is there
// already does as well.
func signal(signals chan struct{}) {
	select {
	case signals <- struct{}{}:
	default:
	}
}

// until is how long it is until a time, not more than 0 if it is over, or zero. Most times are zero, for
// which no clock is read.
func until(t time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return time.Until(t)
}
