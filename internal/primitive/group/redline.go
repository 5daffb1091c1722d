package group

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
)

// The goroutines of a program that want the same RedLock wait in one line: each round of another
// goroutine would take members away from the one in front, or from a hold of the program. Between
// programs there is no queue, and all poll.

// newRedLines makes the lines that belong to a client.
func newRedLines() (lines *line.FIFOs, atClose func()) { return line.NewFIFOs(), nil }

// useLine returns the line of the lock, and counts the caller as a user. The line belongs to a
// client of one of the members, the same for all locks with these members.
func (l *redLock) useLine() *line.FIFO {
	byClient := func(a, b *ownership.Lock) int { return strings.Compare(a.Client.ID, b.Client.ID) }
	first := slices.MinFunc(l.Locks(), byClient).Client
	return core.KindState(first, keyspace.KindRed, newRedLines).Use(identityOf(l.kind, l.Members))
}

// identityOf returns a text that identifies the lock in this program. The order of the members does
// not matter.
func identityOf(kind keyspace.Kind, members []Member) string {
	each := make([]string, len(members))
	for i, m := range members {
		if c, is := m.(*Lock); is {
			each[i] = identityOf(c.kind, c.Members)
			continue
		}
		p := m.Locks()[0]
		each[i] = fmt.Sprintf("%s %s %q", p.Spec.Kind, p.Client.ID, p.Names.Key)
	}
	slices.Sort(each)
	return fmt.Sprintf("%s(%s)", kind, strings.Join(each, ", "))
}

// waitInLine acquires after the earlier calls of this program. A call that re-enters members does
// not wait behind calls that may be waiting for it.
func (l *redLock) waitInLine(
	ctx context.Context, r *request.Request, settings []request.Setting, mark *line.Mark,
) (*hold.Handle, error) {
	if l.mayReenter(ctx) {
		return l.rounds(ctx, r, settings, nil, mark)
	}
	line := l.useLine()
	defer line.Done()
	if err := line.Enter(ctx, func() { l.beginWait(mark) }); err != nil {
		return nil, l.waitError(line, err)
	}
	h, err := l.waitInFront(ctx, r, settings, line, mark)
	if err != nil || l.IsShared() {
		line.Unlock()
		return h, err
	}
	line.HoldBegins()
	h.Backend().(*compositeHold).keepLine(line)
	return h, nil
}

func (l *redLock) waitInFront(
	ctx context.Context, r *request.Request, settings []request.Setting, line *line.FIFO, mark *line.Mark,
) (*hold.Handle, error) {
	err := line.LetOthersGo(ctx, l.Pause)
	if err == nil && ctx.Err() != nil {
		err = fault.ContextError(ctx)
	}
	if err != nil {
		return nil, l.waitError(line, err)
	}
	return l.rounds(ctx, r, settings, line, mark)
}

// waitError is the error of a wait in line that ended with err.
func (l *redLock) waitError(line *line.FIFO, err error) error {
	p := l.Locks()[0]
	return acquire.WithOwnHold(p.Client, p.Names.Key, line.WaitError(err))
}

// mayReenter reports whether an acquisition may re-enter a member, by a hold on its context or by
// an owner.
func (l *redLock) mayReenter(ctx context.Context) bool {
	if owner, err := identity.OwnerFrom(ctx); err != nil || !owner.IsZero() {
		return true
	}
	return slices.ContainsFunc(l.Locks(), func(p *ownership.Lock) bool {
		return acquire.HoldFrom(ctx, p, p.Spec.Side) != nil || acquire.HoldFrom(ctx, p, p.Spec.OtherSide()) != nil
	})
}

// keepLine makes others of this program that want the lock wait in line until the hold is over.
func (c *compositeHold) keepLine(line *line.FIFO) {
	c.mu.Lock()
	active := c.Active()
	if active {
		c.line = line
	}
	members := slices.Clone(c.members)
	c.mu.Unlock()
	if !active {
		line.HoldEnds(0)
		return
	}
	for _, h := range members {
		setRedLine(h, line)
	}
}

// setRedLine records in a member the line in which others wait for the whole.
func setRedLine(h *hold.Handle, line *line.FIFO) {
	if h == nil {
		return
	}
	if s, is := h.Backend().(*ownership.Hold); is {
		s.Ownership.RedLine.Store(line)
	}
}

// leaveLine lets the next in line try. The hold is over, or it is unknown whether it is.
func (c *compositeHold) leaveLine() {
	c.mu.Lock()
	line := c.line
	c.line = nil
	c.mu.Unlock()
	if line != nil {
		line.HoldEnds(time.Since(c.grantedAt))
	}
}

// countDown makes the hold leave the line as soon as enough members have been released for another
// call to get the lock. Calls in line then do not wait for silent servers.
func (c *compositeHold) countDown(release func(*hold.Handle) error) func(*hold.Handle) error {
	var released atomic.Int32
	return func(h *hold.Handle) error {
		err := release(h)
		if err == nil && int(released.Add(1)) == c.need {
			c.leaveLine()
		}
		return err
	}
}
