package latchkey

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// The goroutines of a program that want the same RedLock wait in one line, and only the one in front sends
// requests: each round of another would take members away from it. Between programs there is no queue, and
// all poll.

// redLine is the line of all RedLocks of a program with the same members. A goroutine has it from when it is
// in front until it gives up or its hold ends.
type redLine struct {
	transport.FIFOMutex

	all *redLines
	key string

	// Guarded by all.mu.
	users int
	held  bool          // a hold of this program has it
	last  error         // why the front had to wait on, or nil
	had   time.Duration // how long this program has just had the lock, or 0
}

// redLines are the lines that belong to a client.
type redLines struct {
	mu    sync.Mutex
	lines map[string]*redLine
}

func newRedLines(*Client) kindState { return &redLines{lines: map[string]*redLine{}} }

func (*redLines) close() {}

// use returns the line of the lock, and counts the caller as a user. The line belongs to a client of one of
// the members, the same for all locks with these members.
func (l *RedLock) use() *redLine {
	first := slices.MinFunc(l.primitives(), func(a, b *primitive) int { return strings.Compare(a.client.id, b.client.id) }).client
	all, key := first.kindState(KindRed, newRedLines).(*redLines), identityOf(l.kind, l.members)
	all.mu.Lock()
	defer all.mu.Unlock()
	line := all.lines[key]
	if line == nil {
		line = &redLine{all: all, key: key}
		all.lines[key] = line
	}
	line.users++
	return line
}

// done ends a use of the line.
func (l *redLine) done() {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(l.all.lines, l.key)
	}
}

// identityOf returns a text that identifies the lock in this program. The order of the members does not
// matter.
func identityOf(kind Kind, members []member) string {
	each := make([]string, len(members))
	for i, m := range members {
		switch m := m.(type) {
		case *primitive:
			each[i] = fmt.Sprintf("%s %s %q", m.spec.kind, m.client.id, m.key)
		case *compositeLock:
			each[i] = identityOf(m.kind, m.members)
		}
	}
	slices.Sort(each)
	return fmt.Sprintf("%s(%s)", kind, strings.Join(each, ", "))
}

// isWaitedFor reports whether others are in line behind a hold.
func (l *redLine) isWaitedFor() bool {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	return l.held && l.users > 1
}

// begins makes a hold keep the line.
func (l *redLine) begins() {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	l.users++
	l.held, l.last = true, nil
}

// ends lets the next in line try, after the hold of this program is over. had is how long it lasted.
func (l *redLine) ends(had time.Duration) {
	l.all.mu.Lock()
	l.held, l.had = false, had
	l.all.mu.Unlock()
	l.Unlock()
	l.done()
}

// note notes why the front has to wait on.
func (l *redLine) note(err error) {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	l.last = err
}

// lastError returns why the front had to wait on, or nil.
func (l *redLine) lastError() error {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	return l.last
}

// letOthersGo is the first step of the front. If this program has just had the lock, the front pauses for as
// long, but no longer than longest, so that others, which poll, get a chance.
func (l *redLine) letOthersGo(ctx context.Context, longest time.Duration) error {
	l.all.mu.Lock()
	had := l.had
	l.had = 0
	l.all.mu.Unlock()
	if had == 0 {
		return nil
	}
	return transport.Rest(ctx, nil, min(had, transport.Jitter(longest)))
}

// waitError is the error of a wait in line that ended with err.
func (l *redLine) waitError(of *primitive, err error) error {
	l.all.mu.Lock()
	last, held := l.last, l.held
	l.all.mu.Unlock()
	return of.client.withOwnHold(of.key, waitEnded(err, last, held, false))
}

// waitInLine acquires after the earlier calls of this program. A call that re-enters members does not wait behind
// calls that may be waiting for it.
func (l *RedLock) waitInLine(ctx context.Context, r *request, settings []setting, mark *waitMark) (*Hold, error) {
	if l.mayReenter(ctx) {
		return l.rounds(ctx, r, settings, nil, mark)
	}
	line := l.use()
	defer line.done()
	if !line.TryLock() {
		l.beginWait(mark)
		if line.Lock(ctx) != nil {
			return nil, line.waitError(l.primitives()[0], transport.ContextError(ctx))
		}
	}
	h, err := (*Hold)(nil), line.letOthersGo(ctx, l.pause)
	if err == nil && ctx.Err() != nil {
		err = transport.ContextError(ctx)
	}
	if err != nil {
		err = line.waitError(l.primitives()[0], err)
	} else {
		h, err = l.rounds(ctx, r, settings, line, mark)
	}
	if err != nil || l.isShared() {
		line.Unlock()
		return h, err
	}
	line.begins()
	h.inner().(*compositeHold).keepLine(line)
	return h, nil
}

// mayReenter reports whether an acquisition may re-enter a member, by a hold on its context or by an owner.
func (l *compositeLock) mayReenter(ctx context.Context) bool {
	if owner, err := ownerFrom(ctx); err != nil || !owner.IsZero() {
		return true
	}
	return slices.ContainsFunc(l.primitives(), func(p *primitive) bool {
		return holdFrom(ctx, p, p.spec.side) != nil || holdFrom(ctx, p, p.spec.otherSide()) != nil
	})
}

// keepLine makes others of this program that want the lock wait in line until the hold is over.
func (c *compositeHold) keepLine(line *redLine) {
	c.mu.Lock()
	active := c.active()
	if active {
		c.line = line
	}
	members := slices.Clone(c.members)
	c.mu.Unlock()
	if !active {
		line.ends(0)
		return
	}
	for _, h := range members {
		setRedLine(h, line)
	}
}

// setRedLine records in a member the line in which others wait for the whole.
func setRedLine(h *Hold, line *redLine) {
	if h == nil {
		return
	}
	if s, is := h.inner().(*holdState); is {
		s.ownership.makeRare().redLine.Store(line)
	}
}

// leaveLine lets the next in line try. The hold is over, or it is unknown whether it is.
func (c *compositeHold) leaveLine() {
	c.mu.Lock()
	line := c.line
	c.line = nil
	c.mu.Unlock()
	if line != nil {
		line.ends(time.Since(c.grantedAt))
	}
}

// countDown makes the hold leave the line as soon as enough members have been released for another call to
// get the lock. Calls in line then do not wait for silent servers.
func (c *compositeHold) countDown(release func(*Hold) error) func(*Hold) error {
	var released atomic.Int32
	return func(h *Hold) error {
		err := release(h)
		if err == nil && int(released.Add(1)) == c.need {
			c.leaveLine()
		}
		return err
	}
}
