package latchkey

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/report"
)

// A lock that several goroutines of a client want is passed among them in memory: the release of one hold makes
// the next in line the holder, under the same owner, and nothing is sent. For the server, the first of them
// holds the lock until the last one releases it. This is lock cohorting (Dice, Marathe, Shavit: Lock Cohorting,
// PPoPP 2012). Fenced locks are not passed on: each of their holds takes its token from the server.
//
// It lasts for one turn ([Options.Turn]), which bounds how long other clients wait. The next release after that
// goes to the server.

// localTurn is the time in which an ownership may be passed on. ownership.mu guards it.
type localTurn struct {
	began  time.Duration // when the server granted it, on the monotonic clock
	ends   time.Duration // on the same clock
	next   *ownership    // with which this client wants the lock after the turn, or nil
	passes int32         // how often it may still be passed on while strangers compete
	openMS int16         // how long its release leaves a mutex to other libraries, or 0
	shown  bool          // the program knows the owner, and may re-enter the hold with it
	passed bool          // the turn had other holds than its first
}

// beginTurn begins the turn of an ownership that the server has just granted. passes is how often it may be
// passed on while strangers compete. o.mu is held.
func (o *ownership) beginTurn(r *request.Request, token int64, passes int, now lease.Stamp) {
	if o.lock.spec.fenced {
		o.holds.first.fencing = token
	}
	switch {
	case o.lock.spec.passes:
		o.local.began = now.Mono
		o.local.ends = o.local.began + o.lock.client.Config.Turn
		o.local.passes = int32(passes) //nolint:gosec // there are fewer goroutines
	case o.lock.spec.along && !r.UntilComplete: // which will be confined and stay alone
		o.local.ends = now.Mono + o.lock.client.Config.Turn
		o.links.OpenLine()
	}
}

// passOn passes the ownership to the next goroutine in line, if possible, and reports whether it did. If so,
// the hold is over.
func (s *holdState) passOn() bool {
	w, next := s.succeed()
	if w == nil {
		return false
	}
	w.Pass(next)
	return true
}

// succeed ends the hold, and returns the next one with its waiter, or nil if the ownership may not be
// passed on or nobody takes it. It leaves sendMu free, because the next holder may release at once.
func (s *holdState) succeed() (*line.Waiter, *holdState) {
	o := s.ownership
	if !o.sendMu.TryLock() {
		return nil, nil
	}
	defer o.sendMu.Unlock()
	now := o.lock.client.Clock()
	o.mu.Lock()
	if !s.mayPass(now) {
		o.mu.Unlock()
		return nil, nil
	}
	w := o.links.TakeFirst()
	if w == nil {
		o.mu.Unlock()
		return nil, nil
	}
	next := s.next(now)
	ending := o.holds.replace(s, next)
	o.mu.Unlock()
	ending.End(fault.ErrNotHeld)
	o.observe(report.Released, s, nil)
	return w, next
}

// next returns the hold that follows. ownership.mu is held.
func (s *holdState) next(now lease.Stamp) *holdState {
	o := s.ownership
	next := &holdState{ownership: o, renew: s.renew, acquired: now}
	o.local.passed = true
	o.local.passes--
	return next
}

// mayPass reports whether the ownership may be passed on to the next in line. ownership.mu is held.
func (s *holdState) mayPass(now lease.Stamp) bool {
	o := s.ownership
	return o.lock.spec.passesInside() && o.mayHaveOthers(now) && o.local.passes > 0 && o.keptUntil == nil &&
		o.holds.isOnly(s) && s.limit == nil
}

// mayHaveOthers reports whether the turn lasts and the ownership is clean, so that another holder cannot tell
// that it was not the first. o.mu is held.
func (o *ownership) mayHaveOthers(now lease.Stamp) bool {
	return o.phase == held && now.Mono < o.local.ends &&
		!o.local.shown && o.sibling == nil && !o.doubt.MayChange()
}

// shownOwner returns the owner of a hold for the program. The program may re-enter the hold with it from now
// on, so the hold is no longer passed on. If the hold was passed on already, the owner belongs to another hold,
// and the program gets an owner that nobody has.
func (s *holdState) shownOwner() identity.Owner {
	o := s.ownership
	o.mu.Lock()
	defer o.mu.Unlock()
	root := s.outermost()
	if !root.shown && !o.holds.current(s) {
		return root.formerOwner(o.lock.client)
	}
	root.shown, o.local.shown = true, true
	return o.owner()
}

// mayBeEntered reports whether the ownership may be re-entered under a hold of it, or, if under is nil, with
// its owner. The hold may have ended since. The program may have the owner from an earlier hold.
func (o *ownership) mayBeEntered(under *holdState) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if under != nil {
		return under.Active()
	}
	return !o.local.passed || o.holds.isKnown()
}

// suits reports whether the ownership has the settings that a request wants. o.mu is held.
func (o *ownership) suits(r *request.Request) bool {
	return r.Renew == o.holds.outermost().renew && r.MaxHold == 0 && r.AtLeast == 0 && r.RenewLease == o.lease.Full &&
		o.lease.Fits(o.lock.client.Clock(), r.Lease, r.Renew)
}

// Of implements [line.Hold].
func (s *holdState) Of() line.Held { return s.ownership }
