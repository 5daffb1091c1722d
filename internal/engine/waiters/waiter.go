package waiters

import (
	"context"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
)

// Waiter is one waiter in a queue on the server: that of a fair lock, or for permits with ids. When
// its turn comes, the server makes it the owner and tells its client. A message on the waiter's own
// channel only makes it try. Redisson sends such messages, and so do the scripts of this library if
// the client does not listen.
type Waiter struct {
	List      *List
	Ownership *ownership.Ownership
	Own       *line.Line // in which it waits alone, for messages on its own channel
	awaitsSet bool       // it also waits for somebody to set the permits

	// Guarded by List.mu.
	Ticket    uint64 // 0 before the server has given one
	placed    bool   // it is among the waiters of its lock, in the order of their tickets
	near      bool
	Grantable bool       // the client listens
	aside     bool       // it wants more permits than there are in all, and is not in the queue
	line      *line.FIFO // of which it is in front, or nil
	strangers bool       // an owner of Redisson holds the lock, or waits ahead of it
	woken     bool       // to try, since its last attempt
}

// Attempter makes the attempts of an acquisition that waits in the queue on the server.
type Attempter struct {
	*acquire.Acquisition

	Waiter *Waiter
}

// Attempt implements [line.Attempter]. A guest is not grantable: the server would send the grant to
// the client that made the owner.
func (f Attempter) Attempt(ctx context.Context, round int) (left time.Duration, err error) {
	line := f.Waiter.List.attemptBegins(f.Waiter)
	if !f.Ownership.IsGuest {
		f.Waiter.List.setGrantable(f.Waiter, f.Ownership.Entry.Listens() && !f.Permanent)
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

// Pause implements [line.Attempter]. The first refusal makes the client listen. A waiter near the
// front, or with no place in the line yet, pauses for as long as the server said. The others rest
// until they are woken. A waiter near the front that receives no messages polls sooner.
func (f Attempter) Pause(_ *line.Line, round int, left time.Duration) time.Duration {
	c := f.Waiter.List.client
	f.ReportNoExpiry(left)
	f.ReportOwnWait()
	f.ShowWaiting()
	if !f.Ownership.IsGuest {
		f.Ownership.Entry.Listen()
	}
	if f.Waiter.List.isBehind(f.Waiter) {
		return 4 * c.Config.StaleWaiterTimeout
	}
	pause := c.PollPause()
	if !f.Ownership.IsGuest && c.Inbox.MustPoll(f.Lock.Names.Key, round) {
		pause = min(pause, line.PauseOfPoller(c.Clock().Since(f.Since)))
	}
	return line.PauseUntil(left, pause)
}

// Args returns what an attempt says of the waiter: how many ms without a sign of life make it
// stale, its ticket, or "" if it has none, and the lease, in ms, of a grant, or "" if it is not
// grantable. A call that does not wait has a nil waiter, and sends "" for all of them.
func (w *Waiter) Args() (stale, ticket, grant string) {
	if w == nil {
		return "", "", ""
	}
	c := w.List.client
	w.List.mu.Lock()
	defer w.List.mu.Unlock()
	if w.Ticket != 0 {
		ticket = strconv.FormatUint(w.Ticket, 10)
	}
	if w.Grantable {
		grant = c.LeaseText(w.Ownership.Entry.Lease)
	}
	return c.StaleMS, ticket, grant
}

// takePlace puts a waiter in front of a line. It goes on with the place that the one before it has
// left.
func (w *Waiter) takePlace(front *line.FIFO) {
	w.line, w.Ticket = front, front.TakeTicket()
}

// leaveLine lets the next in line come to the front. If leaves is true, that one goes on with the
// place of the waiter.
func (w *Waiter) leaveLine(leaves bool) {
	w.List.mu.Lock()
	front, ticket := w.line, w.Ticket
	w.line = nil
	w.List.mu.Unlock()
	if front == nil {
		return
	}
	if leaves {
		front.LeaveTicket(ticket)
	}
	front.Unlock()
}

// Signal wakes the waiter: see [queue.Entry.WaitAlone].
func (w *Waiter) Signal() { w.Own.Signal() }

// Reconnected wakes the waiter if messages may have been lost. Waiters behind the first few cannot
// have missed a message.
func (w *Waiter) Reconnected() {
	w.List.mu.Lock()
	near := w.near || !w.placed || w.List.shares && !w.Grantable
	w.List.mu.Unlock()
	if near {
		w.Own.Signal()
	}
}
