package latchkey

import (
	"math/rand/v2"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// Pollers are users of a mutex in other libraries. They publish nothing when they release it,
// nobody can see that they wait, and many acquire it again at once. So this client takes turns with
// them by time, in two ways. While they hold the mutex and it changes hands, the front tries
// often, until an attempt falls between two of their holds. And after a turn about as long as
// theirs, this client leaves the mutex free for long enough that one of them finds it.

const (
	// pollSlow is the longest pause of the front while the same poller holds the mutex. pollFast is
	// the shortest pause while it changes hands: at most 200 attempts a second.
	pollSlow = 250 * time.Millisecond
	pollFast = 5 * time.Millisecond
	// pollersLinger is how long a client takes pollers into account after it has seen them.
	pollersLinger = 5 * time.Second
	// unseenTurn is how long this client keeps the mutex if it has seen no pollers.
	unseenTurn = time.Second
	// unseenOpen is how long this client leaves the mutex free after a turn if it has seen no
	// pollers, unless the mutex was free for as long during the turn.
	unseenOpen = 50 * time.Millisecond
	// shortestTurn and longestTurn bound how long this client keeps the mutex if there are pollers,
	// and longestOpen how long it then leaves the mutex free.
	shortestTurn = 100 * time.Millisecond
	longestTurn  = 2 * time.Second
	longestOpen  = 150 * time.Millisecond
)

// pollerTurns is what a wait queue knows of pollers. shard.mu guards it.
type pollerTurns struct {
	token     string        // of the poller that held the mutex at the front's last attempt
	pace      time.Duration // of the front while pollers hold the mutex
	forgotten time.Time     // when the pollers that were seen are forgotten
	since     time.Time     // since when they hold the mutex, or zero
	oursSince time.Time     // since when this client holds it, again and again, or zero
	oursBegan time.Time     // start of this client's first turn since theirs, or zero
	mayLast   time.Duration // longest duration of the current turn
	openUntil time.Time     // until then the mutex is left to them
	freeSince time.Time     // when a release of this client left the mutex free, or zero
	wasFree   time.Duration // how long it was free in the current turn
}

// pollerHolds notes that the front was refused because a poller holds the mutex, and returns the
// pause before the next attempt.
func (q *waitQueue) pollerHolds(token string) time.Duration {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	now := time.Now()
	if q.pollers.since.IsZero() {
		q.beginTheirTurn(now)
	}
	switch {
	case now.After(q.pollers.forgotten):
		q.pollers.pace = pollSlow
	case token != q.pollers.token:
		q.pollers.pace = pollFast
	default:
		q.pollers.pace = min(q.pollers.pace*3/2, pollSlow)
	}
	q.pollers.token, q.pollers.oursSince, q.pollers.forgotten = token, time.Time{}, now.Add(pollersLinger)
	q.pollers.openUntil, q.pollers.freeSince = time.Time{}, time.Time{}
	slow := transport.Jitter(pollSlow)
	if left := q.pollers.mayLast - now.Sub(q.pollers.since); left > 0 {
		return min(left, slow)
	}
	return min(q.pollers.pace+rand.N(q.pollers.pace/4), slow)
}

// beginTheirTurn begins a turn of pollers. For half as long as this client had the mutex, the front
// tries rarely. shard.mu is held.
func (q *waitQueue) beginTheirTurn(now time.Time) {
	q.pollers.since, q.pollers.mayLast = now, 0
	if !q.pollers.oursBegan.IsZero() {
		q.pollers.mayLast = min(now.Sub(q.pollers.oursBegan), longestTurn) / 2
	}
	q.pollers.oursBegan = time.Time{}
}

// openFor returns how long the release that begins now is to leave the mutex to pollers, or 0. Even
// if none have been seen there may be some, because they hardly ever find a mutex free that this
// client acquires again at once. taken is when the server granted it to this client. shard.mu is
// held.
func (q *waitQueue) openFor(taken time.Time) time.Duration {
	now := time.Now()
	if !q.pollers.freeSince.IsZero() {
		q.pollers.wasFree += taken.Sub(q.pollers.freeSince)
		q.pollers.freeSince = time.Time{}
	}
	seen := q.hasPollers()
	if !seen && q.pollers.wasFree >= unseenOpen { // any poller has had its chance
		q.pollers.oursSince, q.pollers.oursBegan, q.pollers.mayLast = time.Time{}, time.Time{}, 0
	}
	switch {
	case q.pollers.oursSince.IsZero():
		q.beginOurTurn(now)
	case now.Sub(q.pollers.oursSince) < q.pollers.mayLast:
	case seen:
		return min(q.pollers.mayLast/4, longestOpen)
	default:
		return unseenOpen
	}
	return 0
}

// beginOurTurn begins a turn that lasts about as long as the pollers' turn did, and longer if none
// has come since the mutex was left to them. shard.mu is held.
func (q *waitQueue) beginOurTurn(now time.Time) {
	had, shortest := 2*q.pollers.mayLast, shortestTurn
	if !q.pollers.since.IsZero() {
		had = now.Sub(q.pollers.since)
	}
	if !q.hasPollers() {
		shortest = unseenTurn
	}
	if q.pollers.oursBegan.IsZero() {
		q.pollers.oursBegan = now
	}
	q.pollers.oursSince, q.pollers.since, q.pollers.wasFree, q.pollers.mayLast = now, time.Time{}, 0, min(max(had, shortest), longestTurn)
}

// leftFree notes the effect of a release: the mutex is free, or granted to another client, which
// continues the turn. If it was left to pollers, the turn of this client is over. shard.mu is held.
func (q *waitQueue) leftFree(open time.Duration, granted bool) {
	now := time.Now()
	switch {
	case granted && open > 0:
		q.pollers.oursSince = now
	case granted:
	case open > 0:
		q.pollers.oursSince, q.pollers.openUntil = time.Time{}, now.Add(open)
	default:
		q.pollers.freeSince = now
	}
}

// hasPollers reports whether pollers have been seen. shard.mu is held.
func (q *waitQueue) hasPollers() bool { return until(q.pollers.forgotten) > 0 }

// isOpen reports whether the mutex is left to pollers.
func (q *waitQueue) isOpen() bool {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	return until(q.pollers.openUntil) > 0
}
