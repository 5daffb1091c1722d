package latchkey

import (
	"container/list"
	"context"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
)

// fairWaiter is one waiter in the queue of a fair lock. When its turn comes, the server makes it
// the owner and tells its client. A message on the waiter's own channel only makes it try. Redisson
// sends such messages, and so do the scripts of this library if the client does not listen.
type fairWaiter struct {
	list      *fairWaitList
	ownership *ownership.Ownership
	queue     *line.Line // of its own channel
	awaitsSet bool       // it also waits for somebody to set the permits

	// Guarded by fairWaitList.mu.
	ticket    uint64 // 0 before the server has given one
	elem      *list.Element
	near      bool
	grantable bool       // the client listens
	aside     bool       // it wants more permits than there are in all, and is not in the queue
	line      *line.FIFO // of which it is in front, or nil
	strangers bool       // an owner of Redisson holds the lock, or waits ahead of it
	woken     bool       // to try, since its last attempt
}

// fairAttempter makes the attempts of an acquisition that waits in the queue on the server.
type fairAttempter struct {
	*acquire.Acquisition

	waiters *fairWaitList
	waiter  *fairWaiter
}

// Attempt implements [line.Attempter]. A guest is not grantable: the server would send the grant to the
// client that made the owner.
func (f fairAttempter) Attempt(ctx context.Context, round int) (left time.Duration, err error) {
	line := f.waiters.attemptBegins(f.waiter)
	if !f.Ownership.IsGuest {
		f.waiters.setGrantable(f.waiter, f.Ownership.Listens() && !f.Permanent)
	}
	if line == nil {
		return f.Acquisition.Attempt(ctx, round)
	}
	line.AttemptBegins()
	left, err = f.Acquisition.Attempt(ctx, round)
	if !fault.IsContextEnd(err) {
		line.AttemptAnswered(err)
	}
	return left, err
}

// Pause implements [line.Attempter]. The first refusal makes the client listen. A waiter near the front,
// or with no place in the line yet, pauses for as long as the server said. The others rest until
// they are woken. A waiter near the front that receives no messages polls sooner.
func (f fairAttempter) Pause(_ *line.Line, round int, left time.Duration) time.Duration {
	c := f.waiters.client
	f.ReportNoExpiry(left)
	f.ReportOwnWait()
	f.ShowWaiting()
	if !f.Ownership.IsGuest {
		f.Ownership.Listen()
	}
	if f.waiters.isBehind(f.waiter) {
		return 4 * c.Config.StaleWaiterTimeout
	}
	pause := c.PollPause()
	if !f.Ownership.IsGuest && c.Inbox.MustPoll(f.Lock.Names.Key, round) {
		pause = min(pause, line.PauseOfPoller(c.Clock().Since(f.Since)))
	}
	return line.PauseUntil(left, pause)
}

// args returns what an attempt says of the waiter: how many ms without a sign of life make it stale,
// its ticket, or "" if it has none, and the lease, in ms, of a grant, or "" if it is not grantable. A
// call that does not wait has a nil waiter, and sends "" for all of them.
func (w *fairWaiter) args() (stale, ticket, grant string) {
	if w == nil {
		return "", "", ""
	}
	c := w.list.client
	w.list.mu.Lock()
	defer w.list.mu.Unlock()
	if w.ticket != 0 {
		ticket = strconv.FormatUint(w.ticket, 10)
	}
	if w.grantable {
		grant = c.LeaseText(w.ownership.Entry.Lease)
	}
	return c.StaleMS, ticket, grant
}

// takePlace puts a waiter in front of a line. It goes on with the place that the one before it has left.
func (w *fairWaiter) takePlace(front *line.FIFO) {
	w.line, w.ticket = front, front.TakeTicket()
}

// leaveLine lets the next in line come to the front. If leaves is true, that one goes on with the place of the waiter.
func (w *fairWaiter) leaveLine(leaves bool) {
	w.list.mu.Lock()
	front, ticket := w.line, w.ticket
	w.line = nil
	w.list.mu.Unlock()
	if front == nil {
		return
	}
	if leaves {
		front.LeaveTicket(ticket)
	}
	front.Unlock()
}

// Signal implements [waker].
func (w *fairWaiter) Signal() { w.queue.Signal() }

// Reconnected implements [waker]. Waiters behind the first few cannot have missed a message.
func (w *fairWaiter) Reconnected() {
	w.list.mu.Lock()
	near := w.near || w.elem == nil || w.list.shares && !w.grantable
	w.list.mu.Unlock()
	if near {
		w.queue.Signal()
	}
}
