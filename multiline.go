package latchkey

import (
	"context"
	"errors"
	"slices"
	"time"
)

// How a MultiLock behaves in the line of its program. The front waits in the lines of the members,
// one after the other, where the queues on the servers give every client its turn.

var _ lineRules = (*MultiLock)(nil)

// checkEvery is the maximum age of an answer from all members that a call joining the line may rely
// on.
const checkEvery = time.Second

// isPassedOn reports whether each member may be passed on inside its client. Then waiters for the
// lock need no places in the lines of the members.
func (l *MultiLock) isPassedOn() bool {
	return !slices.ContainsFunc(l.members, func(m member) bool {
		p, is := m.(*primitive)
		return !is || !p.spec.passesInside() || p.client.options.Turn <= 0
	})
}

// check implements [lineRules]. While the front waits for a member, a later member may have become
// something that can never be acquired.
func (l *MultiLock) check(ctx context.Context, settings []setting, q *waitQueue) error {
	if !q.claimCheck(checkEvery) {
		return nil
	}
	holds := make([]*Hold, len(l.members))
	_, err := l.tryFrom(ctx, settings, holds, 0)
	giveBack(ctx, holds, maxMemberTimeout)
	if err == nil || !isFinalForMember(err) {
		return nil
	}
	return err
}

// retainQueues implements [lineRules]. Between two turns nobody else uses the wait queues of the
// members.
func (l *MultiLock) retainQueues() (done func()) {
	queues := make([]*waitQueue, len(l.members))
	for i, p := range l.primitives() {
		queues[i] = p.client.waitQueues.use(p.key)
	}
	return func() {
		for _, q := range queues {
			q.done()
		}
	}
}

// letOthersGo implements [lineRules]. It yields each member to other clients for a short time, as a
// wait for that member alone does.
func (l *MultiLock) letOthersGo(ctx context.Context, _ any) error {
	for _, p := range l.primitives() {
		q := p.client.waitQueues.known(p.key)
		if err := p.client.yield(ctx, q.in(p.spec.line), p.newAcquisition("lock", true, nil), nil); err != nil {
			return err
		}
	}
	return nil
}

// newHold implements [lineRules].
func (l *MultiLock) newHold(*request) *compositeHold {
	return newCompositeHold(&l.compositeLock, maxMemberTimeout)
}

// begins implements [lineRules]. All members are held.
func (*MultiLock) begins(context.Context, *compositeHold, *request, []setting) {}

// named implements [lineRules]. It names the first member, with which a wait begins.
func (l *MultiLock) named(err error) error {
	var op *opError
	if err == nil || errors.As(err, &op) {
		return err
	}
	return fail("lock", l.members[0].Name(), explain(err)...)
}

// busyWith records, for the waiters in line, which member the front waits for, and why.
func (l *MultiLock) busyWith(q *waitQueue, index int, err error) {
	if q != nil {
		q.attemptAnswered(err)
		q.awaitsMember(index)
	}
}
