package latchkey

import (
	"errors"
	"strconv"
)

// Permits of a semaphore that goroutines of a client want are passed from one to the next in
// memory: a release gives them to those who are first in line, if these ask for just as many,
// and nothing is sent. For the server nothing has changed. It lasts for a turn: see
// waitqueue_turns.go.

// permitRequest is a wait for permits. What waits for some has one, and can be passed them.
type permitRequest struct {
	count  int
	passed bool // it has been passed them; shard.mu guards it while it waits
}

// permitWaiter is who has a permitRequest.
type permitWaiter interface{ permits() *permitRequest }

func (r *permitRequest) permits() *permitRequest { return r }

// permitsOf returns for how many permits somebody waits, or nil.
func permitsOf(who any) *permitRequest {
	if w, is := who.(permitWaiter); is {
		return w.permits()
	}
	return nil
}

// permitFront is who is in front of a wait queue for permits, and what it knows. shard.mu guards it.
type permitFront struct {
	front   *permitRequest // or nil
	asksNow bool           // it asks the server, and is passed nothing meanwhile
	refused bool           // there are too few on the server, as far as is known

	// announced is how many there were by the last message, 0 if there was none since the front asked
	// before; atAsk is that number when it asked last.
	announced, atAsk int
}

// frontAsks notes that the front asks the server now, unless it has been passed what it waits for,
// or has just come and knows the answer: the one before it was refused, and nothing has been
// heard since.
func (q *waitQueue) frontAsks(who any, first bool) (passed, known bool) {
	if permitsOf(who) == nil {
		return false, false
	}
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	switch {
	case q.front == nil:
		return false, false
	case q.front.passed:
		return true, false
	case first && q.refused && !q.heard && q.sub.live():
		return false, true
	}
	q.asksNow, q.refused, q.freedBefore = true, false, q.freed
	q.atAsk, q.announced = q.announced, 0
	q.heard = false
	return false, false
}

// frontRests notes that the front waits on: it can be passed what it waits for.
func (q *waitQueue) frontRests(who any, err error) {
	if permitsOf(who) == nil {
		return
	}
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	if q.front == nil {
		return
	}
	q.asksNow, q.refused = false, errors.Is(err, ErrNotAcquired)
	if q.refused {
		q.inVain = 0
		q.noteTaken(q.front.count)
	}
}

// frontTook notes that the server has granted the front what it asked for: there may be more, unless
// the last message was of no more. shard.mu is held.
func (q *waitQueue) frontTook(n int) {
	q.refused = 0 < q.atAsk && q.atAsk <= n
	q.atAsk = 0
}

// noteAnnounced notes how many permits there are by a message. Without the semaphore there are
// none. shard.mu is held.
func (q *waitQueue) noteAnnounced(text string) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return
	}
	q.releases++
	q.creditRelease()
	if q.announced = n; n == 0 {
		q.endTurns()
	}
}

// frontEnds says that nothing is to be passed to the front any more, and reports whether
// something was.
func (q *waitQueue) frontEnds(who any) (passed bool) {
	if permitsOf(who) == nil {
		return false
	}
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	passed = q.front != nil && q.front.passed
	q.front, q.asksNow = nil, false
	return passed
}

// passPermits passes permits to those who are first in line, if they want just as many and the turn
// lasts, and reports whether it has.
func (q *waitQueue) passPermits(n int) bool {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	if !q.mayPassPermits(n) {
		return false
	}
	takers, toFront := q.takersOf(n)
	if takers == 0 && !toFront {
		return false
	}
	acquisitions := takers
	if toFront {
		acquisitions++
	}
	q.notePass(acquisitions)
	if toFront {
		q.front.passed = true
		signal(q.signals)
	}
	for range takers {
		w := q.line.first
		q.line.remove(w)
		w.request.passed, w.taken = true, true
		close(w.inFront)
	}
	return true
}

// takersOf returns how many in line take n permits, all of them, and whether the front does
// too. While the front asks the server, those who come next go before it, unless it wants more
// than there are. shard.mu is held.
func (q *waitQueue) takersOf(n int) (takers int, front bool) {
	switch f := q.front; {
	case f == nil && q.busy, f != nil && !f.passed && f.count > n:
		return 0, false
	case f != nil && !f.passed && !q.asksNow:
		front = true
		n -= f.count
	}
	for w := q.line.first; w != nil && w.request != nil && n > 0; w = w.after {
		n -= w.request.count
		takers++
	}
	if n != 0 {
		return 0, false
	}
	return takers, front
}
