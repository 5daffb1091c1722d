package latchkey

import (
	"context"
	"errors"
	"sync"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// acquisition is one call that acquires a lock or enters a hold again, with what lives only
// until the call has its hold or its error.
type acquisition struct {
	request

	lock  *primitive
	verb  string          // the call in words
	fault error           // why nothing is to be sent, or nil
	began transport.Stamp // when the call did

	// ownership is what is to begin. It is nil until one is needed: a call that waits in
	// line without it costs little more than its goroutine.
	ownership *ownership
	others    []*ownership    // that are asked for, and begin, together with it
	under     *holdState      // that the call is to enter again, or nil
	passed    *holdState      // of an ownership that was passed to this call, or nil
	queued    protocol        // of the attempts that wait in a queue on the server, or nil
	since     transport.Stamp // before the first attempt, or when the call began
	holder    string          // of the lock, when the last attempt was refused, or ""
	args      *[8]string      // of what is sent, or nil

	inLine      bool // it waits, and the server is to know that
	hasTurn     bool // of the ownership, which others may know
	noQueue     bool // the last attempt was sent without the queue of the lock
	tooFew      bool // it was granted, and too few replicas confirmed that
	stoodInLine bool // others may know it
	// byStranger says that the last attempt was refused because of a stranger, and stranger that
	// one was: see waitqueue_strangers.go.
	byStranger, stranger bool
}

// newAcquisition checks everything that can be checked before anything is sent. waits is what
// the verb means without options.
func (p *primitive) newAcquisition(verb string, waits bool, settings []setting) *acquisition {
	a := acquisitions.Get().(*acquisition)
	a.lock, a.verb = p, verb
	if a.fault = p.invalid(); a.fault != nil {
		return a
	}
	a.request, a.fault = newRequest(p.client.options.Lease, waits, settings)
	if a.fault == nil && a.atLeast > 0 {
		a.fault = p.checkAtLeast(&a.request)
	}
	if a.fault == nil && a.note != "" && p.client.options.Label == NoLabel {
		a.fault = invalid("a client with NoLabel has no notes")
	}
	if a.fault == nil && !p.spec.reentrant && a.by != nil {
		a.fault = invalid("%s is not re-entrant and has no use for By", nouns[p.spec.family])
	}
	return a
}

// acquire is the one way in for every lock but those that are several.
func (p *primitive) acquire(ctx context.Context, verb string, waits bool, settings []setting) (*Hold, error) {
	a := p.newAcquisition(verb, waits, settings)
	h, err := a.run(ctx)
	if err == nil && !a.stoodInLine && p.spec.wait == nil {
		*a = acquisition{args: a.args}
		acquisitions.Put(a)
	}
	return h, err
}

// acquisitions are calls that are over, and that nobody knows any more.
var acquisitions = sync.Pool{New: func() any { return new(acquisition) }}

// argsBuffer returns room for the arguments of what is sent.
func (a *acquisition) argsBuffer() []string {
	if a.args == nil {
		a.args = new([8]string)
	}
	return a.args[:0]
}

// run acquires: it enters the hold again that the call is for, or makes one attempt, or
// waits in the way of the lock's kind. What it calls is few functions deep, so that a profile
// and a stack tell what a call does.
func (a *acquisition) run(ctx context.Context) (*Hold, error) {
	c := a.lock.client
	switch {
	case a.fault != nil:
		return nil, fail(a.verb, a.lock.Name(), a.fault)
	case !c.begin():
		return nil, fail(a.verb, a.lock.Name(), ErrClosed)
	}
	defer c.working.Done()
	a.parent = c.parentOf(ctx)
	ctx, cancel := a.bound(ctx)
	defer cancel()
	a.began = c.clock()
	h, err := a.reenter(ctx)
	entered := h != nil
	if h == nil && err == nil {
		defer a.giveTurnBack()
		switch wait := a.lock.spec.wait; {
		case !a.waits:
			_, err = a.attempt(ctx, 0)
		case wait != nil:
			err = wait(ctx, a)
		default:
			a.inLine = true
			err = c.wait(ctx, a.lock.key, a.lock.spec.line, a, nil)
		}
		h, err = a.conclude(err)
	}
	if err != nil {
		err = fail(a.verb, a.lock.Name(), explain(c.wrongKind(ctx, a.lock.keys(), a.lock.spec.stored, err))...)
		a.observeEnd(entered, err)
		return nil, err
	}
	if a.note != "" {
		a.noteHolds(h)
	}
	a.observeEnd(entered, nil)
	return h, nil
}

// each goes through the ownerships that are asked for.
func (a *acquisition) each(yield func(*ownership) bool) {
	if a.ownership == nil || !yield(a.ownership) {
		return
	}
	for _, o := range a.others {
		if !yield(o) {
			return
		}
	}
}

// start makes the ownership for a fresh owner, at the first attempt.
func (a *acquisition) start() {
	if a.since == (transport.Stamp{}) {
		a.since = a.began
		if a.stoodInLine {
			a.since = a.lock.client.clock()
		}
	}
	if a.ownership == nil {
		a.ownership, a.others = a.lock.spec.fresh(a)
	}
}

// hasTime reports whether to go on after trouble with the server.
func (a *acquisition) hasTime() bool {
	c := a.lock.client
	return a.waits || c.clock().Since(a.began)+transport.LongPause < c.sender.Patience
}

// noteDoubt remembers that an attempt was sent whose outcome is unknown.
func (a *acquisition) noteDoubt(ans transport.Answer) {
	if !ans.Doubt {
		return
	}
	for o := range a.each {
		o.noteDoubt(ans)
	}
}

// conclude returns the hold of an ownership that has begun. One that has not is over, and
// undone if it may have begun for the server.
func (a *acquisition) conclude(err error) (*Hold, error) {
	switch {
	case a.passed != nil:
		a.passed.madeFor(a.parent)
		return newHold(a.passed), nil
	case err == nil:
		return newHold(&a.ownership.holds.first), nil
	}
	granted := errors.Is(err, ErrNotReplicated)
	known := granted && a.undoAtOnce()
	if granted && !known {
		a.markUnwanted()
	}
	if a.abandon() && !known {
		err = errors.Join(err, ErrUnknownOutcome)
	}
	return nil, err
}

// markUnwanted marks what the server has granted for undo.
func (a *acquisition) markUnwanted() {
	for o := range a.each {
		o.mu.Lock()
		o.doubt.unwanted = true
		o.mu.Unlock()
	}
}

// undoAtOnce undoes what the server has granted and nobody is to have, and reports whether
// the server said so. Nobody else knows the ownerships yet.
func (a *acquisition) undoAtOnce() bool {
	for o := range a.each {
		if !o.lock.client.undo.atOnce(o.undoInTurn) {
			return false
		}
		o.observe(EventUndone, nil, nil)
	}
	return true
}

// abandon ends the ownerships, none of which has begun, and has undone what may have begun
// for the server. It reports whether anything may.
func (a *acquisition) abandon() (begun bool) {
	for o := range a.each {
		begun = o.abandon(a.lease) || begun
	}
	return begun
}
