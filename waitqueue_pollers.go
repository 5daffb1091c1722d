package latchkey

import (
	"math/rand/v2"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// Pollers are users of a mutex in other libraries. They tell nobody when they release it, nobody
// can see that they wait, and many take it again at once. So two things take turns beside them,
// by time: while they have the mutex and it changes hands, the front asks often, until one of its
// attempts falls between two of their holds; and after a time about as long as theirs was, this
// client leaves the mutex free for long enough that one of them finds it.

const (
	// pollSlow is how long the front waits at most while the same poller has the mutex, and
	// pollFast how long at least while it changes hands: 200 attempts a second at most.
	pollSlow = 250 * time.Millisecond
	pollFast = 5 * time.Millisecond
	// pollersLinger is for how long pollers are reckoned with that were seen.
	pollersLinger = 5 * time.Second
	// unseenTurn is how long this client keeps the mutex if no pollers have been seen.
	unseenTurn = time.Second
	// unseenOpen is for how long this client leaves the mutex free after a turn if none have been seen,
	// unless it was free for as long meanwhile.
	unseenOpen = 50 * time.Millisecond
	// shortestTurn and longestTurn bound for how long this client has the mutex beside them, and
	// longestOpen for how long it leaves the mutex free after that.
	shortestTurn = 100 * time.Millisecond
	longestTurn  = 2 * time.Second
	longestOpen  = 150 * time.Millisecond
)

// besidePollers is what a wait queue knows of pollers. shard.mu guards it.
type besidePollers struct {
	token     string        // of the poller that had the mutex when the front asked last
	pace      time.Duration // of the front meanwhile
	forgotten time.Time     // when those that were seen are
	theirs    time.Time     // since when they have the mutex, or zero
	ours      time.Time     // since when this client has it, again and again, or zero
	began     time.Time     // the first such turn after one of theirs, or zero
	mayLast   time.Duration // how long the turn may that there is now
	openUntil time.Time     // the mutex is left to them
	freeSince time.Time     // when a release of this client left it free, or zero
	wasFree   time.Duration // for how long it was free in the turn that there is now
}

// pollerHolds notes that the front was refused because a poller has the mutex, and returns after
// what time it is to ask again.
func (q *waitQueue) pollerHolds(token string) time.Duration {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	now := time.Now()
	if q.theirs.IsZero() {
		q.beginTheirTurn(now)
	}
	switch {
	case now.After(q.forgotten):
		q.pace = pollSlow
	case token != q.token:
		q.pace = pollFast
	default:
		q.pace = min(q.pace*3/2, pollSlow)
	}
	q.token, q.ours, q.forgotten = token, time.Time{}, now.Add(pollersLinger)
	q.openUntil, q.freeSince = time.Time{}, time.Time{}
	slow := transport.Jitter(pollSlow)
	if left := q.mayLast - now.Sub(q.theirs); left > 0 {
		return min(left, slow)
	}
	return min(q.pace+rand.N(q.pace/4), slow)
}

// beginTheirTurn begins a turn of pollers. For half as long as this client had the mutex, its front
// does not ask often. shard.mu is held.
func (q *waitQueue) beginTheirTurn(now time.Time) {
	q.theirs, q.mayLast = now, 0
	if !q.began.IsZero() {
		q.mayLast = min(now.Sub(q.began), longestTurn) / 2
	}
	q.began = time.Time{}
}

// openFor returns for how long a release that begins is to leave the mutex to pollers, or 0. Also
// if none have been seen there may be some, to whom a mutex is hardly ever free that this client takes
// again at once. taken is when the server has given it to this client. shard.mu is held.
func (q *waitQueue) openFor(taken time.Time) time.Duration {
	now := time.Now()
	if !q.freeSince.IsZero() {
		q.wasFree += taken.Sub(q.freeSince)
		q.freeSince = time.Time{}
	}
	seen := q.hasPollers()
	if !seen && q.wasFree >= unseenOpen { // any of them has had its chance
		q.ours, q.began, q.mayLast = time.Time{}, time.Time{}, 0
	}
	switch {
	case q.ours.IsZero():
		q.beginOurTurn(now)
	case now.Sub(q.ours) < q.mayLast:
	case seen:
		return min(q.mayLast/4, longestOpen)
	default:
		return unseenOpen
	}
	return 0
}

// beginOurTurn begins a turn that lasts about as long as that of the pollers did, and longer if
// none has come since the mutex was left to them. shard.mu is held.
func (q *waitQueue) beginOurTurn(now time.Time) {
	had, shortest := 2*q.mayLast, shortestTurn
	if !q.theirs.IsZero() {
		had = now.Sub(q.theirs)
	}
	if !q.hasPollers() {
		shortest = unseenTurn
	}
	if q.began.IsZero() {
		q.began = now
	}
	q.ours, q.theirs, q.wasFree, q.mayLast = now, time.Time{}, 0, min(max(had, shortest), longestTurn)
}

// leftFree notes what a release has done: the mutex is free, or given to another client, with whom the
// turn goes on. If it was left to pollers for some time the turn of this client is over. shard.mu is held.
func (q *waitQueue) leftFree(open time.Duration, given bool) {
	now := time.Now()
	switch {
	case given && open > 0:
		q.ours = now
	case given:
	case open > 0:
		q.ours, q.openUntil = time.Time{}, now.Add(open)
	default:
		q.freeSince = now
	}
}

// hasPollers reports whether pollers have been seen. shard.mu is held.
func (q *waitQueue) hasPollers() bool { return until(q.forgotten) > 0 }

// isOpen reports whether the mutex is left to pollers.
func (q *waitQueue) isOpen() bool {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	return until(q.openUntil) > 0
}
