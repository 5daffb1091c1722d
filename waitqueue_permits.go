package latchkey

import (
	"errors"
	"strconv"
)

// Goroutines of a client pass permits of a semaphore to each other in memory. A release gives the
// permits to the first in line, if these want exactly as many, and sends nothing. For the server
// nothing has changed. This lasts for a turn: see waitqueue_turns.go.

// permitRequest is a wait for permits. Everything that waits for permits has one, and can receive
// them.
type permitRequest struct {
	count  int
	passed bool // the permits were passed to it; shard.mu guards it while it waits
}

// permitWaiter is something with a permitRequest.
type permitWaiter interface{ permits() *permitRequest }

func (r *permitRequest) permits() *permitRequest { return r }

// permitsOf returns the permitRequest of a waiter, or nil.
func permitsOf(who any) *permitRequest {
	if w, is := who.(permitWaiter); is {
		return w.permits()
	}
	return nil
}

// permitFront is the front of a wait queue for permits, and what it knows. shard.mu guards it.
type permitFront struct {
	front      *permitRequest // or nil
	attempting bool           // it is querying the server, and receives nothing until the answer
	refused    bool           // as far as is known, the server has too few

	// announced is the number of permits in the last message, 0 if there was none since the front's
	// last attempt; announcedBefore is what announced was before that attempt.
	announced, announcedBefore int
}

// frontAttempts notes that the front, which waits for r or for no permits, makes an attempt now, unless
// the permits were passed to it (passed), or it has just come and knows the answer (known): the previous
// front was refused, and no message has come since.
func (q *waitQueue) frontAttempts(r *permitRequest, first bool) (passed, known bool) {
	if r == nil {
		return false, false
	}
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	switch {
	case q.permits.front == nil:
		return false, false
	case q.permits.front.passed:
		return true, false
	case first && q.permits.refused && !q.signaled && q.sub.live():
		return false, true
	}
	q.permits.attempting, q.permits.refused, q.permits.freedBefore = true, false, q.permits.freed
	q.permits.announcedBefore, q.permits.announced = q.permits.announced, 0
	q.signaled = false
	return false, false
}

// frontRests notes that the front waits on. From now on permits can be passed to it.
func (q *waitQueue) frontRests(r *permitRequest, err error) {
	if r == nil {
		return
	}
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	if q.permits.front == nil {
		return
	}
	q.permits.attempting, q.permits.refused = false, errors.Is(err, ErrNotAcquired)
	if q.permits.refused {
		q.permits.uselessPauses = 0
		q.noteTaken(q.permits.front.count)
	}
}

// frontTook notes that the server has granted n permits to the front. There may be more, unless the
// last message announced no more. shard.mu is held.
func (q *waitQueue) frontTook(n int) {
	q.permits.refused = 0 < q.permits.announcedBefore && q.permits.announcedBefore <= n
	q.permits.announcedBefore = 0
}

// noteAnnounced notes the number of permits in a message. It is 0 if the semaphore does not exist.
// shard.mu is held.
func (q *waitQueue) noteAnnounced(text string) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return
	}
	q.permits.releasesHeard++
	q.creditRelease()
	if q.permits.announced = n; n == 0 {
		q.endTurns()
	}
}

// frontEnds notes that nothing can be passed to the front any more, and reports whether something
// was.
func (q *waitQueue) frontEnds(r *permitRequest) (passed bool) {
	if r == nil {
		return false
	}
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	passed = q.permits.front != nil && q.permits.front.passed
	q.permits.front, q.permits.attempting = nil, false
	return passed
}

// passPermits passes permits to the first in line, if these want exactly n and the turn lasts. It
// reports whether it did.
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
		q.permits.front.passed = true
		signal(q.signals)
	}
	for range takers {
		w := q.line.first
		q.line.remove(w)
		w.request.passed, w.taken = true, true
		close(w.ready)
	}
	return true
}

// takersOf returns how many waiters in line take n permits, all of them, and whether the front does
// too. While the front queries the server, those behind it go first, unless it wants more than n.
// shard.mu is held.
func (q *waitQueue) takersOf(n int) (takers int, front bool) {
	switch f := q.permits.front; {
	case f == nil && q.busy, f != nil && !f.passed && f.count > n:
		return 0, false
	case f != nil && !f.passed && !q.permits.attempting:
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
