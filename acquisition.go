package latchkey

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/engine/report"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// acquisition is one call that acquires a lock or re-enters a hold, with the state that lasts
// only until the call has its hold or its error.
type acquisition struct {
	request.Request

	lock  *acquirable
	verb  string      // the call in words
	fault error       // why nothing may be sent, or nil
	began lease.Stamp // when the call began

	// ownership is what the call wants to begin. It is nil until the call needs one: a call that
	// waits in line without an ownership costs little more than its goroutine.
	ownership *ownership.Ownership
	others    []*ownership.Ownership // requested with it; they begin together
	under     *ownership.Hold        // the hold to re-enter, or nil
	passed    *ownership.Hold        // the hold that was passed to this call, or nil
	queued    attemptProtocol        // for attempts that wait in a queue on the server, or nil
	since     lease.Stamp            // before the first attempt, or when the call began
	holder    string                 // of the lock, when the last attempt was refused, or ""
	args      *[9]string             // of the command, or nil

	pollIn time.Duration // after the last refusal, if it polls in the queue of the lock, else 0

	quiet       bool                 // nothing is to be logged of the wait: it may be long, or the line was logged
	behind      *ownership.Ownership // of this client, which had the lock at the last refusal, or nil
	behindSince time.Duration        // the first refusal because of it, on the monotonic clock

	isWaiting bool // it waits, and the server should know
	hasSendMu bool // it has locked sendMu of the ownership, which other goroutines may know
	noQueue   bool // the last attempt was sent without the queue of the lock
	tooFew    bool // the grant was confirmed by too few replicas
	wasInLine bool // it waited in line: other goroutines may know it
	// byStranger says that the last attempt was refused because of a stranger, and stranger that
	// any attempt was: see strangerturns.go.
	byStranger, stranger bool
	// behindOwnReader says that the last attempt was refused for a writer that waits for a hold of this client.
	behindOwnReader bool
}

// newAcquisition checks everything that can be checked before sending. waits is the default of
// the verb without options.
func (p *acquirable) newAcquisition(verb string, waits bool, settings []request.Setting) *acquisition {
	a := acquisitions.Get().(*acquisition)
	a.lock, a.verb = p, verb
	if a.fault = p.Names.Invalid; a.fault != nil {
		return a
	}
	if limit := p.Client.Config.MaxHold; limit > 0 {
		settings = append(slices.Clip(settings), request.Setting{Kind: request.OfClient, D: limit}) // others have the slice too
	}
	a.Request, a.fault = request.New(p.Client.Config.Lease, waits, settings)
	if a.fault == nil && a.AtLeast > 0 {
		a.fault = p.CheckAtLeast()
	}
	if a.fault == nil && a.Note != "" && p.Client.Config.Label == "" {
		a.fault = fault.Invalid("Note does not apply to a client with NoLabel")
	}
	if a.fault == nil && !p.spec.Reentrant && a.By != nil {
		a.fault = fault.Invalid("By does not apply to %s, which is not re-entrant", keyspace.Noun(p.spec.Family))
	}
	return a
}

// acquire is the only way to acquire every lock that is not composite.
func (p *acquirable) acquire(ctx context.Context, verb string, waits bool, settings []request.Setting) (*hold.Handle, error) {
	a := p.newAcquisition(verb, waits, settings)
	h, err := a.run(ctx)
	if err == nil && !a.wasInLine && p.spec.wait == nil {
		*a = acquisition{args: a.args}
		acquisitions.Put(a)
	}
	return h, err
}

// acquisitions holds finished calls that nothing refers to any more.
var acquisitions = sync.Pool{New: func() any { return new(acquisition) }}

// argsBuffer returns room for the arguments of a command.
func (a *acquisition) argsBuffer() []string {
	if a.args == nil {
		a.args = new([9]string)
	}
	return a.args[:0]
}

// run acquires: it re-enters the hold that the call names, makes one attempt, or waits as the
// kind of the lock requires. The call depth is small, so that profiles and stacks stay readable.
func (a *acquisition) run(ctx context.Context) (*hold.Handle, error) {
	c := a.lock.Client
	if a.fault == nil {
		a.fault = c.Begin(ctx)
	}
	if a.fault != nil {
		return nil, a.notBegun(ctx)
	}
	defer c.Done()
	a.Parent = c.Reporter.Parent(ctx)
	a.began = c.Clock() // before the deadline is set, so that a call that ran into it waited at least that long
	given := ctx
	ctx, cancel := a.Bound(ctx)
	defer cancel()
	a.noteLimit(ctx)
	h, err := a.reenter(ctx)
	entered := h != nil
	if h == nil && err == nil {
		defer a.unlockSendMu()
		switch wait := a.lock.spec.wait; {
		case !a.Waits, a.ownership != nil && a.ownership.IsNested(): // an owner that writes need not wait to read
			_, err = a.Attempt(ctx, 0)
		case wait != nil:
			err = wait(ctx, a)
		default:
			a.isWaiting = true
			err = c.Waiting.Wait(ctx, a.lock.LineKey(), a.lock.spec.Line, a, nil)
			err = withOwnHold(c, a.lock.Names.Key, err)
		}
		h, err = a.conclude(err)
	}
	if err != nil {
		err = a.failure(given, err)
		a.observeEnd(entered, err)
		return nil, err
	}
	if a.Note != "" {
		a.attachNotes(h)
	}
	a.observeEnd(entered, nil)
	return h, nil
}

// attachNotes attaches the note of the call to its holds, which are held by then.
func (a *acquisition) attachNotes(h *hold.Handle) {
	h.Backend().(*ownership.Hold).AttachNote(a.Note)
	for _, o := range a.others {
		o.First().AttachNote(a.Note)
	}
}

// notBegun returns the error of a call that may not send anything. Only a context that has ended is worth an event.
func (a *acquisition) notBegun(ctx context.Context) error {
	err := fault.Op(a.verb, a.lock.Name(), a.fault)
	if fault.IsContextEnd(a.fault) {
		a.Parent, a.began = a.lock.Client.Reporter.Parent(ctx), a.lock.Client.Clock()
		a.observeEnd(false, err)
	}
	return err
}

// each iterates over the ownerships that the call requests.
func (a *acquisition) each(yield func(*ownership.Ownership) bool) {
	if a.ownership == nil || !yield(a.ownership) {
		return
	}
	for _, o := range a.others {
		if !yield(o) {
			return
		}
	}
}

// failure returns the error of a call with that context.
func (a *acquisition) failure(ctx context.Context, err error) error {
	causes := script.Explain(a.lock.Client.Inspector.WrongKind(ctx, a.lock.Names, a.lock.spec.Stored, err))
	if a.lock.spec.Kind == keyspace.KindElection && errors.Is(err, fault.ErrNotAcquired) {
		causes[0] = fault.Candidate(causes[0])
	}
	return fault.Op(a.verb, a.lock.Name(), append(causes, adviceFor(ctx, &a.lock.Lock, err))...)
}

// permits returns how many permits the call requests.
func (a *acquisition) permits() int { return 1 + len(a.others) }

// start makes the ownership with a fresh owner, at the first attempt.
func (a *acquisition) start() {
	if a.since == (lease.Stamp{}) {
		a.since = a.began
		if a.wasInLine {
			a.since = a.lock.Client.Clock()
		}
	}
	if a.ownership == nil {
		a.ownership, a.others = a.lock.spec.fresh(a)
	}
}

// hasTime reports whether there is time to retry after trouble with the server.
func (a *acquisition) hasTime() bool {
	c := a.lock.Client
	return a.Waits || c.Clock().Since(a.began)+transport.LongPause < c.Sender.Patience
}

// NoteDoubt remembers that the outcome of an attempt is unknown.
func (a *acquisition) noteDoubt(ans transport.Answer) {
	for o := range a.each {
		o.NoteDoubt(ans)
	}
}

// conclude returns the hold of an ownership that has begun. If the ownership has not begun,
// conclude ends it, and undoes it if it may have begun on the server.
func (a *acquisition) conclude(err error) (*hold.Handle, error) {
	switch {
	case a.passed != nil:
		a.passed.MadeFor(a.Parent)
		return hold.New(a.passed), nil
	case err == nil:
		return hold.New(a.ownership.First()), nil
	}
	granted := script.IsToBeUndone(err)
	known := granted && a.undoAtOnce()
	if granted && !known {
		a.markUnwanted()
	}
	if a.abandon() && !known {
		err = errors.Join(err, fault.ErrUnknownOutcome)
	}
	return nil, err
}

// MarkUnwanted marks the server's grant for undo.
func (a *acquisition) markUnwanted() {
	for o := range a.each {
		o.MarkUnwanted()
	}
}

// undoAtOnce undoes a grant that is not wanted, and reports whether the server confirmed that.
// Nothing else knows the ownerships yet.
func (a *acquisition) undoAtOnce() bool {
	for o := range a.each {
		if !o.Lock.Client.Undo.Now(o.UndoLocked) {
			return false
		}
		o.Observe(report.Undone, nil, nil)
	}
	return true
}

// abandon ends the ownerships, none of which has begun, and has the client undo those that may
// have begun on the server. It reports whether there are any.
func (a *acquisition) abandon() (begun bool) {
	for o := range a.each {
		begun = o.Abandon(a.Lease) || begun
	}
	return begun
}
