package ownership

import (
	"context"
	"sync"

	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// This file makes the server count as many holds of an ownership as the client does.

// releaseAnswer is the answer to a release, with the count of holds that was sent: the ownership's
// count may be lower by then, and its last release may have begun.
type releaseAnswer struct {
	transport.Answer

	count int
}

// sendCount makes the server's count equal to the client's. It is the release, and the undo of an
// acquisition whose outcome is unknown. It does no harm if it runs twice, late, or for an ownership
// that is over. SendMu is held.
func (o *Ownership) sendCount(ctx context.Context, stop <-chan struct{}) (releaseAnswer, error) {
	on := o.RequestBegins(0, false)
	o.mu.Lock()
	to := Release{Count: o.Holds.Count}
	if to.Count == 0 {
		to.Keep = o.KeptUntil.KeptFor(o.Client.Clock())
	}
	if o.Holds.Renews() {
		to.Raise = o.Lease.ReleaseLease()
	}
	o.mu.Unlock()
	var a transport.Answer
	var err error
	args := releaseBuffers.Get().(*[16]string)
	if c := o.ReleaseCall(to, args[:0]); c.Keys != nil {
		a, err = o.Client.Sender.CallOn(ctx, stop, on, c)
		if err == nil && !a.Doubt { // nothing sends it again
			clear(args[:])
			releaseBuffers.Put(args)
		}
		if to.Keep > 0 {
			o.Client.Record.KeepUntil(a.Sent.Mono + to.Keep)
		}
	}
	if outcome.HasCode(err, "WRONGTYPE") {
		a.Null, err = true, nil // somebody replaced the lock by something else
	}
	if err == nil {
		o.counted(to, a)
	}
	return releaseAnswer{a, to.Count}, err
}

// releaseBuffers has buffers for the arguments of releases, of which there are 16 at most.
var releaseBuffers = sync.Pool{New: func() any { return new([16]string) }}

// counted records that the server has the count of a release.
func (o *Ownership) counted(to Release, a transport.Answer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.Doubt.Acquisition() {
		o.Holds.Most = int32(to.Count) //nolint:gosec // there are fewer holds
	}
	if to.Count == 0 || a.Null || !o.Phase.begun() {
		return
	}
	if to.Raise > 0 && o.Client.Replication == nil { // else no replica confirms it
		o.Lease.Extend(a.Sent, to.Raise)
	}
	o.plan()
}

// ReleaseCall returns the release that leaves to.Count holds. The arguments are appended to args.
func (o *Ownership) ReleaseCall(to Release, args []string) script.Call {
	o.mu.Lock()
	to.Begun, to.Most = o.Lease.Granted > 0, int(o.Holds.Most)
	to.MayBeAcquired = o.Doubt.Acquisition()
	to.MayWait = to.MayBeAcquired || o.Entry.MayWait()
	to.Entry = o.Entry.Left(to.MayBeAcquired)
	if next := o.Turn.Next; next != nil && to.Count == 0 {
		to.Next, to.NextLease = next.Entry.Wanted()
	}
	to.Open = o.Turn.Open()
	o.mu.Unlock()
	return o.Protocol.ReleaseCall(o, to, args)
}

// lastReleaseBegins is called when no hold is counted any more: the ownership is neither renewed
// nor re-entered from then on. o.mu is held.
func (o *Ownership) lastReleaseBegins() {
	o.Phase = Releasing
	o.Doubt.ValidAtRelease = o.Lease.Valid(o.Client.Clock()) > 0
	if o.Spec.ignoresOwnRelease() {
		o.Links.IgnoreOwnRelease()
	}
}

// Count returns how many holds there are.
func (o *Ownership) Count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Holds.Count
}
