package latchkey

import (
	"math/rand/v2"
	"time"
)

// until shortens a pause to what is left of something, a little later so that it is
// over by then, and not with everybody. Negative means that it has no end.
func until(left, pause time.Duration) time.Duration {
	if left < 0 || left >= pause { // left may be more than can be added to
		return pause
	}
	return min(pause, left+time.Millisecond+rand.N(2*time.Millisecond))
}

// nudge leaves a signal, of which there is one at most.
func nudge(signal chan struct{}) {
	select {
	case signal <- struct{}{}:
	default:
	}
}
