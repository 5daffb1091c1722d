// Package ownership has what a client knows of a lock that one of its owners has: from the first
// acquisition to the last release, with all holds.
package ownership

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/queue"
	"github.com/latchkey-go/latchkey/internal/engine/renewal"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
	"github.com/latchkey-go/latchkey/internal/transport"
	"github.com/latchkey-go/latchkey/internal/transport/retry"
)

// Ownership is the time in which one owner has one lock, from the outermost acquisition to the last
// release, including all re-entries. Holds are handles on it.
//
// Every request for an ownership is sent under its SendMu: acquire, re-enter, renew, release, undo.
type Ownership struct {
	renewal.Item // the watchdog's

	*Lock

	Wire     string           // the owner as it is in Redis
	Number   uint64           // of this ownership in this client
	Protocol Protocol         // the lock's, or one that knows more of this ownership; set when it is made
	Forget   func(*Ownership) // is called when it is over; set when it is made

	SendMu  async.FIFOMutex           // locked while a command for it is sent
	RedLine atomic.Pointer[line.FIFO] // the line for the RedLock of which it is a member, or nil
	Links   line.Links                // to those that want the lock

	IsGuest bool // another client made the owner; set when it is made

	mu    sync.Mutex // guards the fields below
	Phase Phase
	Lease lease.Term
	Doubt undo.Doubt
	First Hold // that it began with, if it was not passed to anybody
	Holds hold.Set
	Turn  localTurn
	Entry *queue.Entry // in the queue on the server, or nil

	KeptUntil *lease.Bound // until when the lock stays taken, or nil; set when it begins: see Release.Keep
	// Sibling is the ownership of the same owner on the other side of the lock, if one of the two
	// was made while the other existed, or nil. An ownership that reads has it from the start.
	Sibling *Ownership
}

// New makes an ownership for an owner as it is in Redis. number is its number in this client.
func New(p *Lock, owner identity.Owner, number uint64) *Ownership {
	o := &Ownership{Lock: p, Number: number, Wire: owner.String(), Protocol: p.Spec.Protocol, Item: renewal.NewItem()}
	o.First.Ownership, o.Holds, o.Forget = o, hold.NewSet(&o.First.Item), func(*Ownership) {}
	o.Turn.Shown, o.Links = p.Spec.Public, line.LinksOf(o)
	return o
}

// Fresh makes an ownership for a new owner.
func Fresh(p *Lock) *Ownership {
	number := p.Client.Number()
	return New(p, identity.New(p.Client.ID, number), number)
}

// GuestID returns the name of this client's part if another client made the owner, else "".
func (o *Ownership) GuestID() string {
	if !o.IsGuest {
		return ""
	}
	return identity.New(o.Client.ID, o.Number).String()
}

// Owner returns the owner of the ownership.
func (o *Ownership) Owner() identity.Owner { return identity.Of(o.Wire) }

// Begin makes an ownership live that the server has granted, with that lease. The program sees
// acquired as its beginning. token is the number of the grant, or 0.
func (o *Ownership) Begin(r *request.Request, term lease.Term, acquired, now lease.Stamp, token int64) {
	passes := o.Links.HoldBegins()
	o.Client.Record.Use(now.Mono, r.Lease)
	o.Entry.HoldBegins()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Phase, o.Lease = Held, term
	switch {
	case o.Spec.Fenced:
		o.First.Fencing = token
	case o.Spec.Permit && token > 0: // it is not a token, but the ms after which the semaphore ends
		o.Lease.EndIn(term.Sent, script.FromMillis(token))
	}
	o.KeptUntil = lease.NewBound(r.AtLeast, now)
	o.First.Renew, o.First.Acquired, o.First.Parent = r.Renew, acquired, r.Parent
	o.Holds.Begin()
	switch {
	case o.Spec.Passes:
		o.Turn.Begin(now.Mono, o.Client.Config.Turn, passes)
	case o.Spec.Along && !r.UntilComplete: // which will be confined and stay alone
		o.Turn.Begin(now.Mono, o.Client.Config.Turn, 0)
		o.Links.OpenLine()
	}
	o.plan()
}

// Enter counts a re-entry that is about to be requested, so that a release that begins before the
// answer is not the last. It fits the request to the limits of the outermost hold, and returns the
// count with the new hold, or 0 if there is nothing to re-enter. AddHold or DropEntry follows. The
// caller has locked SendMu, and keeps it until then.
func (o *Ownership) Enter(r *request.Request, under *hold.Item) (count int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.Phase != Held || !o.Holds.MayBeEntered(under, o.Turn.Passed) {
		return 0
	}
	o.Holds.Reserve()
	if r.Renew {
		r.Lease = min(r.Lease, r.RenewLease) // the lease of AtLeast belongs to the outermost hold
	}
	if r.OfClient > 0 && o.Lease.Limit != nil {
		r.MaxHold = 0 // the outermost hold has that limit, or one of its own
	}
	r.Lease = min(r.Lease, max(o.Lease.Limit.Left(o.Client.Clock()), lease.Shortest))
	return o.Holds.Count
}

// DropEntry ends Enter: there is no re-entry. If nothing else is left, the last release is under
// way.
func (o *Ownership) DropEntry() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.Phase == Held && o.Holds.Unreserve() {
		o.lastReleaseBegins()
		o.Links.ReleaseFails(nil) // its Unlock may have given up by now
	}
}

// AddHold makes a re-entry, for which Enter was called, after the server has confirmed it. If the
// ownership was lost meanwhile, or the hold that the caller re-enters is over, it returns the
// cause. The lease counts nevertheless: a release that waits for this answer needs it for its own
// answer.
func (o *Ownership) AddHold(r *request.Request, under *hold.Item, a transport.Answer) (s *Hold, cause error) {
	o.Client.Record.Use(a.Sent.Mono, r.Lease)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.Phase.begun() {
		o.Lease.Extend(a.Sent, r.Lease)
		defer o.plan()
	}
	outer := o.Holds.OutermostFor(under)
	if o.Phase != Held || outer == nil {
		return nil, cmp.Or(o.Holds.Cause, fault.ErrNotHeld)
	}
	s = &Hold{Ownership: o, Item: hold.Item{
		Fencing: outer.Fencing, Renew: r.Renew,
		Within: outer, Limit: lease.NewBound(r.MaxHold, a.Sent), Parent: r.Parent,
	}}
	o.Holds.Add(&s.Item)
	return s, nil
}

// AcquisitionAnswered records whether the answer to an acquisition leaves it in doubt that the
// ownership, which may be nil, is acquired.
func (o *Ownership) AcquisitionAnswered(a transport.Answer) {
	if o == nil || !a.Doubt {
		return
	}
	o.mu.Lock()
	o.Doubt.AcquisitionInDoubt(a.DoubtAt, a.DoubtGeneration)
	o.mu.Unlock()
}

// MarkUnwanted marks what the server has granted for undo.
func (o *Ownership) MarkUnwanted() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Doubt.Unwanted = true
}

// IsNested reports whether the ownership reads for an owner that writes, or did.
func (o *Ownership) IsNested() bool { return o.Spec.Side == keyspace.KindRead && o.Sibling != nil }

// CurrentPhase returns the phase, for callers that do not hold o.mu.
func (o *Ownership) CurrentPhase() Phase {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Phase
}

// Live reports whether the ownership can be entered again.
func (o *Ownership) Live() bool { return o.CurrentPhase() == Held }

// IsReleased reports whether its last release has begun, before it was lost.
func (o *Ownership) IsReleased() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Phase >= Releasing && o.Holds.Cause == nil
}

// Left returns for how long the holds can be relied on without a reply from the server.
func (o *Ownership) Left() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Lease.Valid(o.Client.Clock())
}

// RequestBegins is called before the server is asked to count so many holds, or 0 to count no more
// than before. It returns the bounds of the request. The call has SendMu of the ownership, and the
// next renewal waits for it. So while the ownership is held, the bound is at most a part of the
// lease. waits says that the caller keeps waiting after the bounds.
func (o *Ownership) RequestBegins(count int, waits bool) transport.Terms {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Holds.Most = max(o.Holds.Most, int32(count)) //nolint:gosec // there are fewer holds
	on := transport.Terms{Patience: o.Client.Sender.Patience, Waits: waits}
	if o.Phase == Held {
		on.Patience = min(on.Patience, max(o.Lease.Patience(), retry.FirstPause))
	}
	return on
}

// EndUnheld ends an ownership that has not begun, unless the server may know it as a holder.
func (o *Ownership) EndUnheld() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.Phase != Acquiring || o.Doubt.MayBeHeld() {
		return false
	}
	o.Phase = Over
	return true
}

// Abandon ends an ownership that has not begun, and undoes what the server may have granted, with
// that lease. It reports whether the server may have granted anything.
func (o *Ownership) Abandon(lease time.Duration) (begun bool) {
	granted, queued := o.Entry.GiveUp()
	o.mu.Lock()
	o.Phase, o.Doubt.Unwanted = Over, o.Doubt.Unwanted || granted
	begun = o.Doubt.MayBeHeld()
	o.mu.Unlock()
	o.Forget(o)
	switch {
	case begun:
		o.UndoLater(0, lease)
	case queued:
		o.UndoLater(0, o.Client.Config.StaleWaiterTimeout)
	}
	return begun
}

// ForgetUnused ends an ownership for which nothing was sent, unless another goroutine is about to
// use it. A call that finds it over resolves its owner again.
func (o *Ownership) ForgetUnused() {
	if !o.SendMu.TryLock() {
		return
	}
	defer o.SendMu.Unlock()
	if o.EndUnheld() {
		o.Forget(o)
	}
}
