package ownership

import (
	"context"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/report"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
	"github.com/latchkey-go/latchkey/internal/transport"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// release releases the hold: to the next goroutine in line, or to the server. It uncounts the hold before
// it has sendMu, so that a wait for sendMu cannot keep the hold alive.
func (s *Hold) release(ctx context.Context) error {
	o := s.Ownership
	awaited := o.Links.FirstInLine() != nil
	if awaited && s.passOn() {
		return nil
	}
	if done, err := s.BeginRelease(); done || err != nil {
		return err
	}
	if !o.LockToRelease(ctx) {
		return o.ReleaseFailed(transport.Answer{}, outcome.Unavailable(outcome.ErrSilent))
	}
	defer o.sendMu.Unlock()
	if done, err := s.ReportRelease(); done {
		return err
	}
	if o.keptAfter(0) == 0 {
		if awaited {
			o.ChooseNext()
		}
		o.chooseTurn()
	}
	a, err := o.sendCount(o.Lock.Client.Sender.Detached(ctx), nil)
	switch {
	case err != nil:
		return o.ReleaseFailed(a.Answer, err)
	case o.goneAtRelease(a):
		return fault.Op("unlock", o.Lock.Name(), fault.ErrNotHeld, fault.ErrLost)
	}
	s.released(a)
	_, err = s.ReportRelease()
	return err
}

// releaseFails lets the first in line query the server, and go on with the next owner. If there is nobody, it returns
// that owner as left. o.mu is held: an ownership that is over is no longer counted.
func (o *Ownership) releaseFails() (left line.Place) {
	left, taken := o.Links.ReleaseFails(placeOf(o.Turn.Next))
	if taken {
		o.Turn.Next = nil
	}
	return left
}

// LockToRelease locks sendMu. It waits for it even if ctx ends, for as long as a release may take.
func (o *Ownership) LockToRelease(ctx context.Context) bool {
	if o.sendMu.TryLock() {
		return true
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.Lock.Client.Config.RetryBudget)
	defer cancel()
	return o.sendMu.Lock(ctx) == nil
}

// ReportRelease returns the result of Unlock if the hold is over by now. The result is nil for the first call
// that reports on a release, even if the release happened in the background after Unlock had failed.
func (s *Hold) ReportRelease() (done bool, err error) {
	o := s.Ownership
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case s.Cause() != nil, s.Reported():
		return true, fault.Op("unlock", o.Lock.Name(), fault.ErrNotHeld, s.Cause())
	case s.Released():
		s.MarkReported()
		return true, nil
	}
	return false, nil
}

// BeginRelease uncounts a hold before anything is sent, so that no renewal and no re-entry can follow. It may
// be called again after a failed release. If others read along, the hold leaves them and is over without a
// request: done is true.
func (s *Hold) BeginRelease() (done bool, err error) {
	o := s.Ownership
	if o.Lock.Spec.Along {
		_ = s.Err() // ends what should have ended already, without a request
	}
	o.mu.Lock()
	if s.Reported() || s.Cause() != nil {
		o.mu.Unlock()
		return false, fault.Op("unlock", o.Lock.Name(), fault.ErrNotHeld, s.Cause())
	}
	if !s.Active() {
		o.mu.Unlock()
		return false, nil
	}
	done, ending := o.Holds.Leave(&s.Item)
	if !done {
		o.uncount(&s.Item)
		ending = s.TakeDependents()
	}
	o.mu.Unlock()
	// Before anything is sent: the server may free the lock long before it answers.
	ending.End(fault.ErrNotHeld)
	if done {
		o.Observe(report.Released, &s.Item, nil)
	}
	return done, nil
}

// goneAtRelease ends the ownership, and reports that, if a release has found it gone and no earlier release of this
// client, whose answer was lost, explains that.
func (o *Ownership) goneAtRelease(a releaseAnswer) bool {
	o.mu.Lock()
	explained := a.count == 0 && o.Doubt.ExplainsLoss(a.Doubt)
	o.mu.Unlock()
	if !a.Null || explained {
		return false
	}
	o.Lose(fault.ErrLost, "the key was gone when the hold was released")
	return true
}

// ReleaseFailed leaves the rest to the background.
func (o *Ownership) ReleaseFailed(a transport.Answer, err error) error {
	o.mu.Lock()
	o.Doubt.Release = o.Doubt.Release || a.Doubt
	o.Turn.Next.AcquisitionAnswered(a) // the release may yet put it into the queue or give it the lock
	var left line.Place
	if o.Phase == Releasing {
		left = o.releaseFails()
	}
	o.plan()
	span := o.span()
	o.mu.Unlock()
	line.GiveUp(left)
	o.UndoLater(0, span)
	if outcome.Classify(err) == outcome.Refused {
		return fault.Op("unlock", o.Lock.Name(), err)
	}
	return fault.Op("unlock", o.Lock.Name(), fault.ErrUnknownOutcome, err)
}

// released ends a hold that the server has released, and after the last one the ownership.
func (s *Hold) released(a releaseAnswer) {
	o := s.Ownership
	if a.count == 0 {
		o.FinishRelease(a.Answer)
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Holds.Remove(&s.Item, nil) // what ends with it ended when its release began
}

// FinishRelease ends an ownership that the server has released.
func (o *Ownership) FinishRelease(a transport.Answer) {
	next, ended := o.End(nil)
	if !ended {
		return
	}
	if next != nil {
		next.Entry.ReleaseAnswered(a)
	}
	receivers, free := script.Receivers(a)
	if free && o.Lock.Spec.Passes {
		o.Links.ReceiversSeen(receivers)
	}
	o.leftFree(a)
	if receivers == -1 {
		o.Lock.Client.Reporter.Log(report.NoticePublish, o.Lock.Names.Channel)
	}
	o.Observe(report.Released, nil, nil) // before the next one can acquire
	if o.Lock.Spec.othersMayStay() && script.Stays(a) {
		o.Leave(next)
	} else {
		o.LeaveFree(next, receivers)
	}
	if late, span := o.mayComeLate(); late {
		o.UndoLater(undo.FirstPause, span) // this release was the first undo
	}
}

// mayComeLate reports whether an acquisition may still run after the release, and for how long the key may live
// then.
func (o *Ownership) mayComeLate() (late bool, span time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.Doubt.Acquisition() {
		return false, 0
	}
	span = o.span()
	return o.Doubt.MayComeLate(o.Lock.Client.Clock(), span) && !o.Lock.Client.Topology.IsStill(o.Doubt.SentIn()), span
}

// releaseAnswer is the answer to a release, with the count of holds that was sent: the ownership's count may be lower
// by then, and its last release may have begun.
type releaseAnswer struct {
	transport.Answer

	count int
}

// sendCount makes the server's count equal to the client's. It is the release, and the undo of an acquisition
// whose outcome is unknown. It does no harm if it runs twice, late, or for an ownership that is over. sendMu
// is held.
func (o *Ownership) sendCount(ctx context.Context, stop <-chan struct{}) (releaseAnswer, error) {
	o.mu.Lock()
	count, on := o.Holds.Count, o.terms(false)
	to := Release{Count: count, Raise: o.releaseLease(), Keep: o.keptAfter(count)}
	o.mu.Unlock()
	a, err := o.sendRelease(ctx, stop, on, to)
	if outcome.HasCode(err, "WRONGTYPE") {
		a.Null, err = true, nil // somebody replaced the lock by something else
	}
	if err == nil {
		o.counted(to, a)
	}
	return releaseAnswer{a, count}, err
}

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
	if to.Raise > 0 && o.Lock.Client.Replication == nil { // else no replica confirms it
		o.Lease.Extend(a.Sent, to.Raise)
	}
	o.plan()
}

// releaseLease returns the lease to which a release raises the remaining time of the key if the ownership stays held,
// or 0. o.mu is held.
func (o *Ownership) releaseLease() time.Duration {
	if !o.Holds.Renews() {
		return 0
	}
	return o.Lease.ReleaseLease()
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
	return o.Protocol().ReleaseCall(o, to, args)
}

func (o *Ownership) sendRelease(
	ctx context.Context, stop <-chan struct{}, on transport.Terms, to Release,
) (transport.Answer, error) {
	args := releaseBuffers.Get().(*[16]string)
	c := o.ReleaseCall(to, args[:0])
	if c.Keys == nil {
		return transport.Answer{}, nil
	}
	a, err := o.Lock.Client.Sender.CallOn(ctx, stop, on, c.Cmd, c.Keys, c.Args)
	if err == nil && !a.Doubt { // nothing sends it again
		clear(args[:])
		releaseBuffers.Put(args)
	}
	if to.Keep > 0 {
		o.Lock.Client.Record.KeepUntil(a.Sent.Mono + to.Keep)
	}
	return a, err
}

// releaseBuffers has buffers for the arguments of releases.
var releaseBuffers = sync.Pool{New: func() any { return new([16]string) }}

// uncount removes a hold from the count. After the last one the ownership is releasing: it is neither renewed
// nor re-entered. o.mu is held.
func (o *Ownership) uncount(h *hold.Item) {
	if o.Holds.Uncount(h) {
		o.Phase = Releasing
		o.Doubt.ValidAtRelease = o.valid() > 0
		if o.Lock.Spec.ignoresOwnRelease() {
			o.Links.IgnoreOwnRelease()
		}
	}
}

// HoldsRequested is called before the server is asked to count so many holds.
func (o *Ownership) HoldsRequested(count int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Holds.Most = max(o.Holds.Most, int32(count)) //nolint:gosec // there are fewer holds
}

// Terms returns the bounds of a request for holds. waits says that the caller keeps waiting after they have ended.
func (o *Ownership) Terms(waits bool) transport.Terms {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.terms(waits)
}

// Count returns how many holds there are.
func (o *Ownership) Count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Holds.Count
}
