package latchkey

import (
	"context"
	"errors"
	"time"
)

// acquire is the one way in for every lock: it finds out for whom, and then takes
// the lock or enters it again. waits is what the verb means without options.
func (p *primitive) acquire(ctx context.Context, verb string, waits bool, settings []setting) (*Hold, error) {
	r, err := p.prepare(waits, settings)
	if err != nil {
		return nil, fail(verb, p.name, err)
	}
	if !p.client.begin() {
		return nil, fail(verb, p.name, ErrClosed)
	}
	defer p.client.working.Done()
	ctx, cancel := r.bound(ctx)
	defer cancel()
	r.began = p.client.clock()
	h, err := p.acquireFor(ctx, &r)
	if err != nil {
		return nil, fail(verb, p.name, explain(p.client.wrongKind(ctx, p.keys, p.spec.stored, err))...)
	}
	if p.client.options.Observer != nil {
		leader := h.inner().(*holdState).ownership
		for _, t := range append([]*ownership{leader}, leader.batch...) {
			t.observe(Event{Type: EventAcquired, Wait: p.client.clock().since(r.began)})
		}
	}
	return h, nil
}

// prepare checks everything that can be checked before anything is sent.
func (p *primitive) prepare(waits bool, settings []setting) (request, error) {
	if p.invalid != nil {
		return request{}, p.invalid
	}
	r, err := newRequest(p.client.options.Lease, waits, settings)
	if err == nil && !p.spec.reentrant && !r.by.IsZero() {
		err = invalid("a mutex is not re-entrant and has no use for By")
	}
	return r, err
}

// acquireFor takes the lock for a fresh owner, or for the one that the call is
// for, whose ownership it may have to wait for: then it has the turn of that ownership,
// and when the ownership has come to its end meanwhile, the owner is resolved anew.
func (p *primitive) acquireFor(ctx context.Context, r *request) (*Hold, error) {
	for {
		if ctx.Err() != nil {
			return nil, contextError(ctx)
		}
		t, err := p.resolve(ctx, r)
		if err != nil {
			return nil, err
		}
		if t == nil {
			return p.acquireAs(ctx, r, nil)
		}
		if !t.turn.tryLock() {
			if !r.waits && !t.live() {
				return nil, ErrNotAcquired
			}
			if t.turn.lock(ctx) != nil {
				return nil, t.withoutTurn(ctx)
			}
		}
		h, again, err := t.enterOrAcquire(ctx, r)
		if !again {
			return h, err
		}
		if err == nil {
			continue
		}
		if stopped := rest(ctx, p.client.closing, jitter(longPause)); stopped != nil {
			return nil, stoppedAfter(err, stopped)
		}
	}
}

// withoutTurn is the error of a call that has waited in vain for another of the same
// owner: one that uses the lock has to wait for the server only, one that acquires it for
// what that meets.
func (t *ownership) withoutTurn(ctx context.Context) error {
	err := contextError(ctx)
	if g := t.client.waitQueues.known(t.lock.key); g != nil && !t.live() {
		return g.side(t.lock.spec.line()).waitError(ctx, err, nil)
	}
	return unavailable(err)
}

// resolve finds the ownership that an acquisition is for: that of an explicit owner,
// of the hold on the context, or of the owner on the context. Without any of them
// it returns nil: the owner is to be a fresh one.
func (p *primitive) resolve(ctx context.Context, r *request) (*ownership, error) {
	switch {
	case p.spec.side != "":
		return p.resolveSide(ctx, r)
	case p.spec.shared:
		return nil, nil //nolint:nilnil // a permit has no owner
	}
	if r.by.IsZero() {
		if h := holdFrom(ctx, p, ""); h != nil {
			return h.ownership, p.mayEnter(h.ownership)
		}
	}
	owner := r.by
	if owner.IsZero() && p.spec.reentrant {
		var err error
		if owner, err = ownerFrom(ctx); err != nil {
			return nil, err
		}
	}
	if owner.IsZero() {
		return nil, nil //nolint:nilnil // no owner is not an error
	}
	t := p.client.registry.find(p, owner)
	return t, p.mayEnter(t)
}

// mayEnter refuses what could only wait for itself, or mix two kinds of lock.
func (p *primitive) mayEnter(t *ownership) error {
	switch {
	case t.lock.spec.family != p.spec.family:
		return notA(p.spec.stored, nouns[t.lock.spec.stored], nil)
	case !p.spec.reentrant && t.live():
		return invalid("a mutex is not re-entrant, and the context carries a hold of it")
	}
	return nil
}

// enterOrAcquire does what the phase of the ownership asks for. The caller has the turn, and this
// gives it back. It reports whether the owner is to be resolved anew, with an error if that is to be after a
// pause: then others have their turn in between, the renewal above all.
func (t *ownership) enterOrAcquire(ctx context.Context, r *request) (h *Hold, again bool, err error) {
	defer t.turn.unlock()
	t.mu.Lock()
	phase := t.phase
	t.mu.Unlock()
	switch phase {
	case pending:
		h, err = t.lock.acquireAs(ctx, r, t)
		return h, false, err
	case held:
		return t.reenter(ctx, r)
	}
	return nil, true, nil
}

// hasTime reports whether a request may go on after trouble with the server.
func (c *Client) hasTime(r *request) bool {
	return r.waits || c.clock().since(r.began)+longPause < c.sender.patience
}

// acquireAs asks once, or stands in line and asks until the lock is granted. Without an
// ownership it makes one for a fresh owner, but only when it is in front: whoever
// stands in line costs little more than the goroutine.
func (p *primitive) acquireAs(ctx context.Context, r *request, t *ownership) (*Hold, error) {
	if !r.waits || t != nil && t.nestedNumber != "" { // whoever writes need not wait to read
		t = p.orFresh(t, r)
		_, err := t.attempt(ctx, r, 0)
		return t.conclude(r, err)
	}
	if p.spec.queued {
		return p.waitFairly(ctx, r, t)
	}
	main := p.client.waitQueues.use(p.key)
	defer main.done()
	g := main.side(p.spec.line())
	if p.spec.side == KindRead {
		return p.waitTogether(ctx, r, t, g)
	}
	if err := g.awaitFront(ctx, p.client.closing); err != nil {
		return t.concludeIfAny(r, g.waitError(ctx, err, nil))
	}
	defer g.leaveFront()
	t = p.orFresh(t, r)
	t.waits, t.since = true, p.client.clock()
	return t.conclude(r, t.waitInFront(ctx, r, g))
}

// waitTogether is the waiting of acquireAs for a lock that many may hold. Only the front of the line waits
// on the server; when it gets in, or there is a hint that it may, those behind it try
// as well, all at once, without leaving the line.
func (p *primitive) waitTogether(ctx context.Context, r *request, t *ownership, g *waitQueue) (*Hold, error) {
	s := g.join()
	var last error
	for {
		inFront, err := g.await(ctx, p.client.closing, s)
		if err != nil {
			return t.concludeIfAny(r, g.waitError(ctx, err, last))
		}
		t = p.orFresh(t, r)
		t.waits = true
		if inFront {
			break
		}
		if _, err = t.attempt(ctx, r, 0); err == nil || !worthWaiting(ctx, err) {
			g.leave(s)
			return t.conclude(r, g.waitError(ctx, err, last))
		}
		last = err
	}
	defer g.leaveFront()
	err := t.waitInFront(ctx, r, g)
	if err == nil {
		g.callAll()
	}
	return t.conclude(r, err)
}

func (p *primitive) orFresh(t *ownership, r *request) *ownership {
	switch {
	case t != nil:
		return t
	case p.spec.shared:
		return p.client.registry.permits(p, r.together)
	}
	return p.client.registry.fresh(p)
}

// concludeIfAny is conclude for a line that was left before there was an ownership, too.
func (t *ownership) concludeIfAny(r *request, err error) (*Hold, error) {
	if t == nil {
		return nil, err
	}
	return t.conclude(r, err)
}

// conclude returns the hold of an ownership that has begun. One that has not is over,
// and undone if it may have begun for the server.
func (t *ownership) conclude(r *request, err error) (*Hold, error) {
	if err == nil {
		return newHold(&t.holds.first), nil
	}
	granted := errors.Is(err, ErrNotReplicated)
	known := granted && t.undoAtOnce()
	if granted && !known {
		t.markUnwanted()
	}
	if t.abandon(r) && !known {
		err = errors.Join(err, ErrUnknownOutcome)
	}
	return nil, err
}

// undoAtOnce undoes what the server has granted and nobody is to have, at once, and
// reports whether the server said so. Nobody else knows the ownership yet.
func (t *ownership) undoAtOnce() bool {
	for _, each := range append([]*ownership{t}, t.batch...) {
		if !t.client.undo.atOnce(each.setRight) {
			return false
		}
		each.observe(Event{Type: EventUndone})
	}
	return true
}

// abandon ends an ownership that has not begun, and its company, and has undone what may
// have begun for the server. It reports whether anything may.
func (t *ownership) abandon(r *request) (begun bool) {
	t.mu.Lock()
	t.phase = over
	begun = t.doubt.mayBeHeld()
	inLine := t.doubt.queued
	t.mu.Unlock()
	t.client.registry.remove(t)
	switch {
	case begun:
		t.undoLater(0, r.lease)
	case inLine:
		t.undoLater(0, t.client.options.StaleWaiterTimeout)
	}
	for _, other := range t.batch {
		other.abandon(r)
	}
	return begun
}

// heldBy reads the reply to an attempt that names the holder.
func (t *ownership) heldBy(a answer) (left time.Duration, err error) {
	reply, err := a.message.ToArray()
	if err != nil || len(reply) != 2 {
		return 0, errReply
	}
	ms, err1 := reply[0].AsInt64()
	holder, err2 := reply[1].ToString()
	if err := errors.Join(err1, err2); err != nil {
		return 0, errors.Join(errReply, err)
	}
	left = fromMillis(ms)
	return left, t.busyWith(holder, left)
}

// busyWith is the error of an attempt that found the lock held. holder is its owner, or "" if
// that is not known.
func (t *ownership) busyWith(holder string, left time.Duration) error {
	e := &busyError{holder: holder, left: left, at: time.Now()}
	if t.lock.spec.shared {
		return ErrNotAcquired // what is left is that of one of many
	}
	g := t.client.waitQueues.known(t.lock.key)
	e.here = g != nil && g.heldHere()
	if t.lock.spec.side != "" {
		e.left = -1 // it may be the turn of others
	}
	return e
}
