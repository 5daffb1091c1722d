package latchkey

import (
	"math"
	"math/rand/v2"
	"time"
)

// Turns of the permits of a semaphore. Permits that the server has granted may be passed on inside
// the client for a turn ([Options.Turn]). Permits have no names, so that turns are counted: as
// long as the turn of any permits is over that have not been given back, a release goes to
// the server. Each grant has a turn of its own, so that one does not prolong another's.
//
// What a release is told of who else listens decides about the next turn:
//
//   - Nobody: the turns of all permits begin anew.
//   - Clients of this library: those who have no permits to pass on ask first.
//   - Strangers, who know of no turns: for a second nothing is passed on beyond the share of this
//     client, and it asks later if it has had more (waitqueue_share.go).

// passesOfPermits is how often permits may be passed on in a turn while others wait.
const passesOfPermits = 256

// unseenLinger is for how long somebody is reckoned with who took permits and was not heard of: it may
// have been a client that came just then.
const unseenLinger = 100 * time.Millisecond

// permitTurns is what a wait queue knows of permits that its client has. shard.mu guards it.
type permitTurns struct {
	turns     []permitTurn  // of permits that the server has granted, the oldest first
	lasts     time.Duration // how long a turn is
	alone     bool          // the server told nobody else of the last release
	returning int           // releases under way

	othersUntil time.Time // other clients may ask before the front
	clients     int       // of this library, that were told of the last release of this one
	releases    int       // that were heard of since the server granted permits

	// freed are permits that were released while nobody else listened, and that nobody here has
	// taken since; freedBefore are those that there were when the front asked.
	freed, freedBefore int
}

// permitTurn is the turn of permits that were granted together.
type permitTurn struct {
	count  int
	ends   time.Time
	passes int // how often they may be passed on
}

// newTurn is a turn that begins now. shard.mu is held.
func (q *waitQueue) newTurn(n int) permitTurn {
	t := permitTurn{n, time.Now().Add(q.lasts), passesOfPermits}
	if q.alone {
		t.passes = math.MaxInt
	}
	return t
}

// permitsGranted begins the turn of permits that the server has granted.
func (q *waitQueue) permitsGranted(n int, turn time.Duration) {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	if q.asksNow {
		q.frontTook(n)
	}
	q.releases = 0
	q.chargeGrant()
	if q.freed > 0 || q.returning > 0 { // the answer to the release may be yet to come
		q.freed -= n
	}
	if turn > 0 {
		q.lasts = turn
		q.forgetTurns()
		q.turns = append(q.turns, q.newTurn(n))
	}
}

// forgetTurns forgets permits that were not given back for a turn after theirs: somebody keeps
// them. shard.mu is held.
func (q *waitQueue) forgetTurns() {
	kept := 0
	for kept < len(q.turns) && time.Since(q.turns[kept].ends) > q.lasts {
		kept++
	}
	q.turns = q.turns[kept:]
}

// mayPassPermits reports whether this client has as many permits, and the turn of none is
// over. While the server is asked whether others want some, if nobody did before, turns go
// on. shard.mu is held.
func (q *waitQueue) mayPassPermits(n int) bool {
	q.forgetTurns()
	if q.strangersKnown() {
		return q.mayPassBesideStrangers()
	}
	if len(q.turns) == 0 || !time.Now().Before(q.turns[0].ends) && (!q.alone || q.returning == 0) {
		return false
	}
	for _, t := range q.turns {
		if n -= t.count; n <= 0 {
			return true
		}
	}
	return false
}

// permitsReturn notes that a release is sent, of permits whose turns began first. If others listen, and there
// are too few permits, they may ask before the front does.
func (q *waitQueue) permitsReturn(n int) {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.returning++
	q.ownReleases++
	if !q.alone && q.refused {
		q.letOthersTake(askLast())
	}
	for len(q.turns) > 0 && q.turns[0].count <= n {
		n -= q.turns[0].count
		q.turns = q.turns[1:]
	}
	if len(q.turns) > 0 {
		q.turns[0].count -= n
	}
}

// listeners are the clients that were told of a release.
type listeners struct {
	told    int64 // how many, with this client
	clients int64 // how many of them are clients of this library
	known   bool  // the server has said that
	all     bool  // it counts all there are
}

// permitsReturned notes what has come of a release.
func (q *waitQueue) permitsReturned(n int, l listeners) {
	q.shard.mu.Lock()
	here := int64(0)
	if q.sub.live() {
		here = 1
	}
	q.returning--
	if (!l.known || here == 0) && q.ownReleases > 0 {
		q.ownReleases-- // nobody has told this client of it
	}
	q.alone = l.known && l.all && l.told == here
	q.clients = int(l.clients)
	switch {
	case q.alone:
		q.othersUntil = time.Time{}
		q.freed += n
		q.beginTurns()
	case l.known && l.told > max(l.clients, here):
		q.reckonWith(int(l.told-max(l.clients, here)), strangersLinger)
		fallthrough
	default:
		q.freed = 0
	}
	alone := q.alone
	q.shard.mu.Unlock()
	if alone {
		q.signal() // the message may have been put off
	}
}

// beginTurns begins the turns of all permits anew. shard.mu is held.
func (q *waitQueue) beginTurns() {
	for i, t := range q.turns {
		q.turns[i] = q.newTurn(t.count)
	}
}

// notePass notes that permits are passed on, to so many. It counts for those whose turn ends first.
// shard.mu is held.
func (q *waitQueue) notePass(acquisitions int) {
	q.chargeFor(acquisitions)
	if len(q.turns) == 0 {
		return
	}
	first := &q.turns[0]
	if first.passes--; first.passes <= 0 {
		first.ends = time.Now()
	}
}

// noteTaken notes that there are too few permits for somebody. If this client has released as
// many, and nobody else listened, somebody has taken them who cannot be seen. shard.mu is held.
func (q *waitQueue) noteTaken(n int) {
	if n <= min(q.freed, q.freedBefore) {
		q.reckonWithUnseen()
	}
	q.freed -= max(q.freedBefore, 0)
}

// endTurns ends the turns of all permits: the semaphore has been changed. shard.mu is held.
func (q *waitQueue) endTurns() {
	for i := range q.turns {
		q.turns[i].ends = time.Now()
	}
	q.credit = min(q.credit, 0)
}

// permitsChanged is called when this client has changed the semaphore.
func (q *waitQueue) permitsChanged() {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.endTurns()
}

// letOthersTake lets other clients take the permits that are released, before the front asks: after that
// pause, or beside strangers when its share allows it. shard.mu is held.
func (q *waitQueue) letOthersTake(pause time.Duration) {
	if q.strangersKnown() {
		q.letStrangersTake()
		return
	}
	q.othersUntil = time.Now().Add(pause)
}

// pauseForOthers is how long other clients have to take the permits that are announced. One that has some
// to pass on asks last. Of the others those ask first who have heard of the most releases since they were granted
// any: who has released these asks late. shard.mu is held.
func (q *waitQueue) pauseForOthers() time.Duration {
	now, last := time.Now(), len(q.turns)-1
	switch {
	case last >= 0 && now.Before(q.turns[last].ends):
		return askLast()
	case q.releases < q.clients:
		return yieldFor * time.Duration(q.clients-q.releases) / time.Duration(q.clients)
	}
	return 0
}

// longestYield is how long the front lets others ask first at most.
func (q *waitQueue) longestYield() time.Duration {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	if q.strangersKnown() {
		return longestStrangerPause
	}
	return yieldFor * 3 / 2
}

// askLast is after what time a client asks that is to ask after all others.
func askLast() time.Duration { return yieldFor/2 + rand.N(yieldFor) }

// permitPause is for how long the front is to let other clients ask first. shard.mu is held.
func (q *waitQueue) permitPause() time.Duration {
	if q.front == nil || q.front.passed {
		return 0
	}
	return max(0, until(q.othersUntil))
}
