package latchkey

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// renewUntilComplete makes the client renew members until the last one is acquired.
func (*MultiLock) renewUntilComplete(_ context.Context, r *request, settings []setting) ([]setting, error) {
	if r.confines() {
		settings = append(settings, setting{kind: settingUntilComplete})
	}
	return settings, nil
}

// acquireAll is a round: it acquires all members, and makes one hold of them.
func (l *MultiLock) acquireAll(ctx context.Context, r *request, settings []setting) (h *Hold, again bool, err error) {
	holds, acquire := make([]*Hold, len(l.members)), l.acquireInOrder
	if !r.waits {
		acquire = l.tryInOrder
	}
	if err := acquire(ctx, settings, holds); err != nil {
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
func newDeadlockError(m member, err error) error {
	rest := memberReason(err)
	if errors.Is(err, ErrUnavailable) {
		rest = transport.Unavailable(rest)
	}
	if errors.Is(err, ErrUnknownOutcome) {
		rest = errors.Join(ErrUnknownOutcome, rest)
	}
	return &deadlockError{fmt.Errorf("%q: %w", m.Name(), rest)}
}

// acquireInOrder fills holds. It tries all members at the same time. At the first in order that is
// busy, it releases the ones after it, waits for that one, and goes on. A member that others of this
// program want is waited for at once, in its line. If it fails, the members that it acquired stay in
// holds.
func (l *MultiLock) acquireInOrder(ctx context.Context, settings []setting, holds []*Hold) error {
	var busy error // the error of the previous try
	for from := 0; from < len(holds); {
		began, first := time.Now(), from
		var err error
		if !isWanted(l.members[from]) {
			if first, err = l.tryFrom(ctx, settings, holds, from); err == nil {
				return nil
			}
			if ctx.Err() != nil || isFinalForMember(err) {
				return roundError(ctx, began, err, busy)
			}
			busy, began = err, time.Now()
		}
		if holds[first], err = l.await(ctx, l.members[first], settings); err != nil {
			return roundError(ctx, began, err, busy)
		}
		from = first + 1
	}
	return nil
}

// isWanted reports whether goroutines of this program have or want a member.
func isWanted(m member) bool {
	p, is := m.(*primitive)
	return is && p.client.waitQueues.known(p.lineKey()) != nil
}

// tryInOrder tries one member after the other, and fills holds until one is busy. If several groups are tried at once,
// those that fail do so because of a group that has come further in the order, and one of them is acquired. If all
// members were tried at the same time, each group might acquire some. A group whose first member is busy touches no
// other.
func (l *MultiLock) tryInOrder(ctx context.Context, settings []setting, holds []*Hold) (err error) {
	began := time.Now()
	for i, m := range l.members {
		if holds[i], err = m.acquire(ctx, "try lock", false, settings); err != nil {
			return roundError(ctx, began, err, nil)
		}
	}
	return nil
}

// tryFrom tries all members from the given index on, and releases those that it acquired after the
// first that was busy.
func (l *MultiLock) tryFrom(ctx context.Context, settings []setting, holds []*Hold, from int) (first int, err error) {
	errs := parallelErrors(indexesOf(holds)[from:], func(i int) (err error) {
		holds[i], err = l.members[i].acquire(ctx, "try lock", false, settings)
		return err
	})
	first = slices.IndexFunc(errs, func(err error) bool { return err != nil })
	if first < 0 {
		return 0, nil
	}
	err = errs[first]
	if i := slices.IndexFunc(errs, isFinalForMember); i >= 0 {
		err = errs[i] // there is nothing to wait for
	}
	first += from
	giveBack(ctx, holds[first:], maxMemberTimeout)
	clear(holds[first:])
	return first, err
}

// await waits for one member.
func (l *MultiLock) await(ctx context.Context, member member, settings []setting) (*Hold, error) {
	if !l.unordered() {
		return member.acquire(ctx, "lock", true, settings)
	}
	h, err := member.acquire(ctx, "lock", true, append(slices.Clone(settings), setting{kind: settingWait, d: deadlockPatience/2 + rand.N(deadlockPatience)}))
	if err != nil && ctx.Err() == nil && transport.IsWaitOver(err) { // if the caller's wait is over, rounds reports it
		return nil, newDeadlockError(member, err)
	}
	return h, err
}

// unordered reports whether two members have no order between them.
func (l *MultiLock) unordered() bool {
	for i := 1; i < len(l.members); i++ {
		a, _ := l.members[i-1].order()
		b, _ := l.members[i].order()
		if a == b {
			return true
		}
	}
	return false
}

// combine makes one hold of all members. Fixed leases start again, so that the whole has the lease
// that was asked for, however long the last member took.
func (l *MultiLock) combine(ctx context.Context, r *request, holds []*Hold) (*Hold, error) {
	c := newCompositeHold(&l.compositeLock, maxMemberTimeout)
	for i, h := range holds {
		c.add(i, h)
	}
	err := c.begin() // the first may have been lost when the last one came
	if r.confines() {
		c.confine(confinement{fixed: !r.renew})
	}
	if err == nil && !r.renew && (r.maxHold == 0 || r.confines()) {
		err = c.extend(ctx, r.lease)
	}
	if err != nil {
		if lost := c.err(); lost != nil {
			err = notEntered(lost)
		}
		c.abandon(ctx)
		return nil, err
	}
	if r.confines() {
		c.confine(confinement{!r.renew, r.maxHold, time.Now()})
	}
	return newHold(c), nil
}
