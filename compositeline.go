package latchkey

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// The goroutines of one program that want the same composite lock wait in one line, as the
// goroutines of a client do for one lock: only the front sends requests to the servers. A release
// passes the hold to the first in line (compositepassing.go), or frees the members; then the
// first in line moves to the front.

// compositeLine is the line of a composite lock. It belongs to a client of one of the members,
// the same client for all locks of that kind with these members.
type compositeLine struct {
	lineRules

	queues *waitQueues
	key    string
}

// lineRules are the differences between kinds of composite locks in line.
type lineRules interface {
	// check runs before the call joins the line. It returns an error if waiting cannot help.
	check(ctx context.Context, settings []setting, q *waitQueue) error
	// retainQueues keeps what is known about other waiters for the members, until done is called.
	retainQueues() (done func())
	// letOthersGo is the first step of the front. left is how long this program has just had the
	// lock, or nil.
	letOthersGo(ctx context.Context, left any) error
	// newHold makes a hold that has no members yet.
	newHold(r *request) *compositeHold
	// begins starts a hold that was passed on.
	begins(ctx context.Context, c *compositeHold, r *request, settings []setting)
	// named adds the member that the error of a wait is about, if the error does not name it.
	named(err error) error
}

// compositeLines are the lines that belong to a client.
type compositeLines struct{ *waitQueues }

func newCompositeLines(*Client) kindState { return compositeLines{newWaitQueues(noHolds{})} }

func (compositeLines) close() {}

// initLine gives the lock a line for the goroutines of this program that want it.
func (l *compositeLock) initLine(rules lineRules) {
	first := slices.MinFunc(l.primitives(), func(a, b *primitive) int { return strings.Compare(a.client.id, b.client.id) }).client
	l.line = &compositeLine{rules, first.kindState(l.kind, newCompositeLines).(compositeLines).waitQueues, identityOf(l.kind, l.members)}
}

// identityOf returns a text that identifies the lock in this program. The order of the members
// does not matter.
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
func (l *compositeLine) use() *waitQueue { return l.queues.use(l.key) }

// compositeWaiter is an acquisition that waits in line for a composite lock.
type compositeWaiter struct {
	ownWait

	lock     *compositeLock
	request  *request
	settings []setting      // for each member
	passed   *compositeHold // the hold that was passed to it, or nil
}

var _ compositeRecipient = (*compositeWaiter)(nil)

// wants implements [recipient]. The hold that suits the waiter is made for this waiter alone.
func (w *compositeWaiter) wants(from any) bool { return from == w }

// mayBeLetIn implements [recipient]. A composite lock is never shared.
func (*compositeWaiter) mayBeLetIn() bool { return false }

// isStuckBehind implements [ownWaiter]. Of the members, which are held together, the first one counts.
func (w *compositeWaiter) isStuckBehind(o *ownership, now, limit time.Duration) bool {
	return sameLock(w.lock.members[0], &o.lock) && w.isStuck(o.number, now, limit)
}

// what implements [ownWaiter].
func (w *compositeWaiter) what() (Kind, string) { return w.lock.kind, w.lock.Name() }

// receive implements [recipient].
func (w *compositeWaiter) receive(hold any) { w.passed = hold.(*compositeHold) }

// takes implements [compositeRecipient]. It refuses if the hold must be confined when all members
// are there: such a hold has to be acquired.
func (w *compositeWaiter) takes(index int, o *ownership) bool {
	r, err := newRequest(o.lock.client.options.Lease, false, w.settings)
	return err == nil && !r.untilComplete && sameLock(w.lock.members[index], &o.lock) && o.suits(&r)
}

// newHold implements [compositeRecipient].
func (w *compositeWaiter) newHold() *compositeHold { return w.lock.line.newHold(w.request) }

// waitInLine acquires after the earlier calls of this program. A call that re-enters members does
// not wait behind calls that may be waiting for it.
func (l *compositeLock) waitInLine(ctx context.Context, r *request, settings []setting, mark *waitMark) (*Hold, error) {
	if l.line == nil || l.mayReenter(ctx) {
		return l.rounds(ctx, r, settings, nil, mark)
	}
	q, w, began := l.line.use(), &compositeWaiter{lock: l, request: r, settings: settings}, time.Now()
	_, w.quiet = ctx.Deadline()
	defer q.done()
	defer l.line.retainQueues()()
	if err := l.line.check(ctx, settings, q); err != nil {
		return nil, err
	}
	behind := q.join(w)
	if behind != nil {
		l.beginWait(mark)
	}
	switch at, err := q.await(ctx, nil, behind); at {
	case received:
		l.line.begins(ctx, w.passed, r, settings)
		attachMemberNotes(w.passed.latestMembers(), r.note)
		w.passed.observeAcquired(r.parent, time.Since(began))
		return newHold(w.passed), nil
	case leftLine:
		q.takeLeft(false)
		return nil, l.waitError(ctx, q, err)
	}
	defer q.leaveFront()
	if err := l.line.letOthersGo(ctx, q.takeLeft(true)); err != nil {
		return nil, l.waitError(ctx, q, err)
	}
	if ctx.Err() != nil { // as the context of the previous front did, very likely
		return nil, l.waitError(ctx, q, transport.ContextError(ctx))
	}
	return l.rounds(ctx, r, settings, q, mark)
}

// mayReenter reports whether an acquisition may re-enter a member, by a hold on its context or by
// an owner.
func (l *compositeLock) mayReenter(ctx context.Context) bool {
	if owner, err := ownerFrom(ctx); err != nil || !owner.IsZero() {
		return true
	}
	return slices.ContainsFunc(l.primitives(), func(p *primitive) bool {
		return holdFrom(ctx, p, p.spec.side) != nil || holdFrom(ctx, p, p.spec.otherSide()) != nil
	})
}

// waitError is the error of a wait in line that ended with err. While the front waits for a
// member, every call in line gets the error of a wait for that member.
func (l *compositeLock) waitError(ctx context.Context, q *waitQueue, err error) error {
	index, waits := q.awaitedMember()
	if !waits {
		p := l.primitives()[0]
		return l.line.named(p.client.withOwnHold(p.key, q.waitError(ctx, err, nil)))
	}
	p := l.members[index].(*primitive)
	of := p.client.waitQueues.use(p.key)
	defer of.done()
	err = p.client.withOwnHold(p.key, of.in(p.spec.line).waitError(ctx, err, ErrNotAcquired))
	return fail("lock", p.Name(), explain(err)...)
}

// roundInFront is a round whose error the others in line learn. If it ends before the members had
// their time, it returns what was known before.
func (l *compositeLock) roundInFront(ctx context.Context, r *request, settings []setting, q *waitQueue) (h *Hold, again bool, err error) {
	q.drain()
	q.attemptBegins()
	began := time.Now()
	h, again, err = l.round(ctx, r, settings, q)
	if ctx.Err() == nil {
		q.attemptAnswered(err)
	}
	if err == nil {
		return h, false, nil // even if the time has ended during the round
	}
	return nil, again, roundError(ctx, began, err, l.line.named(q.lastError()))
}
