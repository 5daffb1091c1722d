package latchkey

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
)

// redLock is a lock that is held if most of its members are.
type redLock struct {
	compositeLock

	options redOptions
}

// redOptions are the settings of a redLock, with defaults. RedLockOptions of the root explains the fields.
type redOptions struct{ MemberTimeout, RetryDelay time.Duration }

func (o redOptions) check() error {
	switch {
	case o.MemberTimeout < 0:
		return fault.Invalid("RedLockOptions.MemberTimeout %v is negative", o.MemberTimeout)
	case o.RetryDelay < 0:
		return fault.Invalid("RedLockOptions.RetryDelay %v is negative", o.RetryDelay)
	}
	return nil
}

// Bounds of the time for one member, if none was set.
const (
	minMemberTimeout = 50 * time.Millisecond
	maxMemberTimeout = 500 * time.Millisecond
)

// newRedLock returns the lock of most of the given members.
func newRedLock(options redOptions, members []member) *compositeLock {
	members, err := usable(members)
	if err == nil {
		_, err = withoutDuplicates(members, true)
	}
	if err == nil {
		err = options.check()
	}
	lock := compositeLock{
		kind: keyspace.KindRed, members: members, need: len(members)/2 + 1, invalid: err, pause: options.RetryDelay,
	}
	l := &redLock{lock, options}
	l.round, l.inLine = l.acquireMajority, l.waitInLine
	return &l.compositeLock
}

// acquireMajority is a round: it tries all members at once.
func (l *redLock) acquireMajority(
	ctx context.Context, r *request.Request, settings []request.Setting,
) (h *hold.Handle, again bool, err error) {
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

// refuseOneServer refuses two members that are known to be on one server, which would count one vote twice. A
// server that has not told its id counts as distinct.
func (l *redLock) refuseOneServer() error {
	on := map[string]member{}
	for _, m := range l.members {
		if isComposite(m) {
			continue
		}
		id := m.locks()[0].Client.ServerID()
		if other, twice := on[id]; twice && id != "" {
			return fault.Invalid("%q and %q are on one server", other.Name(), m.Name())
		}
		on[id] = m
	}
	return nil
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

func (l *redLock) memberTimeout(r *request.Request) time.Duration {
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
func (l *redLock) try(ctx context.Context, timeout time.Duration, settings []request.Setting, indexes ...int) *tries {
	if indexes == nil {
		indexes = async.Indexes(l.members)
	}
	ctx, cancel := fault.WithWait(context.WithoutCancel(ctx), timeout)
	calls := callMembers(indexes, func(i int) (*hold.Handle, error) {
		return l.members[i].Acquire(ctx, "try lock", false, settings)
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
			// The server may be silent by now, and others wait behind it.
			giveBack(context.Background(), []*hold.Handle{r.hold}, 0)
		}
	}
}

// retryMissing keeps trying missing members while the hold lasts: the more it has, the more it can lose.
func (l *redLock) retryMissing(ctx context.Context, c *compositeHold, r *request.Request, settings []request.Setting) {
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
