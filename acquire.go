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
		return nil, fail(verb, p.name, explain(p.client.wrongKind(ctx, p.keys, p.kind.stored, err))...)
	}
	if p.client.options.Observer != nil {
		for _, t := range append([]*tenure{h.tenure}, h.tenure.company...) {
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
	if err == nil && !p.kind.reentrant && !r.by.IsZero() {
		err = invalid("a mutex is not re-entrant and has no use for By")
	}
	return r, err
}

// acquireFor takes the lock for a fresh owner, or for the one that the call is
// for, whose tenure it may have to wait for: then it has the turn of that tenure,
// and when the tenure has come to its end meanwhile, the owner is resolved anew.
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
			return p.take(ctx, r, nil)
		}
		if !t.turn.try() {
			if !r.waits && !t.live() {
				return nil, ErrNotAcquired
			}
			if t.turn.take(ctx) != nil {
				return nil, t.withoutTurn(ctx)
			}
		}
		h, again, err := t.enterOrTake(ctx, r)
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
func (t *tenure) withoutTurn(ctx context.Context) error {
	err := contextError(ctx)
	if g := t.client.gates.known(t.lock.key); g != nil && !t.live() {
		return g.side(t.lock.kind.line()).ended(ctx, err, nil)
	}
	return unavailable(err)
}

// resolve finds the tenure that an acquisition is for: that of an explicit owner,
// of the hold on the context, or of the owner on the context. Without any of them
// it returns nil: the owner is to be a fresh one.
func (p *primitive) resolve(ctx context.Context, r *request) (*tenure, error) {
	switch {
	case p.kind.side != "":
		return p.resolveSide(ctx, r)
	case p.kind.shared:
		return nil, nil //nolint:nilnil // a permit has no owner
	}
	if r.by.IsZero() {
		if h := holdFrom(ctx, p, ""); h != nil {
			return h.tenure, p.mayEnter(h.tenure)
		}
	}
	owner := r.by
	if owner.IsZero() && p.kind.reentrant {
		var err error
		if owner, err = ownerFrom(ctx); err != nil {
			return nil, err
		}
	}
	if owner.IsZero() {
		return nil, nil //nolint:nilnil // no owner is not an error
	}
	t := p.client.tenures.find(p, owner)
	return t, p.mayEnter(t)
}

// mayEnter refuses what could only wait for itself, or mix two kinds of lock.
func (p *primitive) mayEnter(t *tenure) error {
	switch {
	case t.lock.kind.family != p.kind.family:
		return notA(p.kind.stored, nouns[t.lock.kind.stored], nil)
	case !p.kind.reentrant && t.live():
		return invalid("a mutex is not re-entrant, and the context carries a hold of it")
	}
	return nil
}

// enterOrTake does what the phase of the tenure asks for. The turn is held, and given. It
// reports whether the owner is to be resolved anew, with an error if that is to be after a
// pause: then others have their turn in between, the renewal above all.
func (t *tenure) enterOrTake(ctx context.Context, r *request) (h *Hold, again bool, err error) {
	defer t.turn.give()
	t.mu.Lock()
	phase := t.phase
	t.mu.Unlock()
	switch phase {
	case pending:
		h, err = t.lock.take(ctx, r, t)
		return h, false, err
	case held:
		return t.reenter(ctx, r)
	}
	return nil, true, nil
}

// reenter raises the count by one. It reports whether it may succeed later.
func (t *tenure) reenter(ctx context.Context, r *request) (h *Hold, again bool, err error) {
	t.mu.Lock()
	count := t.count + 1
	lease := r.lease
	if t.limit > 0 {
		lease = min(lease, max(t.limit-t.client.clock().since(t.start), MinLease))
	}
	r.lease = lease
	t.mu.Unlock()
	a, again, err := t.askToEnter(ctx, r, count)
	switch {
	case again:
		return nil, true, err
	case hasCode(err, "LATCHKEY_GONE"):
		t.lose(ErrLost, "it was gone when it was entered again")
		return nil, false, errors.Join(ErrNotAcquired, ErrLost)
	case err != nil:
		return nil, false, t.entryFailed(r, a, err)
	}
	g, cause := t.enter(r, a)
	if cause != nil {
		// The tenure ended while the answer was under way, and must not come to life
		// again: what the server has counted is taken back.
		t.undoLater(0, r.lease)
		return nil, false, notEntered(cause)
	}
	return newHold(t, g), false, nil
}

// entryFailed sets the server's count back if the re-entry may have been counted.
func (t *tenure) entryFailed(r *request, a answer, err error) error {
	counted := errors.Is(err, ErrNotReplicated)
	known := counted && t.client.undo.atOnce(t.setRight)
	if a.doubt || counted && !known {
		t.undoLater(0, r.lease)
	}
	if !known && (a.doubt || counted) {
		return errors.Join(err, ErrUnknownOutcome)
	}
	return err
}

// askToEnter asks the server to count one hold more. If the server does not do it now, the
// question is to be asked again, for as long as the call may take and the hold stands;
// after an attempt whose outcome is unknown that is done here, before anything else is sent
// but a renewal.
func (t *tenure) askToEnter(ctx context.Context, r *request, count int) (a answer, again bool, err error) {
	for doubt := false; ; {
		a, err = t.ask(ctx, r, count, 0)
		t.doubt(a)
		doubt = doubt || a.doubt
		a.doubt = doubt
		if err == nil || !t.live() || judge(err) == refused || !worthWaiting(ctx, err) || !t.client.hasTime(r) {
			return a, false, err
		}
		if !doubt {
			return a, true, err
		}
		if stopped := rest(ctx, t.client.closing, jitter(longPause)); stopped != nil {
			return a, false, stoppedAfter(err, stopped)
		}
		t.turn.lend()
	}
}

// hasTime reports whether a request may go on after trouble with the server.
func (c *Client) hasTime(r *request) bool {
	return r.waits || c.clock().since(r.began)+longPause < c.caller.patience
}

// take asks once, or stands in line and asks until the lock is granted. Without a
// tenure it makes one for a fresh owner, but only when it is in front: whoever
// stands in line costs little more than the goroutine.
func (p *primitive) take(ctx context.Context, r *request, t *tenure) (*Hold, error) {
	if !r.waits || t != nil && t.nestedNumber != "" { // whoever writes need not wait to read
		t = p.orFresh(t, r)
		_, err := t.attempt(ctx, r, 0)
		return t.conclude(r, err)
	}
	if p.kind.queued {
		return p.takeInLine(ctx, r, t)
	}
	main := p.client.gates.use(p.key)
	defer main.done()
	g := main.side(p.kind.line())
	if p.kind.side == KindRead {
		return p.takeTogether(ctx, r, t, g)
	}
	if err := g.enter(ctx, p.client.closing); err != nil {
		return t.concludeIfAny(r, g.ended(ctx, err, nil))
	}
	defer g.leave()
	t = p.orFresh(t, r)
	t.waits, t.since = true, p.client.clock()
	return t.conclude(r, t.waitInFront(ctx, r, g))
}

// takeTogether is take for a lock that many may hold. Only the front of the line waits
// on the server; when it gets in, or there is a hint that it may, those behind it try
// as well, all at once, without leaving the line.
func (p *primitive) takeTogether(ctx context.Context, r *request, t *tenure, g *gate) (*Hold, error) {
	s := g.join()
	var last error
	for {
		inFront, err := g.await(ctx, p.client.closing, s)
		if err != nil {
			return t.concludeIfAny(r, g.ended(ctx, err, last))
		}
		t = p.orFresh(t, r)
		t.waits = true
		if inFront {
			break
		}
		if _, err = t.attempt(ctx, r, 0); err == nil || !worthWaiting(ctx, err) {
			g.leaveLine(s)
			return t.conclude(r, g.ended(ctx, err, last))
		}
		last = err
	}
	defer g.leave()
	err := t.waitInFront(ctx, r, g)
	if err == nil {
		g.callAll()
	}
	return t.conclude(r, err)
}

func (p *primitive) orFresh(t *tenure, r *request) *tenure {
	switch {
	case t != nil:
		return t
	case p.kind.shared:
		return p.client.tenures.permits(p, r.together)
	}
	return p.client.tenures.fresh(p)
}

// concludeIfAny is conclude for a line that was left before there was a tenure, too.
func (t *tenure) concludeIfAny(r *request, err error) (*Hold, error) {
	if t == nil {
		return nil, err
	}
	return t.conclude(r, err)
}

// conclude returns the hold of a tenure that has begun. One that has not is over,
// and undone if it may have begun for the server.
func (t *tenure) conclude(r *request, err error) (*Hold, error) {
	if err == nil {
		return newHold(t, &t.first), nil
	}
	granted := errors.Is(err, ErrNotReplicated)
	known := granted && t.takeBack()
	if granted && !known {
		t.refuse()
	}
	if t.giveUp(r) && !known {
		err = errors.Join(err, ErrUnknownOutcome)
	}
	return nil, err
}

// takeBack undoes what the server has granted and nobody is to have, at once, and
// reports whether the server said so. Nobody else knows the tenure yet.
func (t *tenure) takeBack() bool {
	for _, each := range append([]*tenure{t}, t.company...) {
		if !t.client.undo.atOnce(each.setRight) {
			return false
		}
		each.observe(Event{Type: EventUndone})
	}
	return true
}

// giveUp ends a tenure that has not begun, and its company, and has undone what may
// have begun for the server. It reports whether anything may.
func (t *tenure) giveUp(r *request) (begun bool) {
	t.mu.Lock()
	t.phase = over
	begun = t.doubtful || t.unwanted
	inLine := t.inLine
	t.mu.Unlock()
	t.client.tenures.remove(t)
	switch {
	case begun:
		t.undoLater(0, r.lease)
	case inLine:
		t.undoLater(0, t.client.options.StaleWaiterTimeout)
	}
	for _, other := range t.company {
		other.giveUp(r)
	}
	return begun
}

// attempt asks the server for the lock once, in the sense of the lock: trouble on
// the way is overcome within the retry budget. A nil error means that the tenure
// has begun. ErrNotAcquired comes with what is left of the holder's lease.
func (t *tenure) attempt(ctx context.Context, r *request, round int) (left time.Duration, err error) {
	left = -1
	a, err := t.ask(ctx, r, 1, round)
	if err == nil && a.bare && a.null {
		// SET NX was refused, by whoever or whatever is there; it may be ourselves,
		// if the answer to a first try was lost.
		t.doubt(a)
		a, err = t.ask(ctx, r, 1, round+1)
	}
	t.doubt(a)
	err = r.waitForSet(err)
	if err == nil {
		left, err = t.weigh(r, a)
	}
	t.observe(Event{Type: EventAttempt, Err: err})
	return left, err
}

// weigh reads the answer to an attempt.
func (t *tenure) weigh(r *request, a answer) (left time.Duration, err error) {
	if a.message.IsInt64() {
		if t.waits && t.lock.kind.side == KindWrite {
			t.noted()
		}
		ms, err := a.message.AsInt64()
		if err != nil {
			return 0, errors.Join(errReply, err)
		}
		left = fromMillis(ms)
		return left, t.refusedBy("", left)
	}
	if a.message.IsArray() {
		if t.place != nil {
			return t.lineUp(a)
		}
		return t.heldBy(a)
	}
	return 0, t.accept(r, a)
}

// heldBy reads the reply to an attempt that names the holder.
func (t *tenure) heldBy(a answer) (left time.Duration, err error) {
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
	return left, t.refusedBy(holder, left)
}

// refusedBy is the error of an attempt that met a holder, or "" if it is not known which.
func (t *tenure) refusedBy(holder string, left time.Duration) error {
	e := &busyError{holder: holder, left: left, at: time.Now()}
	if t.lock.kind.shared {
		return ErrNotAcquired // what is left is that of one of many
	}
	g := t.client.gates.known(t.lock.key)
	e.here = g != nil && g.heldHere()
	if t.lock.kind.side != "" {
		e.left = -1 // it may be the turn of others
	}
	return e
}

// accept begins the tenure, unless the answer took so long that nothing of the
// lease is left.
func (t *tenure) accept(r *request, a answer) error {
	select {
	case <-t.client.closing:
		t.refuse()
		return ErrClosed
	default:
	}
	if r.lease-driftMargin(r.lease) <= t.client.clock().since(a.sent) {
		t.refuse()
		return unavailable(errLate)
	}
	t.begin(r, a)
	return nil
}

var errLate = errors.New("latchkey: the lease was over when the answer came")

// refuse marks what the server has granted for undo.
func (t *tenure) refuse() {
	for _, each := range append([]*tenure{t}, t.company...) {
		each.mu.Lock()
		each.unwanted = true
		each.mu.Unlock()
	}
}

// ask sends an acquisition.
func (t *tenure) ask(ctx context.Context, r *request, count, round int) (answer, error) {
	t.counting(count)
	c := t.lock.kind.protocol.acquire(t, r.lease, count, round)
	a, err := t.client.caller.callOn(ctx, t.client.closing, t.terms(r.waits), c.cmd, c.keys, c.args)
	a.bare = c.cmd.lua == nil
	if err == nil && t.client.acks != nil && a.granted() {
		return t.client.confirm(ctx, a, t.lock.kind.protocol.acquire(t, r.lease, count, round+1))
	}
	return a, err
}

// confirm has an acquisition that was granted confirmed: it is sent once more, which
// changes nothing unless a failover has forgotten it meanwhile. Whatever comes of it,
// the first one was granted; an error leaves that in doubt, unless it is that there are
// too few replicas, after which it is undone at once.
func (c *Client) confirm(ctx context.Context, first answer, again call) (answer, error) {
	a, err := c.caller.call(ctx, c.closing, again.cmd.confirmed(c.acks), again.keys, again.args)
	switch {
	case err != nil && !errors.Is(err, ErrNotReplicated):
		a.doubt, a.doubtAt, a.doubtEra = true, a.sent, noEra
	case !a.doubt:
		a.doubt, a.doubtAt, a.doubtEra = first.doubt, first.doubtAt, first.doubtEra
	}
	a.sent = first.sent
	return a, err
}
