package latchkey

import (
	"cmp"
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// lastAnswer is what the front of a wait queue has learned from the server, for as long as
// anybody uses the queue: it decides about the error of everybody whose wait ends.
// shard.mu guards it.
type lastAnswer struct {
	asking time.Time // since when the front waits for an answer, or zero
	last   error     // why the front had to go on waiting, or nil before the first answer
	at     time.Time // when it was told that, or zero
	place  int       // of the one of several locks for which the front waits, from 1, or 0
}

// asks notes that the front asks the server. It counts from the first question that has
// not been answered, even if the one who asked it has left.
func (q *waitQueue) asks() {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.waitsToBeTold = false
	if q.asking.IsZero() {
		q.asking = time.Now()
	}
	q.place = 0
}

// told notes what has come of the question: err is why the front has to go on waiting, or
// nil if somebody acquires.
func (q *waitQueue) told(err error) {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.contended = q.contended || err != nil
	q.lastAnswer = lastAnswer{last: cmp.Or(err, ErrNotAcquired), at: time.Now()}
}

// awaits notes that the front waits for one of several locks.
func (q *waitQueue) awaits(place int) {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.place = place + 1
}

// awaitedPlace is the place of the lock for which the front waits, if it waits for one of several.
func (q *waitQueue) awaitedPlace() (place int, waits bool) {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	return q.place - 1, q.place > 0
}

// asksAgain reports whether the front was told something so long ago, and still waits: then the
// caller asks, and nobody else for as long.
func (q *waitQueue) asksAgain(after time.Duration) bool {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	if !q.busy || q.place == 0 || time.Since(q.at) < after {
		return false
	}
	q.at = time.Now()
	return true
}

// lastTold is why the front had to go on waiting, or nil.
func (q *waitQueue) lastTold() error {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	return q.last
}

// waitError is the error of a wait that has ended with err: what the one in
// front knows decides, or what the waiter was told last itself.
func (q *waitQueue) waitError(ctx context.Context, err, last error) error {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	if q.last != nil {
		last = q.last
	}
	if err != nil && ctx.Err() != nil && !transport.IsContextEnd(err) && !isFinal(err) {
		last, err = err, transport.ContextError(ctx) // the answer came together with the end
	}
	return waitEnded(err, last, q.isHeld(), !q.asking.IsZero() && time.Since(q.asking) > cutOff)
}

// forgetAnswers drops what those learned who used the wait queue. shard.mu is held.
func (q *waitQueue) forgetAnswers() {
	q.lastAnswer = lastAnswer{}
	if l := q.lines.Load(); l != nil {
		l.shared.lastAnswer, l.exclusive.lastAnswer = lastAnswer{}, lastAnswer{}
	}
}
