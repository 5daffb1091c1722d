package latchkey

import (
	"context"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// What a RedLock does in the line of its program: between programs nobody grants, all poll.

var _ lineRules = (*RedLock)(nil)

// hasOrder reports whether only one can have the lock at a time, so that its waiters stand in line.
func (l *RedLock) hasOrder() bool {
	return !slices.ContainsFunc(l.primitives(), func(p *primitive) bool { return p.spec.shared })
}

// check implements [lineRules]: the front goes round again and again.
func (*RedLock) check(context.Context, []setting, *waitQueue) error { return nil }

// keep implements [lineRules]: others are left time in any case.
func (*RedLock) keep() (done func()) { return func() {} }

// letOthersGo implements [lineRules]. If this program has just had the lock, others, who ask the
// servers now and then, have as much time as that was, and no more than the pause after a round that
// they have lost.
func (l *RedLock) letOthersGo(ctx context.Context, left any) error {
	had, is := left.(time.Duration)
	if !is {
		return nil
	}
	return transport.Rest(ctx, nil, min(had, transport.Jitter(l.pause)))
}

// newHold implements [lineRules].
func (l *RedLock) newHold(r *request) *compositeHold {
	return newCompositeHold(l.Name(), len(l.members), l.need, l.memberTimeout(r))
}

// begins implements [lineRules]: members that are missing are looked for.
func (l *RedLock) begins(ctx context.Context, c *compositeHold, r *request, settings []setting) {
	l.mend(ctx, c, r, settings)
}

// named implements [lineRules]: an error says of each member how it has failed.
func (*RedLock) named(err error) error { return err }
