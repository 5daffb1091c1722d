package semaphore

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/inbox"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
	"github.com/latchkey-go/latchkey/internal/transport"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// lua/semaphore/serve.lua describes how Redis stores those that wait for the permits of a
// Semaphore.

// A Place is one operation that acquires permits. While it waits, it has a place in the queue on
// the server.
type Place struct {
	*Semaphore

	Op      *undo.Operation
	Count   int
	Waits   bool
	Ticket  string // since when it waits, as the server says; or ""
	refusal error  // the answer to its last request, or nil
	// left is the time from then on until permits that are kept for others are free, or until it is
	// to poll. It is negative if that is unknown.
	left    time.Duration
	rests   time.Time   // until when it relies on messages; zero before it rests
	Doubt   bool        // it may have been executed, or may still be
	since   lease.Stamp // when that was first so
	Queued  bool        // it may be in the queue
	refused int         // how often it was refused
	Aside   bool        // it wants more permits than there are in all, and is not in the queue
	Wake    func()      // makes the front ask
	slot    inbox.Slot  // in which it is called
}

// NewPlace makes a place, with the ticket of an earlier one or "".
func (s *Semaphore) NewPlace(count int, waits bool, ticket string, wake func()) *Place {
	p := &Place{
		Semaphore: s, Op: s.Client.Sessions.Begin(s.Names.Key),
		Count: count, Waits: waits, Ticket: ticket, Wake: wake,
	}
	if waits {
		p.slot = inbox.NewSlot(s.Names.Key, p.queueName(), p)
	}
	return p
}

// queueName is its name in the queue.
func (p *Place) queueName() string { return p.Client.ID + ":" + p.Op.Number }

// Entry is the entry of the place in the queue: its name, and how many permits it wants.
func (p *Place) Entry() string { return p.queueName() + " " + strconv.Itoa(p.Count) }

// Signal implements [inbox.Recipient], as do the following methods: whatever it hears, the front
// asks.
func (p *Place) Signal() { p.Wake() }

// Query implements [inbox.Recipient].
func (p *Place) Query() { p.Wake() }

// Reconnected implements [inbox.Recipient].
func (p *Place) Reconnected() { p.Wake() }

// Granted implements [inbox.Recipient]. A place is called, and gets no grants.
func (p *Place) Granted(int64, string) bool { return false }

// Ask asks the server for the permits. A waiter that is refused has its place in the queue from
// then on, and listens for its call.
func (p *Place) Ask(ctx context.Context) error {
	p.Op.Began, p.refusal, p.left, p.rests = p.Client.Clock(), nil, -1, time.Time{}
	if p.Waits {
		p.Client.Inbox.ExpectIfKnown(&p.slot)
	}
	c := p.call()
	terms := transport.Terms{Patience: p.Client.Sender.Patience, Waits: p.Waits}
	a, err := p.Client.Sender.CallOn(ctx, p.Client.Closing, terms, c)
	if err == nil && p.Client.Replication != nil && script.Granted(a) {
		a, err = p.Client.Confirm(ctx, a, c)
	}
	if !p.Doubt && (a.Doubt || outcome.StoppedHalfWay(err)) {
		p.Doubt, p.since = true, p.Op.Began
	}
	switch {
	case err != nil:
		return err
	case a.Message.IsArray():
		p.refusal = p.readRefusal(a)
		return p.refusal
	case async.IsClosed(p.Client.Closing):
		p.Doubt = true // it has to be given back
		return fault.ErrClosed
	}
	return nil
}

// call is the request as a command.
func (p *Place) call() script.Call {
	bar, poll := "", ""
	if p.Waits {
		bar, poll = p.Client.StaleMS, p.Client.Inbox.PollText(p.Names.Key, p.refused)
	}
	return p.served(script.SemAcquire, p.Op, p.Entry(), bar, p.Ticket, poll)
}

// readRefusal reads why there are no permits, and the place in the queue.
func (p *Place) readRefusal(a transport.Answer) error {
	left, place, err := readPermitRefusal(a, p.Count)
	p.left = left
	p.refused++
	if !p.Waits || place == nil {
		return err
	}
	if place[0] > 0 {
		p.Ticket = strconv.FormatInt(place[0], 10)
	}
	if len(place) == 3 && (p.left < 0 || script.FromMillis(place[2]) < p.left) { // it polls
		p.left = script.FromMillis(place[2])
	}
	p.Client.Inbox.Listen(&p.slot)
	p.Aside = place[1] == Aside
	p.Queued = p.Queued || !p.Aside
	return err
}

// restFor returns for how long to rely on messages, d from the first rest after a request. The
// place may have a new front by then.
func (p *Place) restFor(d time.Duration) time.Duration {
	if p.rests.IsZero() {
		p.rests = time.Now().Add(d)
	}
	return time.Until(p.rests)
}

// isUsedUp reports whether the server may soon forget whether it has executed the operation.
func (p *Place) isUsedUp() bool { return p.Doubt && p.Client.Clock().Since(p.since) > undo.Memory/2 }

// conclude ends the operation after its last answer, and returns the error of the acquisition.
func (p *Place) conclude(err error) error {
	switch {
	case err == nil:
		p.Ends()
		return nil
	case script.IsToBeUndone(err):
		p.Client.Inbox.Forget(&p.slot)
		if p.undoNow() {
			return err
		}
	}
	p.settle()
	if p.Doubt {
		return errors.Join(err, fault.ErrUnknownOutcome)
	}
	return err
}

// Ends ends an operation that has its permits, or that the server has refused.
func (p *Place) Ends() {
	p.Client.Inbox.Forget(&p.slot)
	p.Op.Done()
}

// settle ends an operation that has no permits. If it may have left something behind, the
// background gives it up.
func (p *Place) settle() {
	if !p.Queued && !p.Doubt {
		p.Ends()
		return
	}
	p.Client.Inbox.Forget(&p.slot)
	p.Op.FollowUp = p.UndoCall(p.Op, p.Entry())
	p.Op.SettleLater()
}

// undoNow gives up an acquisition, and reports whether the server has answered.
func (p *Place) undoNow() bool {
	p.Doubt = true
	p.Op.FollowUp = p.UndoCall(p.Op, p.Entry())
	return p.Op.SettleNow()
}

// leaveQueueFor answers a call for an operation that nobody waits for: its entry was left behind.
func leaveQueueFor(c *core.Parts, key, entry string) {
	names := keyspace.OfKey(key, key)
	names.Channel = Channel(key)
	s := New(c, "")
	s.Names, s.SecondKey = names, keyspace.TotalKey(keyspace.Tag(key))
	c.Sender.Background(func() {
		c.Undo.Add(strayEntry{&s, entry}, undo.Plan{Key: key, Lease: c.Config.StaleWaiterTimeout})
	})
}

// strayEntry is an entry in the queue without an operation.
type strayEntry struct {
	*Semaphore

	entry string
}

// Undo implements [undo.Undoable].
func (e strayEntry) Undo(ctx context.Context, stop <-chan struct{}) outcome.Outcome {
	c := e.UndoCall(nil, e.entry)
	_, err := e.Client.Sender.Call(ctx, stop, c)
	return outcome.Classify(err)
}
