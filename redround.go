package latchkey

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
)

// acquireMajority is a round: it tries all members at once.
func (l *RedLock) acquireMajority(ctx context.Context, r *request.Request, settings []request.Setting) (h *hold.Handle, again bool, err error) {
	if err := l.refuseOneServer(); err != nil {
		return nil, false, err
	}
	c := newCompositeHold(&l.compositeLock, l.memberTimeout(r))
	c.allAnswered = make(chan struct{})
	t := l.try(ctx, l.memberTimeout(r), settings)
	t.gather(ctx, c)
	if late, reached := c.beginMajority(r); !reached {
		again, err := t.noMajority(c.memberCount(), l.need, late)
		t.cancel()
		go t.collect(c)
		c.abandon(ctx)
		return nil, again, err
	}
	go func() {
		t.collect(c)
		close(c.allAnswered)
	}()
	if r.Renew && r.MaxHold == 0 { // otherwise a member that arrived later would last longer
		l.retryMissing(context.WithoutCancel(ctx), c, r, settings)
	}
	return hold.New(c), false, nil
}

// beginMajority makes a hold of a majority, if there is one. A majority that came too late does not count.
func (c *compositeHold) beginMajority(r *request.Request) (late, reached bool) {
	if c.memberCount() < c.need || c.begin() != nil {
		return false, false
	}
	late = c.ValidFor() < leastValidity(r)
	return late, !late
}

// leastValidity is how much of a fixed lease must remain for the hold to be of use.
func leastValidity(r *request.Request) time.Duration {
	if r.Renew {
		return lease.Shortest
	}
	return r.Lease / 10
}

func (l *RedLock) memberTimeout(r *request.Request) time.Duration {
	if l.options.MemberTimeout > 0 {
		return l.options.MemberTimeout
	}
	return min(max(r.Lease/100, minMemberTimeout), maxMemberTimeout)
}

// tries are attempts at several members in flight.
type tries struct {
	memberCalls

	failures []failure
	members  []member
	timeout  time.Duration
	cancel   context.CancelFunc
}

// try begins to try some members, or all. The attempts do not end with the caller's context: a member that is
// no longer needed is released when it arrives.
func (l *RedLock) try(ctx context.Context, timeout time.Duration, settings []request.Setting, indexes ...int) *tries {
	if indexes == nil {
		indexes = async.Indexes(l.members)
	}
	ctx, cancel := fault.WithWait(context.WithoutCancel(ctx), timeout)
	calls := callMembers(indexes, func(i int) (*hold.Handle, error) {
		return l.members[i].acquire(ctx, "try lock", false, settings)
	})
	return &tries{memberCalls: calls, members: l.members, timeout: timeout, cancel: cancel}
}

// gather adds members to the hold until it is complete, or the outcome is certain, or ctx ends.
func (t *tries) gather(ctx context.Context, c *compositeHold) {
	for c.memberCount() < c.need && t.open(c.need) {
		r, heard := t.next(ctx, nil)
		switch {
		case !heard:
			return
		case r.err == nil:
			c.add(r.index, r.hold)
		default:
			t.failures = append(t.failures, failureOf(r))
		}
	}
}

// collect waits for the remaining members: those that arrive late join the hold, or are released if it is over.
func (t *tries) collect(c *compositeHold) {
	defer t.cancel()
	for {
		r, heard := t.next(context.Background(), nil)
		if !heard {
			return
		}
		if r.err == nil && !c.add(r.index, r.hold) {
			giveBack(context.Background(), []*hold.Handle{r.hold}, 0) // the server may be silent by now, and others wait behind it
		}
	}
}

// retryMissing keeps trying missing members while the hold lasts: the more it has, the more it can lose.
func (l *RedLock) retryMissing(ctx context.Context, c *compositeHold, r *request.Request, settings []request.Setting) {
	period := max(c.ValidFor()/3, minMemberTimeout)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.Active() || c.confined != nil {
		return
	}
	c.retryTimer = time.AfterFunc(period, func() {
		select {
		case <-c.allAnswered:
			if indexes := c.missing(); len(indexes) > 0 {
				l.try(ctx, l.memberTimeout(r), settings, indexes...).collect(c)
			}
		default: // do not try members again that are late
		}
		l.retryMissing(ctx, c, r, settings)
	})
}
