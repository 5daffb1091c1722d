package latchkey

import (
	"context"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// A line is where goroutines of a client wait that make the same kind of request. Only the one in front sends
// requests, so that a thousand of them cost the server as much as one.
type line struct {
	transport.FIFOMutex // held by the one in front

	all *lines
	key string

	// Guarded by all.mu.
	users  int
	answer lastAnswer    // what the front has learned
	ticket uint64        // of the place in the queue on the server that the last front has left, or 0
	held   bool          // a hold of this program keeps the line
	had    time.Duration // how long this program has just held what they wait for, or 0
}

// lines are the lines of a client for one kind of object.
type lines struct {
	mu    sync.Mutex
	byKey map[string]*line
}

func newLines() *lines { return &lines{byKey: map[string]*line{}} }

// use returns the line with a key, and counts the caller as a user.
func (l *lines) use(key string) *line {
	l.mu.Lock()
	defer l.mu.Unlock()
	each := l.byKey[key]
	if each == nil {
		each = &line{all: l, key: key}
		l.byKey[key] = each
	}
	each.users++
	return each
}

// done ends a use of the line.
func (l *line) done() {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(l.all.byKey, l.key)
	}
}

// enter returns when the caller is in front. It calls waits if there are others before it.
func (l *line) enter(ctx context.Context, waits func()) error {
	if l.TryLock() {
		return nil
	}
	waits()
	if l.Lock(ctx) != nil {
		return transport.ContextError(ctx)
	}
	return nil
}

// takeTicket returns the ticket that the last front has left, or 0.
func (l *line) takeTicket() (ticket uint64) {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	ticket, l.ticket = l.ticket, 0
	return ticket
}

// leaveTicket leaves the ticket of the front to the next one.
func (l *line) leaveTicket(ticket uint64) {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	l.ticket = ticket
}

// attemptBegins notes that the front sends a request.
func (l *line) attemptBegins() {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	l.answer.begins()
}

// attemptAnswered notes the outcome of the request: err is why the front has to wait on, or nil.
func (l *line) attemptAnswered(err error) {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	l.answer.answered(err)
}

// lastError returns why the front had to wait on, or nil.
func (l *line) lastError() error {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	return l.answer.err
}

// waitError is the error of a wait in line that ended with err.
func (l *line) waitError(err error) error {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	return waitEnded(err, l.answer.err, l.held, l.answer.silent())
}

// isWaitedFor reports whether others are in line behind a hold.
func (l *line) isWaitedFor() bool {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	return l.held && l.users > 1
}
