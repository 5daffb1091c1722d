package latchkey

import (
	"context"
	"errors"
	"strconv"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// An owner can have two ownerships on one read/write lock, one on each side, under the
// same name on the wire: whoever writes may read. The ownership that reads is then nested
// in the one that writes, has a number of its own by which the server tells it from
// earlier ones, and may outlive it.

// waitToRead waits together with other readers. An owner that writes need not wait to read.
func waitToRead(ctx context.Context, a *acquisition) error {
	if a.ownership != nil && a.ownership.isNested() {
		_, err := a.attempt(ctx, 0)
		return err
	}
	a.inLine = true
	return a.lock.client.wait(ctx, a.lock.key, a.lock.spec.line, a, nil)
}

// resolveSide is [resolveOwner] for the sides of a read/write lock.
func resolveSide(ctx context.Context, a *acquisition) (*ownership, error) {
	p, owner := a.lock, a.by
	if owner.IsZero() {
		if h := holdFrom(ctx, p, p.spec.side); h != nil {
			return h.ownership, nil
		}
		if h := holdFrom(ctx, p, p.spec.otherSide()); h != nil {
			return h.ownership.otherSide(p)
		}
		var err error
		if owner, err = ownerFrom(ctx); err != nil {
			return nil, err
		}
	}
	if owner.IsZero() {
		return nil, nil //nolint:nilnil // no owner is not an error
	}
	if owner.client != p.client.id {
		return nil, invalid("the owner %v is of another client, which a read/write lock has no room for", owner)
	}
	return p.client.registry.findSide(p, owner)
}

func (s *spec) otherSide() Kind {
	if s.side == KindRead {
		return KindWrite
	}
	return KindRead
}

// otherSide returns the ownership on the side of p for an owner that has t on the other.
func (t *ownership) otherSide(p *primitive) (*ownership, error) {
	switch {
	case p.spec.side == KindRead:
		return t.nest(p), nil
	case t.isNested() && t.sibling.live():
		return t.sibling, nil
	}
	return nil, ErrUpgrade
}

// nest returns the ownership that reads for an owner that writes.
func (t *ownership) nest(p *primitive) *ownership {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sibling == nil || !t.sibling.usable() {
		t.sibling = t.client.registry.nested(p, t)
	}
	return t.sibling
}

// isNested reports whether the ownership reads for an owner that writes, or did.
func (t *ownership) isNested() bool {
	p, reads := t.protocol.(readProtocol)
	return reads && p.number != ""
}

// nested makes an ownership that reads, under the name of an owner that writes.
func (r *registry) nested(p *primitive, writer *ownership) *ownership {
	number := r.number()
	t := r.build(p, writer.owner, number, "")
	t.sibling, t.protocol = writer, readProtocol{number: strconv.FormatUint(number, 10)}
	r.replace(ownedName{p.key, p.spec.side, t.owner}, t)
	return t
}

// findSide returns the ownership of an explicit owner on a side of a read/write lock.
func (r *registry) findSide(p *primitive, owner Owner) (*ownership, error) {
	if t := r.known(ownedName{p.key, p.spec.side, owner}); t != nil && t.usable() {
		return t, nil
	}
	if other := r.known(ownedName{p.key, p.spec.otherSide(), owner}); other != nil && other.live() {
		return other.otherSide(p)
	}
	return r.newFor(p, ownedName{p.key, p.spec.side, owner}), nil
}

// Downgrade turns a write hold into a read hold, in one step: nobody else can write in
// between. The write hold is over, as after Unlock; the read hold that comes back is
// renewed, within what is left of MaxHold, and readers who wait are let in. It is for the only
// hold of its write side: one that has been entered again is an ErrInvalid, as is a hold of any
// other lock.
//
// An error means that neither hold can be relied on: ErrNotHeld if the write hold was
// over before, else the lock is released in the background, as after an Unlock that
// failed.
func (h *Hold) Downgrade(ctx context.Context) (*Hold, error) {
	if h == nil {
		return nil, ErrNotHeld
	}
	s, is := h.inner().(*holdState)
	if !is || s.ownership.lock.spec.side != KindWrite {
		return nil, fail("downgrade", h.Name(), invalid("only a write hold can be downgraded"))
	}
	t := s.ownership
	if !t.client.begin() {
		return nil, fail("downgrade", h.Name(), ErrClosed)
	}
	defer t.client.working.Done()
	read, err := t.downgrade(ctx, s)
	if err != nil {
		return nil, fail("downgrade", h.Name(), t.client.wrongKind(ctx, t.lock.keys, KindRWLock, err))
	}
	return read, nil
}

func (t *ownership) downgrade(ctx context.Context, s *holdState) (*Hold, error) {
	n := t.nest(t.lock.reader)
	defer n.forgetUnused()
	for _, each := range []*ownership{t, n} {
		if err := each.turn.Lock(ctx); err != nil {
			return nil, transport.Unavailable(transport.ContextError(ctx))
		}
		defer each.turn.Unlock()
	}
	if err := t.mayDowngrade(s); err != nil {
		return nil, err
	}
	r, err := t.downgraded(s)
	if err != nil {
		return nil, err
	}
	if err := t.beginRelease(s); err != nil {
		return nil, err
	}
	a := &acquisition{request: r, lock: n.lock, ownership: n}
	ans, err := a.sendDowngrade()
	switch {
	case err != nil:
		n.noteDoubt(ans)
		_, err = a.abandonEntry(err)
		return nil, errors.Join(err, t.releaseFailed(ans, err))
	case ans.Null:
		t.lose(ErrLost, "it was gone when it was downgraded")
		_, err = a.abandonEntry(ErrLost)
		return nil, errors.Join(ErrNotHeld, err)
	}
	read, err := a.arrive(ans)
	t.finishRelease(ans)
	_, _ = t.reportRelease(s)
	return read, err
}

// mayDowngrade checks, under the turn, that the hold is the only one.
func (t *ownership) mayDowngrade(s *holdState) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.errOf(s) != nil:
		return notHeld(t.errOf(s))
	case t.valid() <= 0:
		return errors.Join(ErrNotHeld, ErrLost)
	case t.holds.count > 1:
		return invalid("the write lock is held %d times, and only the last hold can be downgraded", t.holds.count)
	}
	return nil
}

// downgraded is the request for the read hold: what is left of the limit of the write
// hold goes on binding it.
func (t *ownership) downgraded(s *holdState) (request, error) {
	now := t.client.clock()
	left := s.limit.valid(now)
	t.mu.Lock()
	left = min(left, t.lease.limit.left(now))
	t.mu.Unlock()
	if left == never {
		return newRequest(t.client.options.Lease, true, nil)
	}
	return newRequest(t.client.options.Lease, true, []setting{{kind: settingMaxHold, d: max(left, MinLease)}})
}

// downgradedBefore is the reply of rw_downgrade.lua to a repetition, which changes
// nothing.
const downgradedBefore = -2

// sendDowngrade asks the server for one read hold more, instead of the write hold. It
// is not stopped by the end of the caller's context: the write hold is given up.
func (a *acquisition) sendDowngrade() (transport.Answer, error) {
	t, p := a.ownership, a.lock
	count := t.count() + 1
	t.counting(count)
	ans, err := t.client.sender.Call(t.client.sender.Detached(context.Background()), nil, rwDowngrade.Confirmed(t.client.acks),
		append(p.rwKeys(), p.leaseKeys(t.wire)+strconv.Itoa(count)),
		[]string{t.wire, t.client.leaseText(a.lease), strconv.Itoa(count), t.protocol.(readProtocol).number, t.client.publish, p.channel})
	if told, _ := ans.Message.AsInt64(); told == downgradedBefore {
		ans.Sent = ans.Asked // by an earlier attempt, with which the lease began
	}
	if errors.Is(err, ErrNotReplicated) && !ans.Doubt {
		ans.Doubt, ans.DoubtAt, ans.DoubtGeneration = true, ans.Sent, transport.NoGeneration // it was done, and is to be undone
	}
	return ans, err
}

// arrive makes the hold of a read that the server has granted, as the first of its
// ownership or one more.
func (a *acquisition) arrive(ans transport.Answer) (*Hold, error) {
	t := a.ownership
	if t.isPending() {
		return a.conclude(a.accept(ans))
	}
	s, cause := t.addHold(&a.request, ans)
	if cause != nil {
		return a.abandonEntry(cause)
	}
	return newHold(s), nil
}

// abandonEntry gives up a read that was asked for: the server's count is set back.
func (a *acquisition) abandonEntry(cause error) (*Hold, error) {
	t := a.ownership
	if t.isPending() {
		return a.conclude(cause)
	}
	t.undoLater(0, a.lease)
	return nil, cause
}
