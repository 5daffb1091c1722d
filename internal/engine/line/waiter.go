package line

import (
	"context"
	"slices"

	"github.com/latchkey-go/latchkey/internal/base/fault"
)

// Waiter is somebody who waits in the line.
type Waiter struct {
	line       *Line
	recipient  Recipient     // or nil if no hold can be passed to it
	ready      chan struct{} // closed when it comes to the front, or receives something
	wake       chan struct{} // holds a signal to try without leaving the line
	taken      bool          // out of the line, to receive something; shard.mu guards it until then
	attempting bool          // woken in line, and attempting now; shard.mu guards it
}

// result is what a wait in line has led to.
type result int

const (
	stillInLine result = iota // it was woken, to make an attempt in line
	atFront
	received // it received the hold, and is out of the line
	leftLine // it is out of the line, with nothing
)

// await returns when the waiter has come to the front, has received the hold, or is woken in line.
func (w *Waiter) await(ctx context.Context, stop <-chan struct{}) (result, error) {
	w.attemptOver()
	var err error
	select {
	case <-w.ready:
		if w.taken {
			return received, nil
		}
		return atFront, nil
	case <-w.wake:
		if w.mayAttempt() {
			return stillInLine, nil
		}
		<-w.ready
		return received, nil
	case <-stop:
		err = fault.ErrClosed
	case <-ctx.Done():
		err = fault.ContextError(ctx)
	}
	return w.leave(), err
}

// leave takes a waiter out of the line. If it is in front by now, the next waiter comes to the
// front. If something is being passed to it, it keeps that.
func (w *Waiter) leave() result {
	if w.remove() {
		return leftLine
	}
	<-w.ready // soon: only the previous hold has to end first
	return received
}

// remove takes a waiter out of the line or the front, unless it was already taken out to receive
// something. What was left for it stays for the next.
func (w *Waiter) remove() bool {
	q := w.line
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	if w.taken {
		return false
	}
	switch i := slices.Index(q.waiters, w); {
	case i < 0: // it is in front
		q.next()
	case i == 0: // as most often: the first to come is the first whose time is over
		q.popFirst()
	default:
		q.waiters = slices.Delete(q.waiters, i, i+1)
	}
	return true
}

// Pass gives a hold to a waiter that was taken out of the line.
func (w *Waiter) Pass(hold Hold) {
	w.recipient.Receive(hold)
	close(w.ready)
}

// mayAttempt reports whether a woken waiter is still in line. It is not let in until it comes
// back, because the server may grant its attempt in the meantime.
func (w *Waiter) mayAttempt() bool {
	w.line.shard.mu.Lock()
	defer w.line.shard.mu.Unlock()
	w.attempting = !w.taken
	return w.attempting
}

// attemptOver notes that a woken waiter is back.
func (w *Waiter) attemptOver() {
	if !w.line.together {
		return
	}
	w.line.shard.mu.Lock()
	defer w.line.shard.mu.Unlock()
	w.attempting = false
}
