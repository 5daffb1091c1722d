package latchkey

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// This file has the rules of a RedLock for the line of its program. Between programs nobody grants: all poll.
// If the lock is shared, a hold of this program does not keep the line waiting: each comes to the front when the
// one before it has acquired.

var _ lineRules = (*RedLock)(nil)

// check implements [lineRules]: the front starts new rounds again and again.
func (*RedLock) check(context.Context, []setting, *waitQueue) error { return nil }

// retainQueues implements [lineRules]: others get time in any case.
func (*RedLock) retainQueues() (done func()) { return func() {} }

// letOthersGo implements [lineRules]. If this program has just had the lock, the front pauses for as long as the
// program had it, so that others, which poll, get a chance. The pause is not longer than that after a lost round.
func (l *RedLock) letOthersGo(ctx context.Context, left any) error {
	had, is := left.(time.Duration)
	if !is {
		return nil
	}
	return transport.Rest(ctx, nil, min(had, transport.Jitter(l.pause)))
}

// newHold implements [lineRules].
func (l *RedLock) newHold(r *request) *compositeHold {
	return newCompositeHold(&l.compositeLock, l.memberTimeout(r))
}

// begins implements [lineRules]: it looks for missing members.
func (l *RedLock) begins(ctx context.Context, c *compositeHold, r *request, settings []setting) {
	l.retryMissing(ctx, c, r, settings)
}

// named implements [lineRules]: the error says for each member how it failed.
func (*RedLock) named(err error) error { return err }
