package line

import (
	"math/rand/v2"
	"time"
)

// PauseUntil shortens a pause to left, plus a short random time, so that left is over by then and
// not all waiters wake at once. A negative left has no end.
func PauseUntil(left, pause time.Duration) time.Duration {
	if left < 0 || left >= pause { // left may be too large to add to
		return pause
	}
	return min(pause, left+time.Millisecond+rand.N(2*time.Millisecond))
}

// longestPollerPause is half of a turn of readers (see lua/rw/state.lua), so that a reader that
// polls misses no turn.
const longestPollerPause = 50 * time.Millisecond

// PauseOfPoller returns how long a poller rests that waits in a queue with a strict order, or to
// read: see also lua/queue/poller.lua.
func PauseOfPoller(waited time.Duration) time.Duration {
	return min(5*time.Millisecond+waited/16, longestPollerPause)
}
