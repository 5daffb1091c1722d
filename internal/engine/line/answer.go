package line

import (
	"cmp"
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/engine/script"
)

// lastAnswer is what the front of a line has learned from the server. It is kept while the line is
// in use, and decides the error of every wait that ends. The mutex of the line guards it.
type lastAnswer struct {
	unansweredSince time.Time // when the front sent the request that it waits for, or zero
	err             error     // why the front had to wait on, or nil before the first answer
}

// begins notes that the front sends a request. The time counts from the first request that has no
// answer yet, even if the goroutine that sent it has left.
func (a *lastAnswer) begins() {
	if a.unansweredSince.IsZero() {
		a.unansweredSince = time.Now()
	}
}

// answered notes the outcome of the request: err is why the front has to wait on, or nil if it
// acquired.
func (a *lastAnswer) answered(err error) { *a = lastAnswer{err: cmp.Or(err, fault.ErrNotAcquired)} }

// silent reports whether the front has waited longer than CutOff for an answer: then the last one
// says nothing.
func (a *lastAnswer) silent() bool {
	return !a.unansweredSince.IsZero() && time.Since(a.unansweredSince) > CutOff
}

// attemptBegins notes that the front sends a request.
func (q *Line) attemptBegins() {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.awaitsGrant = false
	q.answer.begins()
}

// attemptAnswered notes the outcome of the request: see lastAnswer.answered.
func (q *Line) attemptAnswered(err error) {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.contended = q.contended || err != nil
	q.answer.answered(err)
}

// WaitError returns the error of a wait that has ended with err. The front's last answer decides,
// or else last, the waiter's own.
func (q *Line) WaitError(ctx context.Context, err, last error) error {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	if q.answer.err != nil {
		last = q.answer.err
	}
	if err != nil && ctx.Err() != nil && !fault.IsContextEnd(err) && !script.IsFinal(err) {
		last, err = err, fault.ContextError(ctx) // the answer came at the same time as the end
	}
	return waitEnded(err, last, q.isHeld(), q.answer.silent())
}

// isHeld reports whether a hold of this client keeps those in the line out. Those in a shared line
// are readers, and other readers do not keep them out. shard.mu is held.
func (q *Line) isHeld() bool {
	whole := q.whole()
	exclusive := whole.exclusive().held > 0
	return exclusive || !q.together && whole.held > 0
}

// forgetAnswers drops what the users of the line learned. shard.mu is held.
func (q *Line) forgetAnswers() {
	q.answer = lastAnswer{}
	if l := q.sides; l != nil {
		l.shared.answer, l.exclusive.answer = lastAnswer{}, lastAnswer{}
	}
}
