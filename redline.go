package latchkey

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// The goroutines of one program that want the same RedLock stand in one line, as those of a client
// do that want one lock: only the front asks the servers. A release passes the hold to the first in
// line (compositepassing.go), or frees the members; then the first in line comes to the front.

// redLine is where a RedLock has its line: with a client of its members, the same one for all
// RedLocks of these members.
type redLine struct {
	queues *waitQueues
	key    string
}

// redLines are the lines that are kept with a client.
type redLines struct{ *waitQueues }

func newRedLines(*Client) kindState { return redLines{newWaitQueues()} }

func (redLines) close() {}

// lineOf returns the line of members, or nil if several holds of them may stand at the same time.
func lineOf(members []member) *redLine {
	var all []*primitive
	for _, m := range members {
		all = append(all, m.primitives()...)
	}
	if len(all) == 0 || slices.ContainsFunc(all, func(p *primitive) bool { return p.spec.shared }) {
		return nil
	}
	first := slices.MinFunc(all, func(a, b *primitive) int { return strings.Compare(a.client.id, b.client.id) }).client
	return &redLine{first.kindState(KindRed, newRedLines).(redLines).waitQueues, identityOf(KindRed, members)}
}

// identityOf tells the locks of a program apart. It is the same for members in another order.
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

// use returns the line, and counts the caller as a user of it.
func (l *redLine) use() *waitQueue { return l.queues.use(l.key) }

// redWaiter is an acquisition of a RedLock that stands in line.
type redWaiter struct {
	lock     *RedLock
	request  *request
	settings []setting      // for each member
	passed   *compositeHold // to it, or nil
}

var _ groupRecipient = (*redWaiter)(nil)

// wants is part of [recipient]: what has been found to be what it wants is made for it alone.
func (w *redWaiter) wants(from any) bool { return from == w }

// mayBeLetIn is part of [recipient]: nobody has a RedLock along with others.
func (*redWaiter) mayBeLetIn() bool { return false }

// receive is part of [recipient].
func (w *redWaiter) receive(hold any) { w.passed = hold.(*compositeHold) }

// takes is part of [groupRecipient].
func (w *redWaiter) takes(place int, o *ownership) bool {
	r, err := newRequest(o.client.options.Lease, false, w.settings)
	return err == nil && sameLock(w.lock.members[place], o.lock) && o.suits(&r)
}

// successor is part of [groupRecipient].
func (w *redWaiter) successor() *compositeHold { return w.lock.newHold(w.request) }

// waitInLine acquires when those of this program who came before have. Who enters members again
// does not wait for those whose wait he may end.
func (l *RedLock) waitInLine(ctx context.Context, r *request, settings []setting) (*Hold, error) {
	if l.line == nil || l.mayReenter(ctx) {
		return l.rounds(ctx, r, settings, l.round, nil)
	}
	q, w, began := l.line.use(), &redWaiter{lock: l, request: r, settings: settings}, time.Now()
	defer q.done()
	switch at, err := q.await(ctx, nil, q.join(w)); at {
	case hasHold:
		l.mend(ctx, w.passed, r, settings)
		w.passed.observeAcquired(time.Since(began))
		return newHold(w.passed), nil
	case outside:
		q.takeLeft(false)
		return nil, q.waitError(ctx, err, nil)
	}
	defer q.leaveFront(nil)
	if err := l.letOthersGo(ctx, q); err != nil {
		return nil, q.waitError(ctx, err, nil)
	}
	if ctx.Err() != nil { // as that of the one before, very likely
		return nil, q.waitError(ctx, transport.ContextError(ctx), nil)
	}
	return l.rounds(ctx, r, settings, l.roundInFront(q), q.signals)
}

// mayReenter reports whether an acquisition may enter a member again, by a hold on its context or
// by an owner.
func (l *RedLock) mayReenter(ctx context.Context) bool {
	if owner, err := ownerFrom(ctx); err != nil || !owner.IsZero() {
		return true
	}
	return slices.ContainsFunc(l.primitives(), func(p *primitive) bool {
		return holdFrom(ctx, p, p.spec.side) != nil || holdFrom(ctx, p, p.spec.otherSide()) != nil
	})
}

// letOthersGo is what the front does first if this program has just had the lock: others, who ask
// the servers now and then, have as much time as that was, and no more than the pause after a
// round that they have lost.
func (l *RedLock) letOthersGo(ctx context.Context, q *waitQueue) error {
	had, is := q.takeLeft(true).(time.Duration)
	if !is {
		return nil
	}
	return transport.Rest(ctx, nil, min(had, transport.Jitter(l.pause)))
}

// roundInFront is a round of which the others in line are told what it has met. One that has ended
// before the members had their time says what was known before.
func (l *RedLock) roundInFront(q *waitQueue) round {
	return func(ctx context.Context, r *request, settings []setting) (h *Hold, again bool, err error) {
		q.drain()
		q.asks()
		began := time.Now()
		h, again, err = l.round(ctx, r, settings)
		if ctx.Err() == nil {
			q.told(err)
		}
		return h, again, roundError(ctx, began, err, q.lastTold())
	}
}
