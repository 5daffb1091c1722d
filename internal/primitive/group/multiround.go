package group

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// multiLock is a lock that is held if all members are.
type multiLock struct{ Lock }

// NewMulti returns the lock of all the given members.
func NewMulti(members []Member) *Lock {
	given := members
	members, err := usable(given)
	if err == nil {
		members, err = withoutDuplicates(inOrder(flatten(members)), false)
	}
	l := &multiLock{Lock{
		kind: keyspace.KindMulti, Members: members, given: given, need: len(members),
		invalid: err, Pause: deadlockPause,
	}}
	l.Round = l.acquireAll
	return &l.Lock
}

// acquireAll is a round: it acquires all members, and makes one hold of them.
func (l *multiLock) acquireAll(
	ctx context.Context, r *request.Request, settings []request.Setting,
) (h *hold.Handle, again bool, err error) {
	holds := make([]*hold.Handle, len(l.Members))
	if err := l.acquireInOrder(ctx, r, settings, holds); err != nil {
		giveBack(ctx, holds, maxMemberTimeout)
		var deadlock *deadlockError
		return nil, errors.As(err, &deadlock), err
	}
	h, err = l.combine(ctx, r, holds)
	return h, !isFinalForMember(err), err
}

const (
	deadlockPatience = time.Second
	deadlockPause    = 100 * time.Millisecond
)

// deadlockError means that the wait for a member was given up because it might be part of a
// deadlock. It wraps the last error of the member.
type deadlockError struct{ error }

func (e *deadlockError) Unwrap() error { return e.error }

// newDeadlockError leaves out that the time for that member is over: it was not the caller's time.
func newDeadlockError(m Member, err error) error {
	rest := memberReason(err)
	if errors.Is(err, fault.ErrUnavailable) {
		rest = outcome.Unavailable(rest)
	}
	if errors.Is(err, fault.ErrUnknownOutcome) {
		rest = errors.Join(fault.ErrUnknownOutcome, rest)
	}
	return &deadlockError{fmt.Errorf("%q: %w", m.Name(), rest)}
}

// errNoTimeLeft means that a call's time was over when the members before this one were acquired.
var errNoTimeLeft = fmt.Errorf("%w: no time was left for it", fault.ErrNotAcquired)

// acquireInOrder acquires one member after the other, and fills holds until one fails. A group that
// is waiting or has failed touches no member behind that one. So, of several groups that are tried
// at once, those that fail do so because of a group that has come further in the order, and one of
// them is acquired.
func (l *multiLock) acquireInOrder(
	ctx context.Context, r *request.Request, settings []request.Setting, holds []*hold.Handle,
) (err error) {
	for i, m := range l.Members {
		began := time.Now()
		if r.Waits {
			holds[i], err = l.await(ctx, m, settings)
		} else {
			holds[i], err = m.Acquire(ctx, "try lock", false, settings)
		}
		if err != nil {
			var before error
			if i > 0 {
				before = fault.Op("lock", m.Name(), errNoTimeLeft)
			}
			return roundError(ctx, began, err, before)
		}
	}
	return nil
}

// await waits for one member.
func (l *multiLock) await(ctx context.Context, member Member, settings []request.Setting) (*hold.Handle, error) {
	if !l.unordered() {
		return member.Acquire(ctx, "lock", true, settings)
	}
	wait := request.Setting{Kind: request.Wait, D: deadlockPatience/2 + rand.N(deadlockPatience)}
	h, err := member.Acquire(ctx, "lock", true, append(slices.Clone(settings), wait))
	if err != nil && ctx.Err() == nil && fault.IsWaitOver(err) { // if the caller's wait is over, rounds reports it
		return nil, newDeadlockError(member, err)
	}
	return h, err
}

// unordered reports whether two members have no order between them.
func (l *multiLock) unordered() bool {
	for i := 1; i < len(l.Members); i++ {
		a, _ := l.Members[i-1].Order()
		b, _ := l.Members[i].Order()
		if a == b {
			return true
		}
	}
	return false
}

// combine makes one hold of all members. Fixed leases start again, so that the whole has the lease
// that was asked for, however long the last member took.
func (l *multiLock) combine(ctx context.Context, r *request.Request, holds []*hold.Handle) (*hold.Handle, error) {
	c := newCompositeHold(&l.Lock, maxMemberTimeout)
	for i, h := range holds {
		c.add(i, h)
	}
	err := c.begin() // the first may have been lost when the last one came
	if r.Confines() {
		c.Confine(hold.Confinement{Fixed: !r.Renew})
	}
	if err == nil && !r.Renew && (r.MaxHold == 0 || r.Confines()) {
		err = c.Extend(ctx, r.Lease)
	}
	if err != nil {
		if lost := c.Err(); lost != nil {
			err = acquire.NotEntered(lost)
		}
		c.abandon(ctx)
		return nil, err
	}
	if r.Confines() {
		c.Confine(hold.Confinement{Fixed: !r.Renew, Max: r.MaxHold, From: time.Now()})
	}
	return hold.New(c), nil
}
