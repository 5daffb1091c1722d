package ownership

import (
	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/report"
	"github.com/latchkey-go/latchkey/internal/engine/turns"
)

// A lock that several goroutines of a client want is passed among them in memory: the release of
// one hold makes the next in line the holder, under the same owner, and nothing is sent. For the
// server, the first of them holds the lock until the last one releases it. This is lock cohorting
// (Dice, Marathe, Shavit: Lock Cohorting, PPoPP 2012). Fenced locks are not passed on: each of
// their holds takes its token from the server.
//
// It lasts for one turn (Tuning.Turn), which bounds how long other clients wait. The next release
// after that goes to the server.

// localTurn is the turn in which this client has the lock, and what follows. Ownership.mu guards
// it.
type localTurn struct {
	turns.Turn

	Next *Ownership // with which this client wants the lock after the turn, or nil
}

// passOn passes the ownership to the next goroutine in line, if possible, and reports whether it
// did. If so, the hold is over.
func (s *Hold) passOn() bool {
	w, next := s.succeed()
	if w != nil {
		w.Pass(next)
	}
	return w != nil
}

// succeed ends the hold, and returns the next one with its waiter, or nil if the ownership may not
// be passed on or nobody takes it. It leaves SendMu free, because the next holder may release at
// once.
func (s *Hold) succeed() (*line.Waiter, *Hold) {
	o := s.Ownership
	if !o.SendMu.TryLock() {
		return nil, nil
	}
	defer o.SendMu.Unlock()
	now := o.Client.Clock()
	var w *line.Waiter
	o.mu.Lock()
	if s.mayPass(now) {
		w = o.Links.TakeFirst()
	}
	if w == nil {
		o.mu.Unlock()
		return nil, nil
	}
	next := &Hold{Ownership: o, Item: hold.Item{Renew: s.Renew, Acquired: now}}
	o.Turn.Pass()
	ending := o.Holds.Replace(&s.Item, &next.Item)
	o.mu.Unlock()
	ending.End(fault.ErrNotHeld)
	o.Observe(report.Released, &s.Item, nil)
	return w, next
}

// mayPass reports whether the ownership may be passed on to the next in line. o.mu is held.
func (s *Hold) mayPass(now lease.Stamp) bool {
	o := s.Ownership
	return o.Spec.passesInside() && o.mayHaveOthers(now) && o.Turn.MayPass() && o.KeptUntil == nil &&
		o.Holds.IsOnly(&s.Item) && s.Limit == nil
}

// mayHaveOthers reports whether the turn lasts and the ownership is clean, so that another holder
// cannot tell that it was not the first. o.mu is held.
func (o *Ownership) mayHaveOthers(now lease.Stamp) bool {
	return o.Phase == Held && o.Turn.Lasts(now.Mono) && o.Sibling == nil && !o.Doubt.MayChange() &&
		o.Holds.Outermost().Active()
}

// Share implements [hold.Backend]. The program may re-enter the hold with the owner from now on, so
// the hold is no longer passed on. If the hold was passed on already, the owner belongs to another
// hold, and the program gets an owner that nobody has.
func (s *Hold) Share() identity.Owner {
	o := s.Ownership
	o.mu.Lock()
	defer o.mu.Unlock()
	root := s.Outermost()
	if c := o.Client; !root.Shown && !o.Holds.Current(&s.Item) {
		return root.FormerOwner(func() identity.Owner { return identity.New(c.ID, c.Number()) })
	}
	root.Shown, o.Turn.Shown = true, true
	return o.Owner()
}

// MayBeEntered reports whether an acquisition with the owner can wait for the ownership, or enter
// it. The program may have the owner from an earlier hold.
func (o *Ownership) MayBeEntered() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Phase <= Held && o.Holds.MayBeEntered(nil, o.Turn.Passed)
}

// Suits reports whether the ownership has the settings that a request wants. o.mu is held.
func (o *Ownership) Suits(r *request.Request) bool {
	return r.Renew == o.Holds.Outermost().Renew && r.MaxHold == 0 && r.AtLeast == 0 && r.RenewLease == o.Lease.Full &&
		o.Lease.Fits(o.Client.Clock(), r.Lease, r.Renew)
}

// Of implements [line.Hold].
func (s *Hold) Of() line.Held { return s.Ownership }
