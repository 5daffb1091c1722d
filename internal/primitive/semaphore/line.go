package semaphore

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/inbox"
	"github.com/latchkey-go/latchkey/internal/engine/line"
)

// A Line is where goroutines of a client wait for the permits of a semaphore, first come, first
// served. The first is in front, and waits in the queue on the server. Permits that the client
// releases go to the first in line, in memory, for a turn (Tuning.Turn) from when the server
// granted them. For the server nothing changes then.
type Line struct {
	mu      sync.Mutex // guards waiters and turns
	waiters []*semWaiter
	turns   []semTurn // the oldest first

	place *Place // in the queue on the server, or nil; belongs to the front
}

// semTurn is the turn of permits that were granted together. Permits have no names: while there is
// a turn that is over, releases go to the server, as many as it has permits. Each grant has a turn
// of its own, so that one does not prolong another.
type semTurn struct {
	count int
	ends  time.Time
	extra int // how often permits may be passed on when it is over, while this client is short of permits
}

// passesWhileShort is how often each permit may be passed on after its turn while the client has
// had less than one of the strangers: at the server they often take it before the client that is
// called.
const passesWhileShort = 4

// semWaiter is a goroutine that waits for permits. The mutex of its line guards its fields.
type semWaiter struct {
	count  int
	moved  chan struct{} // closed when it comes to the front, or receives permits
	asking bool          // its request to the server is in flight, or has ended its wait, so it receives nothing
	passed bool          // it has received permits
	wake   func()        // wakes it while it rests in front
}

// semLines are the lines of a client.
type semLines = line.Used[line.Key, Line]

func newSemLines() *semLines {
	return line.NewUsed(func(*semLines, line.Key) *Line { return &Line{} })
}

func semLinesOf(c *core.Parts) *semLines {
	return core.KindState(c, keyspace.KindSemaphore, func() (*semLines, func()) {
		c.Inbox.Register(inbox.Calls, func(key, entry string) { leaveQueueFor(c, key, entry) })
		return newSemLines(), nil
	})
}

// enter returns when the waiter is in front, or has received permits. It calls waits if there are
// others before it.
func (l *Line) enter(ctx context.Context, stop <-chan struct{}, w *semWaiter, waits func()) error {
	l.mu.Lock()
	l.waiters = append(l.waiters, w)
	first := len(l.waiters) == 1
	l.mu.Unlock()
	if first {
		return nil
	}
	waits()
	select {
	case <-w.moved:
		return nil
	case <-stop:
		return fault.ErrClosed
	case <-ctx.Done():
		return fault.ContextError(ctx)
	}
}

// leave takes a waiter out of the line, and reports whether it has received permits. If it was in
// front, the next one comes to the front, and continues with its place. If nobody is in line, leave
// returns the place.
func (l *Line) leave(w *semWaiter) (left *Place, passed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.waiters, w); i >= 0 {
		l.remove(i)
	}
	if len(l.waiters) == 0 {
		left, l.place = l.place, nil
	}
	return left, w.passed
}

// remove takes a waiter out of the line. l.mu is held.
func (l *Line) remove(i int) {
	l.waiters = slices.Delete(l.waiters, i, i+1)
	if i == 0 && len(l.waiters) > 0 {
		close(l.waiters[0].moved)
	}
}

// pass gives released permits to the first in line while the turn lasts, and returns how many are
// left. It stops at the first that wants more. While the front asks the server, those behind it
// that want no more than it may go first.
func (l *Line) pass(n int, short bool) (left int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.mayPass(short) {
		return n
	}
	most := n
	for i := 0; i < len(l.waiters); {
		switch w := l.waiters[i]; {
		case w.passed: // and has yet to leave the front
			i++
		case w.count > min(n, most):
			return n
		case w.asking:
			most = w.count
			i++
		default:
			n -= w.count
			l.give(i)
		}
	}
	return n
}

// mayPass reports whether the turn lasts, a little longer if the client is short of permits. l.mu
// is held.
func (l *Line) mayPass(short bool) bool {
	if len(l.turns) == 0 {
		return false
	}
	t := &l.turns[0]
	over := time.Now().After(t.ends)
	if over && short && t.extra > 0 {
		t.extra--
		return true
	}
	return !over
}

// give gives released permits to a waiter. In front it is told so, and leaves by itself. l.mu is
// held.
func (l *Line) give(i int) {
	w := l.waiters[i]
	w.passed = true
	if i == 0 {
		w.wake()
		return
	}
	l.remove(i)
	close(w.moved)
}

// asks notes that the front sends a request, unless it has received permits: then it reports false.
func (l *Line) asks(w *semWaiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.asking = !w.passed
	return w.asking
}

// refused notes that the front has to wait on.
func (l *Line) refused(w *semWaiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.asking = false
}

// received reports whether a waiter has received permits.
func (l *Line) received(w *semWaiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return w.passed
}

// granted begins a turn of permits that the server has granted. It forgets those that have been
// kept for another turn.
func (l *Line) granted(n int, turn time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for len(l.turns) > 0 && now.Sub(l.turns[0].ends) > turn {
		l.turns = l.turns[1:]
	}
	l.turns = append(l.turns, semTurn{n, now.Add(max(turn, 0)), n * passesWhileShort})
}

// returns notes that permits go back to the server, those first whose turns began first.
func (l *Line) returns(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.turns) > 0 && l.turns[0].count <= n {
		n -= l.turns[0].count
		l.turns = l.turns[1:]
	}
	if len(l.turns) > 0 {
		l.turns[0].count -= n
	}
}

// endTurns makes permits return to the server, because the semaphore has changed.
func (l *Line) endTurns() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turns = nil
}
