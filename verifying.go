package latchkey

import (
	"math"
	"slices"
	"time"
)

// Goroutines in line behind a hold of their own client do not ask the server. In their place the
// watchdog has such holds renewed once a poll ceiling, so that it is noticed if the lock was taken
// from the holder. A hold that is not renewed is only looked at.

const (
	// verifyOnly is the lease of a renewal that only finds out whether the owner has the lock: it
	// is less than what is left of any lease, so that nothing is changed.
	verifyOnly = -time.Second
	// shortestLook is the least time between two looks for such holds.
	shortestLook = 10 * time.Millisecond
	// looksUnheard is after how many looks a hold is verified of which nothing was heard: after three to four
	// pauses, a poll ceiling at most.
	looksUnheard = 4
)

// lookPause is how often the watchdog looks for holds that are to be verified.
func (c *Client) lookPause() time.Duration { return max(c.options.PollCeiling/4, shortestLook) }

// putOffLook has a hold not be verified until it is planned anew. w.mu is held.
func (w *watchdog) putOffLook(o *ownership) { o.schedule.plannedAtLook = w.looks + math.MaxInt32/2 }

// isUnheard reports whether a hold is to be verified, because nothing was heard of it for a while. w.mu is held.
func (w *watchdog) isUnheard(o *ownership) bool {
	return w.looks-o.schedule.plannedAtLook >= looksUnheard
}

// isWaitedFor reports whether others of this client are in line behind the ownership, or behind the
// lock of several of which it is a member.
func (o *ownership) isWaitedFor() bool {
	group := o.rarely().group.Load()
	return o.hasLine() || group != nil && group.hasLine()
}

// verify has holds verified that others wait for, if it is time to look for them. There may be many
// holds: who waits for them is found out while nobody else is held up.
func (w *watchdog) verify(now time.Duration) {
	found := slices.DeleteFunc(w.unheard(now), func(o *ownership) bool { return !o.isWaitedFor() })
	if len(found) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range found {
		if o.schedule.index != nowhere && w.isUnheard(o) { // it may be over by now, or renewed
			w.startRenewal(o)
		}
	}
	signal(w.renew)
}

// unheard returns the holds of which nothing has been heard for a while, if it is time to look.
func (w *watchdog) unheard(now time.Duration) (found []*ownership) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now < w.lookAt {
		return nil
	}
	w.lookAt = now + w.client.lookPause()
	w.looks++
	for _, o := range w.queue.all() {
		if w.isUnheard(o) && now < o.schedule.deadline {
			found = append(found, o)
		}
	}
	return found
}
