// Package acquire has calls that acquire a lock, from their options to the hold or the error.
package acquire

import (
	"context"
	"errors"
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
	"github.com/latchkey-go/latchkey/internal/transport/retry"
)

// Acquisition is one call that acquires a lock or re-enters a hold, with the state that lasts
// only until the call has its hold or its error.
type Acquisition struct {
	request.Request

	Lock  *Lock
	verb  string      // the call in words
	fault error       // why nothing may be sent, or nil
	Began lease.Stamp // when the call began

	// Ownership is what the call wants to begin. It is nil until the call needs one: a call that
	// waits in line without an ownership costs little more than its goroutine.
	Ownership *ownership.Ownership
	Others    []*ownership.Ownership // requested with it; they begin together
	Under     *hold.Item             // the hold to re-enter, or nil
	passed    *ownership.Hold        // the hold that was passed to this call, or nil
	Queued    Attempts               // for attempts that wait in a queue on the server, or nil
	Since     lease.Stamp            // before the first attempt, or when the call began
	holder    string                 // of the lock, when the last attempt was refused, or ""
	args      [9]string              // of the command

	pollIn time.Duration // after the last refusal, if it polls in the queue of the lock, else 0

	quiet       bool                 // nothing is to be logged of the wait: it may be long, or the line was logged
	behind      *ownership.Ownership // of this client, which had the lock at the last refusal, or nil
	behindSince time.Duration        // the first refusal because of it, on the monotonic clock

	IsWaiting bool // it waits, and the server should know
	hasSendMu bool // it has locked SendMu of the ownership, which other goroutines may know
	noQueue   bool // the last attempt was sent without the queue of the lock
	tooFew    bool // the grant was confirmed by too few replicas
	WasInLine bool // it waited in line: other goroutines may know it
	// ByStranger says that the last attempt was refused because of a stranger, and stranger that
	// any attempt was: see internal/engine/turns/strangers.go.
	ByStranger, stranger bool
	// BehindOwnReader says that the last attempt was refused for a writer that waits for a hold of
	// this client.
	BehindOwnReader bool
}

// NewAcquisition checks everything that can be checked before sending. waits is the default of
// the verb without options.
func (p *Lock) NewAcquisition(verb string, waits bool, settings []request.Setting) *Acquisition {
	a := &Acquisition{Lock: p, verb: verb}
	if a.fault = p.Names.Invalid; a.fault != nil {
		return a
	}
	a.Request, a.fault = request.New(p.Client.Config.Lease, p.Client.Config.MaxHold, waits, settings)
	if a.fault == nil && a.AtLeast > 0 {
		a.fault = p.CheckAtLeast()
	}
	if a.fault == nil && a.Note != "" && p.Client.Config.Label == "" {
		a.fault = fault.Invalid("Note does not apply to a client with NoLabel")
	}
	if a.fault == nil && !p.Spec.Reentrant && !a.As.IsZero() {
		a.fault = fault.Invalid("As does not apply to %s, which is not re-entrant", keyspace.Noun(p.Spec.Family))
	}
	return a
}

// Acquire is the only way to acquire every lock that is not composite.
func (p *Lock) Acquire(ctx context.Context, verb string, waits bool, settings []request.Setting) (*hold.Handle, error) {
	return p.NewAcquisition(verb, waits, settings).Run(ctx)
}

// ArgsBuffer returns room for the arguments of a command.
func (a *Acquisition) ArgsBuffer() []string { return a.args[:0] }

// Run acquires: it re-enters the hold that the call names, makes one attempt, or waits as the
// kind of the lock requires. The call depth is small, so that profiles and stacks stay readable.
func (a *Acquisition) Run(ctx context.Context) (*hold.Handle, error) {
	c := a.Lock.Client
	if a.fault == nil {
		a.fault = c.Begin(ctx)
	}
	if a.fault != nil {
		return nil, a.notBegun(ctx)
	}
	defer c.Done()
	a.Parent = c.Reporter.Parent(ctx)
	a.Began = c.Clock() // before the deadline is set, so that a call that ran into it waited at least that long
	given := ctx
	ctx, cancel := a.Bound(ctx)
	defer cancel()
	a.setQuiet(ctx)
	h, err := a.reenter(ctx)
	if h == nil && err == nil {
		defer a.unlockSendMu()
		switch wait := a.Lock.Spec.Wait; {
		case !a.Waits:
			_, err = a.Attempt(ctx, 0)
		case wait != nil:
			err = wait(ctx, a)
		default:
			a.IsWaiting = true
			err = c.Waiting.Wait(ctx, a.Lock.LineKey(), a.Lock.Spec.Line, a, nil)
			err = WithOwnHold(c, a.Lock.Names.Key, err)
		}
		h, err = a.Conclude(err)
	}
	if err != nil {
		err = a.failure(given, err)
		a.ObserveEnd(false, err)
		return nil, err
	}
	if a.Note != "" {
		a.attachNotes(h)
	}
	a.ObserveEnd(h.Within != nil, nil)
	return hold.New(h), nil
}

// attachNotes attaches the note of the call to its holds, which are held by then.
func (a *Acquisition) attachNotes(h *ownership.Hold) {
	h.AttachNote(a.Note)
	for _, o := range a.Others {
		o.First.AttachNote(a.Note)
	}
}

// notBegun returns the error of a call that may not send anything. Only a context that has ended is
// worth an event.
func (a *Acquisition) notBegun(ctx context.Context) error {
	err := fault.Op(a.verb, a.Lock.Name(), a.fault)
	if fault.IsContextEnd(a.fault) {
		a.Parent, a.Began = a.Lock.Client.Reporter.Parent(ctx), a.Lock.Client.Clock()
		a.ObserveEnd(false, err)
	}
	return err
}

// each iterates over the ownerships that the call requests.
func (a *Acquisition) each(yield func(*ownership.Ownership) bool) {
	if a.Ownership == nil || !yield(a.Ownership) {
		return
	}
	for _, o := range a.Others {
		if !yield(o) {
			return
		}
	}
}

// failure returns the error of a call with that context.
func (a *Acquisition) failure(ctx context.Context, err error) error {
	causes := script.Explain(a.Lock.Client.Inspector.WrongKind(ctx, a.Lock.Names, a.Lock.Spec.Stored, err))
	if a.Lock.Spec.Kind == keyspace.KindElection && errors.Is(err, fault.ErrNotAcquired) {
		causes[0] = fault.Candidate(causes[0])
	}
	return fault.Op(a.verb, a.Lock.Name(), append(causes, adviceFor(ctx, a.Lock, err))...)
}

// Permits returns how many permits the call requests.
func (a *Acquisition) Permits() int { return 1 + len(a.Others) }

// Start makes the ownership with a fresh owner, at the first attempt.
func (a *Acquisition) Start() {
	if a.Since == (lease.Stamp{}) {
		a.Since = a.Began
		if a.WasInLine {
			a.Since = a.Lock.Client.Clock()
		}
	}
	switch fresh := a.Lock.Spec.Fresh; {
	case a.Ownership != nil:
	case fresh != nil:
		a.Ownership, a.Others = fresh(a)
	default:
		a.Ownership = ownership.Fresh(&a.Lock.Lock)
	}
}

// hasTime reports whether there is time to retry after trouble with the server.
func (a *Acquisition) hasTime() bool {
	c := a.Lock.Client
	return a.Waits || c.Clock().Since(a.Began)+retry.LongPause < c.Sender.Patience
}

// answered records the answer to an attempt, which may leave it in doubt whether it was executed.
func (a *Acquisition) answered(ans transport.Answer) {
	for o := range a.each {
		o.AcquisitionAnswered(ans)
	}
}

// Conclude returns the hold of an ownership that has begun. If the ownership has not begun,
// Conclude ends it, and undoes it if it may have begun on the server.
func (a *Acquisition) Conclude(err error) (*ownership.Hold, error) {
	switch {
	case a.passed != nil:
		a.passed.MadeFor(a.Parent)
		return a.passed, nil
	case err == nil:
		return &a.Ownership.First, nil
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

// markUnwanted marks the server's grant for undo.
func (a *Acquisition) markUnwanted() {
	for o := range a.each {
		o.MarkUnwanted()
	}
}

// undoAtOnce undoes a grant that is not wanted, and reports whether the server confirmed that.
// Nothing else knows the ownerships yet.
func (a *Acquisition) undoAtOnce() bool {
	for o := range a.each {
		if !o.Client.Undo.Now(o.UndoLocked) {
			return false
		}
		o.Observe(report.Undone, nil, nil)
	}
	return true
}

// abandon ends the ownerships, none of which has begun, and has the client undo those that may
// have begun on the server. It reports whether there are any.
func (a *Acquisition) abandon() (begun bool) {
	for o := range a.each {
		begun = o.Abandon(a.Lease) || begun
	}
	return begun
}
