package line

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/transport/retry"
)

// A FIFO is where goroutines of a client wait that make the same kind of request. Only the one in
// front sends requests, so that a thousand of them cost the server as much as one.
type FIFO struct {
	async.FIFOMutex // held by the one in front

	all *FIFOs
	key string

	// Guarded by all.mu.
	answer lastAnswer    // what the front has learned
	ticket uint64        // of the place in the queue on the server that the last front has left, or 0
	held   bool          // a hold of this program keeps the line
	had    time.Duration // how long this program has just held what they wait for, or 0
}

// FIFOs are the lines of a client for one kind of object.
type FIFOs = Used[string, FIFO]

// NewFIFOs returns no lines yet.
func NewFIFOs() *FIFOs {
	return NewUsed(func(all *FIFOs, key string) *FIFO { return &FIFO{all: all, key: key} })
}

// Enter returns when the caller is in front. It calls waits if there are others before it.
func (l *FIFO) Enter(ctx context.Context, waits func()) error {
	if l.TryLock() {
		return nil
	}
	waits()
	if l.Lock(ctx) != nil {
		return fault.ContextError(ctx)
	}
	return nil
}

// Done ends a use of the line.
func (l *FIFO) Done() { l.all.Done(l.key) }

// TakeTicket returns the ticket that the last front has left, or 0.
func (l *FIFO) TakeTicket() (ticket uint64) {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	ticket, l.ticket = l.ticket, 0
	return ticket
}

// LeaveTicket leaves the ticket of the front to the next one.
func (l *FIFO) LeaveTicket(ticket uint64) {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	l.ticket = ticket
}

// AttemptBegins notes that the front sends a request.
func (l *FIFO) AttemptBegins() {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	l.answer.begins()
}

// AttemptAnswered notes the outcome of the request: err is why the front has to wait on, or nil.
func (l *FIFO) AttemptAnswered(err error) {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	l.answer.answered(err)
}

// LastError returns why the front had to wait on, or nil.
func (l *FIFO) LastError() error {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	return l.answer.err
}

// WaitError is the error of a wait in line that ended with err.
func (l *FIFO) WaitError(err error) error {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	return waitEnded(err, l.answer.err, l.held, l.answer.silent())
}

// IsWaitedFor reports whether others are in line behind a hold.
func (l *FIFO) IsWaitedFor() bool {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	return l.held && l.all.users[l.key] > 1
}

// HoldBegins makes a hold keep the line.
func (l *FIFO) HoldBegins() {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	l.all.users[l.key]++
	l.held, l.answer = true, lastAnswer{}
}

// HoldEnds lets the next in line try. had is how long the hold lasted.
func (l *FIFO) HoldEnds(had time.Duration) {
	l.all.mu.Lock()
	l.held, l.had = false, had
	l.all.mu.Unlock()
	l.Unlock()
	l.all.Done(l.key)
}

// LetOthersGo is the first step of the front. If this program has just had the lock, the front
// pauses for as long, but no longer than longest, so that others, which poll, get a chance.
func (l *FIFO) LetOthersGo(ctx context.Context, longest time.Duration) error {
	l.all.mu.Lock()
	had := l.had
	l.had = 0
	l.all.mu.Unlock()
	if had == 0 {
		return nil
	}
	return retry.Rest(ctx, nil, min(had, retry.Jitter(longest)))
}
