package latchkey

import (
	"context"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// A line is where goroutines of a client wait that make the same kind of request. Only the one in front sends
// requests, so that a thousand of them cost the server as much as one.
type line struct {
	transport.FIFOMutex // held by the one in front

	all *lines
	key string

	// Guarded by all.mu.
	answer lastAnswer    // what the front has learned
	ticket uint64        // of the place in the queue on the server that the last front has left, or 0
	held   bool          // a hold of this program keeps the line
	had    time.Duration // how long this program has just held what they wait for, or 0
}

// lines are the lines of a client for one kind of object.
type lines = used[string, line]

func newLines() *lines {
	return newUsed(func(all *lines, key string) *line { return &line{all: all, key: key} })
}

// used has what goroutines of a client use together, by key, for as long as one of them does.
type used[K comparable, V any] struct {
	create func(all *used[K, V], key K) *V

	mu    sync.Mutex
	byKey map[K]*V
	users map[K]int
}

func newUsed[K comparable, V any](create func(*used[K, V], K) *V) *used[K, V] {
	return &used[K, V]{create: create, byKey: map[K]*V{}, users: map[K]int{}}
}

// use returns what has that key, and counts the caller as a user.
func (u *used[K, V]) use(key K) *V {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.byKey[key] == nil {
		u.byKey[key] = u.create(u, key)
	}
	u.users[key]++
	return u.byKey[key]
}

// known returns what has that key, or nil.
func (u *used[K, V]) known(key K) *V {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.byKey[key]
}

// done ends a use.
func (u *used[K, V]) done(key K) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.users[key]--; u.users[key] == 0 {
		delete(u.byKey, key)
		delete(u.users, key)
	}
}

// enter returns when the caller is in front. It calls waits if there are others before it.
func (l *line) enter(ctx context.Context, waits func()) error {
	if l.TryLock() {
		return nil
	}
	waits()
	if l.Lock(ctx) != nil {
		return fault.ContextError(ctx)
	}
	return nil
}

// done ends a use of the line.
func (l *line) done() { l.all.done(l.key) }

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
	return l.held && l.all.users[l.key] > 1
}

// holdBegins makes a hold keep the line.
func (l *line) holdBegins() {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	l.all.users[l.key]++
	l.held, l.answer = true, lastAnswer{}
}

// holdEnds lets the next in line try. had is how long the hold lasted.
func (l *line) holdEnds(had time.Duration) {
	l.all.mu.Lock()
	l.held, l.had = false, had
	l.all.mu.Unlock()
	l.Unlock()
	l.all.done(l.key)
}

// letOthersGo is the first step of the front. If this program has just had the lock, the front pauses for as
// long, but no longer than longest, so that others, which poll, get a chance.
func (l *line) letOthersGo(ctx context.Context, longest time.Duration) error {
	l.all.mu.Lock()
	had := l.had
	l.had = 0
	l.all.mu.Unlock()
	if had == 0 {
		return nil
	}
	return transport.Rest(ctx, nil, min(had, transport.Jitter(longest)))
}
