package group

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
	Lock

	options RedOptions
}

// RedOptions are the settings of a redLock, with defaults. RedLockOptions of the root explains the
// fields.
type RedOptions struct{ MemberTimeout, RetryDelay time.Duration }

func (o RedOptions) check() error {
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

// NewRed returns the lock of most of the given members.
func NewRed(options RedOptions, members []Member) *Lock {
	given := members
	members, err := usable(given)
	if err == nil {
		_, err = withoutDuplicates(members, true)
	}
	if err == nil {
		err = options.check()
	}
	lock := Lock{
		kind: keyspace.KindRed, Members: members, given: given, need: len(members)/2 + 1,
		invalid: err, Pause: options.RetryDelay,
	}
	l := &redLock{lock, options}
	l.Round, l.inLine = l.acquireMajority, l.waitInLine
	return &l.Lock
}

// acquireMajority is a round: it tries all members at once.
func (l *redLock) acquireMajority(
	ctx context.Context, r *request.Request, settings []request.Setting,
) (h *hold.Handle, again bool, err error) {
	if err := l.refuseOneServer(); err != nil {
		return nil, false, err
	}
	c := newCompositeHold(&l.Lock, l.memberTimeout(r))
	c.allAnswered = make(chan struct{})
	t := l.try(ctx, l.memberTimeout(r), settings)
	t.gather(ctx, c)
	if late, reached := c.beginMajority(r); !reached {
		again, err := t.NoMajority(c.memberCount(), l.need, late)
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

// refuseOneServer refuses two members that are known to be on one server, which would count one
// vote twice. A server that has not told its id counts as distinct.
func (l *redLock) refuseOneServer() error {
	on := map[string]Member{}
	for _, m := range l.Members {
		if isComposite(m) {
			continue
		}
		id := m.Locks()[0].Client.ServerID()
		if other, twice := on[id]; twice && id != "" {
			return fault.Invalid("%q and %q are on one server", other.Name(), m.Name())
		}
		on[id] = m
	}
	return nil
}

// beginMajority makes a hold of a majority, if there is one. A majority that came too late does not
// count.
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

// Tries are attempts at several members in flight.
type Tries struct {
	memberCalls

	Failures []Failure
	Members  []Member
	Timeout  time.Duration
	cancel   context.CancelFunc
}

// try begins to try some members, or all. The attempts do not end with the caller's context: a
// member that is no longer needed is released when it arrives.
func (l *redLock) try(ctx context.Context, timeout time.Duration, settings []request.Setting, indexes ...int) *Tries {
	if indexes == nil {
		indexes = async.Indexes(l.Members)
	}
	ctx, cancel := fault.WithWait(context.WithoutCancel(ctx), timeout)
	calls := callMembers(indexes, func(i int) (*hold.Handle, error) {
		return l.Members[i].Acquire(ctx, "try lock", false, settings)
	})
	return &Tries{memberCalls: calls, Members: l.Members, Timeout: timeout, cancel: cancel}
}

// gather adds members to the hold until it is complete, or the outcome is certain, or ctx ends.
func (t *Tries) gather(ctx context.Context, c *compositeHold) {
	for c.memberCount() < c.need && t.open(c.need) {
		r, heard := t.next(ctx, nil)
		switch {
		case !heard:
			return
		case r.err == nil:
			c.add(r.index, r.hold)
		default:
			t.Failures = append(t.Failures, failureOf(r))
		}
	}
}

// collect waits for the remaining members: those that arrive late join the hold, or are released if
// it is over.
func (t *Tries) collect(c *compositeHold) {
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

// retryMissing keeps trying missing members while the hold lasts: the more it has, the more it can
// lose.
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
