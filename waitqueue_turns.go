package latchkey

import (
	"math"
	"math/rand/v2"
	"time"
)

// Turns of the permits of a semaphore. Permits that the server has granted may be passed on inside
// the client for a turn ([Options.Turn]). Permits have no names, so turns are counted: while this
// client has permits whose turn is over, a release goes to the server. Each grant has its own turn,
// so that one does not prolong another.
//
// The answer to a release says who else subscribes, and decides about the next turn:
//
//   - Nobody: the turns of all permits begin again.
//   - Clients of this library: those that have no permits to pass on try first.
//   - Strangers, which know nothing of turns: for a second this client passes on no more than its
//     share, and it tries later if it has had more (waitqueue_share.go).

// passesOfPermits is how many times permits may be passed on in a turn while others wait.
const passesOfPermits = 256

// unseenLinger is how long an unseen client that took permits is taken into account: it may have
// been a client that came at that moment.
const unseenLinger = 100 * time.Millisecond

// permitTurns is what a wait queue knows of the permits of its client. shard.mu guards it.
type permitTurns struct {
	turns      []permitTurn  // of permits that the server has granted, the oldest first
	turnLength time.Duration // the duration of a turn
	alone      bool          // the message of the last release reached no other client
	returning  int           // releases in flight

	othersUntil   time.Time // until then other clients may try before the front
	clients       int       // clients of this library that received the message of this client's last release
	releasesHeard int       // releases that were heard since the server granted permits

	// freed counts permits that were released while nobody else subscribed, and that this client
	// has not acquired again. freedBefore is what freed was at the front's last attempt.
	freed, freedBefore int
}

// permitTurn is the turn of permits that were granted together.
type permitTurn struct {
	count  int
	ends   time.Time
	passes int // how many times they may be passed on
}

// newTurn returns a turn that begins now. shard.mu is held.
func (q *waitQueue) newTurn(n int) permitTurn {
	t := permitTurn{n, time.Now().Add(q.permits.turnLength), passesOfPermits}
	if q.permits.alone {
		t.passes = math.MaxInt
	}
	return t
}

// permitsGranted begins the turn of permits that the server has granted.
func (q *waitQueue) permitsGranted(n int, turn time.Duration) {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	if q.permits.attempting {
		q.frontTook(n)
	}
	q.permits.releasesHeard = 0
	q.chargeGrant()
	if q.permits.freed > 0 || q.permits.returning > 0 { // the answer to the release may not have come yet
		q.permits.freed -= n
	}
	if turn > 0 {
		q.permits.turnLength = turn
		q.forgetTurns()
		q.permits.turns = append(q.permits.turns, q.newTurn(n))
	}
}

// forgetTurns forgets permits that were not given back within a turn after theirs, because they are
// kept. shard.mu is held.
func (q *waitQueue) forgetTurns() {
	kept := 0
	for kept < len(q.permits.turns) && time.Since(q.permits.turns[kept].ends) > q.permits.turnLength {
		kept++
	}
	q.permits.turns = q.permits.turns[kept:]
}

// mayPassPermits reports whether this client has at least n permits and the turn of none is over.
// If nobody else wanted permits before, turns continue while a release is in flight that finds out
// whether somebody does. shard.mu is held.
func (q *waitQueue) mayPassPermits(n int) bool {
	q.forgetTurns()
	if q.strangersKnown() {
		return q.mayPassBesideStrangers()
	}
	if len(q.permits.turns) == 0 || !time.Now().Before(q.permits.turns[0].ends) && (!q.permits.alone || q.permits.returning == 0) {
		return false
	}
	for _, t := range q.permits.turns {
		if n -= t.count; n <= 0 {
			return true
		}
	}
	return false
}

// permitsReturn notes that a release of n permits is sent, of those whose turns began first. If
// others subscribe and there are too few permits, they may try before the front.
func (q *waitQueue) permitsReturn(n int) {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.permits.returning++
	q.permits.echoes++
	if !q.permits.alone && q.permits.refused {
		q.letOthersTake(pauseToGoLast())
	}
	for len(q.permits.turns) > 0 && q.permits.turns[0].count <= n {
		n -= q.permits.turns[0].count
		q.permits.turns = q.permits.turns[1:]
	}
	if len(q.permits.turns) > 0 {
		q.permits.turns[0].count -= n
	}
}

// listeners are the clients that received the message of a release.
type listeners struct {
	count   int64 // how many, including this client
	clients int64 // how many of them are clients of this library
	known   bool  // the server has said so
	all     bool  // it counts all of them
}

// permitsReturned notes the outcome of a release.
func (q *waitQueue) permitsReturned(n int, l listeners) {
	q.shard.mu.Lock()
	here := int64(0)
	if q.sub.live() {
		here = 1
	}
	q.permits.returning--
	if (!l.known || here == 0) && q.permits.echoes > 0 {
		q.permits.echoes-- // this client does not receive its message
	}
	q.permits.alone = l.known && l.all && l.count == here
	q.permits.clients = int(l.clients)
	switch {
	case q.permits.alone:
		q.permits.othersUntil = time.Time{}
		q.permits.freed += n
		q.beginTurns()
	case l.known && l.count > max(l.clients, here):
		q.expectStrangers(int(l.count-max(l.clients, here)), strangersLinger)
		fallthrough
	default:
		q.permits.freed = 0
	}
	alone := q.permits.alone
	q.shard.mu.Unlock()
	if alone {
		q.signal() // the front may have put the message off
	}
}

// beginTurns restarts the turns of all permits. shard.mu is held.
func (q *waitQueue) beginTurns() {
	for i, t := range q.permits.turns {
		q.permits.turns[i] = q.newTurn(t.count)
	}
}

// notePass notes that permits are passed on, for that many acquisitions. It counts as one pass of
// the permits whose turn ends first. shard.mu is held.
func (q *waitQueue) notePass(acquisitions int) {
	q.chargeFor(acquisitions)
	if len(q.permits.turns) == 0 {
		return
	}
	first := &q.permits.turns[0]
	if first.passes--; first.passes <= 0 {
		first.ends = time.Now()
	}
}

// noteTaken notes that there are fewer than n permits. If this client has released as many, and
// nobody else subscribed, a client that cannot be seen has taken them. shard.mu is held.
func (q *waitQueue) noteTaken(n int) {
	if n <= min(q.permits.freed, q.permits.freedBefore) {
		q.expectUnseen()
	}
	q.permits.freed -= max(q.permits.freedBefore, 0)
}

// endTurns ends the turns of all permits, because the semaphore has been changed. shard.mu is held.
func (q *waitQueue) endTurns() {
	for i := range q.permits.turns {
		q.permits.turns[i].ends = time.Now()
	}
	q.permits.credit = min(q.permits.credit, 0)
}

// permitsChanged ends turns after this client has changed the semaphore.
func (q *waitQueue) permitsChanged() {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.endTurns()
}

// letOthersTake lets other clients take the released permits before the front tries: for that
// pause or, if there are strangers, until its share allows an attempt. shard.mu is held.
func (q *waitQueue) letOthersTake(pause time.Duration) {
	if q.strangersKnown() {
		q.letStrangersTake()
		return
	}
	q.permits.othersUntil = time.Now().Add(pause)
}

// pauseForOthers returns how long other clients have to take announced permits. A client with
// permits to pass on tries last. Of the others, those try first that have heard of the most
// releases since their last grant; a client that has just released permits is late. shard.mu is
// held.
func (q *waitQueue) pauseForOthers() time.Duration {
	now, last := time.Now(), len(q.permits.turns)-1
	switch {
	case last >= 0 && now.Before(q.permits.turns[last].ends):
		return pauseToGoLast()
	case q.permits.releasesHeard < q.permits.clients:
		return yieldFor * time.Duration(q.permits.clients-q.permits.releasesHeard) / time.Duration(q.permits.clients)
	}
	return 0
}

// longestYield returns the longest time for which the front lets others try first.
func (q *waitQueue) longestYield() time.Duration {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	if q.strangersKnown() {
		return longestStrangerPause
	}
	return yieldFor * 3 / 2
}

// pauseToGoLast returns the delay of a client that lets all others try first.
func pauseToGoLast() time.Duration { return yieldFor/2 + rand.N(yieldFor) }

// permitPause returns how long the front lets other clients try first. shard.mu is held.
func (q *waitQueue) permitPause() time.Duration {
	if q.permits.front == nil || q.permits.front.passed {
		return 0
	}
	return max(0, until(q.permits.othersUntil))
}
