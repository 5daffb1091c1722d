package latchkey

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/inbox"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// lua/semaphore/serve.lua describes how Redis stores those that wait for the permits of a Semaphore.

// A semPlace is one operation that acquires permits. While it waits, it has a place in the queue on the server.
type semPlace struct {
	*semaphore

	op      *undo.Operation
	count   int
	waits   bool
	ticket  string        // since when it waits, as the server says; or ""
	refusal error         // the answer to its last request, or nil
	left    time.Duration // from then on, until permits that are kept for others are free, or it is to poll; negative if unknown
	rests   time.Time     // until when it relies on messages; zero before it rests
	doubt   bool          // it may have been executed, or may still be
	since   lease.Stamp   // when that was first so
	queued  bool          // it may be in the queue
	refused int           // how often it was refused
	aside   bool          // it wants more permits than there are in all, and is not in the queue
	wake    func()        // makes the front ask
	slot    inbox.Slot    // in which it is called
}

// newPlace makes a place, with the ticket of an earlier one or "".
func (s *semaphore) newPlace(count int, waits bool, ticket string, wake func()) *semPlace {
	p := &semPlace{semaphore: s, op: s.Client.Sessions.Begin(s.Names.Key), count: count, waits: waits, ticket: ticket, wake: wake}
	if waits {
		p.slot = inbox.NewSlot(s.Names.Key, p.queueName(), p)
	}
	return p
}

// queueName is its name in the queue, and entry its entry.
func (p *semPlace) queueName() string { return p.Client.ID + ":" + p.op.Number }
func (p *semPlace) entry() string     { return p.queueName() + " " + strconv.Itoa(p.count) }

// Signal implements [inbox.Recipient], as do the following methods: whatever it hears, the front asks.
func (p *semPlace) Signal() { p.wake() }

// Query implements [inbox.Recipient].
func (p *semPlace) Query() { p.wake() }

// Reconnected implements [inbox.Recipient].
func (p *semPlace) Reconnected() { p.wake() }

// Granted implements [inbox.Recipient]. A place is called, and gets no grants.
func (p *semPlace) Granted(int64, string) bool { return false }

// ask asks the server for the permits. A waiter that is refused has its place in the queue from then on, and listens
// for its call.
func (p *semPlace) ask(ctx context.Context) error {
	p.op.Began, p.refusal, p.left, p.rests = p.Client.Clock(), nil, -1, time.Time{}
	if p.waits {
		p.Client.Inbox.ExpectIfKnown(&p.slot)
	}
	c := p.call()
	terms := transport.Terms{Patience: p.Client.Sender.Patience, Waits: p.waits}
	a, err := p.Client.Sender.CallOn(ctx, p.Client.Closing, terms, c.Cmd, c.Keys, c.Args)
	if err == nil && p.Client.Replication != nil && script.Granted(a) {
		a, err = p.Client.Confirm(ctx, a, c)
	}
	if !p.doubt && (a.Doubt || transport.StoppedHalfWay(err)) {
		p.doubt, p.since = true, p.op.Began
	}
	switch {
	case err != nil:
		return err
	case a.Message.IsArray():
		p.refusal = p.readRefusal(a)
		return p.refusal
	case async.IsClosed(p.Client.Closing):
		p.doubt = true // it has to be given back
		return fault.ErrClosed
	}
	return nil
}

// call is the request as a command.
func (p *semPlace) call() script.Call {
	bar, poll := "", ""
	if p.waits {
		bar, poll = p.Client.StaleMS, p.Client.Inbox.PollText(p.Names.Key, p.refused)
	}
	return p.served(script.SemAcquire, p.op, p.entry(), bar, p.ticket, poll)
}

// readRefusal reads why there are no permits, and the place in the queue.
func (p *semPlace) readRefusal(a transport.Answer) error {
	left, place, err := readPermitRefusal(a, p.count)
	p.left = left
	p.refused++
	if !p.waits || place == nil {
		return err
	}
	if place[0] > 0 {
		p.ticket = strconv.FormatInt(place[0], 10)
	}
	if len(place) == 3 && (p.left < 0 || script.FromMillis(place[2]) < p.left) { // it polls
		p.left = script.FromMillis(place[2])
	}
	p.Client.Inbox.Listen(&p.slot)
	p.aside = place[1] == permitsAside
	p.queued = p.queued || !p.aside
	return err
}

// restFor returns for how long to rely on messages, d from the first rest after a request. The place may have a new front
// by then.
func (p *semPlace) restFor(d time.Duration) time.Duration {
	if p.rests.IsZero() {
		p.rests = time.Now().Add(d)
	}
	return time.Until(p.rests)
}

// isUsedUp reports whether the server may soon forget whether it has executed the operation.
func (p *semPlace) isUsedUp() bool { return p.doubt && p.Client.Clock().Since(p.since) > undo.Memory/2 }

// conclude ends the operation after its last answer, and returns the error of the acquisition.
func (p *semPlace) conclude(err error) error {
	switch {
	case err == nil:
		p.ends()
		return nil
	case script.IsToBeUndone(err):
		p.Client.Inbox.Forget(&p.slot)
		if p.undoNow() {
			return err
		}
	}
	p.settle()
	if p.doubt {
		return errors.Join(err, fault.ErrUnknownOutcome)
	}
	return err
}

// ends ends an operation that has its permits, or that the server has refused.
func (p *semPlace) ends() {
	p.Client.Inbox.Forget(&p.slot)
	p.op.Done()
}

// settle ends an operation that has no permits. If it may have left something behind, the background gives it up.
func (p *semPlace) settle() {
	if !p.queued && !p.doubt {
		p.ends()
		return
	}
	p.Client.Inbox.Forget(&p.slot)
	p.op.FollowUp = p.undoCall(p.op, p.entry())
	p.op.SettleLater()
}

// undoNow gives up an acquisition, and reports whether the server has answered.
func (p *semPlace) undoNow() bool {
	p.doubt = true
	p.op.FollowUp = p.undoCall(p.op, p.entry())
	return p.op.SettleNow()
}

// leaveQueueFor answers a call for an operation that nobody waits for: its entry was left behind.
func leaveQueueFor(c *ownership.Engine, key, entry string) {
	names := keyspace.OfKey(key, key)
	names.Channel = semaphoreChannel(key)
	s := newSemaphore(c, "")
	s.Names, s.secondKey = names, keyspace.TotalKey(keyspace.Tag(key))
	c.Sender.Background(func() {
		c.Undo.Add(strayEntry{&s, entry}, undo.Plan{Key: key, Lease: c.Config.StaleWaiterTimeout})
	})
}

// strayEntry is an entry in the queue without an operation.
type strayEntry struct {
	*semaphore

	entry string
}

// Undo implements [undo.Undoable].
func (e strayEntry) Undo(ctx context.Context, stop <-chan struct{}) transport.Outcome {
	c := e.undoCall(nil, e.entry)
	_, err := e.Client.Sender.Call(ctx, stop, c.Cmd, c.Keys, c.Args)
	return transport.Classify(err)
}
