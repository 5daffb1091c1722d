package ownership

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/report"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
	"github.com/latchkey-go/latchkey/internal/transport"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// release releases the hold: to the next goroutine in line, or to the server. It uncounts the hold
// before it has SendMu, so that a wait for SendMu cannot keep the hold alive.
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
		silent := outcome.Unavailable(outcome.ErrSilent)
		return fault.Op("unlock", o.Name(), o.ReleaseFailed(transport.Answer{}, silent)...)
	}
	defer o.SendMu.Unlock()
	if done, err := s.ReportRelease(); done {
		return err
	}
	if o.KeptUntil.KeptFor(o.Client.Clock()) == 0 {
		if awaited {
			o.ChooseNext()
		}
		s.leaveOpen()
	}
	a, err := o.sendCount(o.Client.Sender.Detached(ctx), nil)
	switch {
	case err != nil:
		return fault.Op("unlock", o.Name(), o.ReleaseFailed(a.Answer, err)...)
	case o.goneAtRelease(a):
		return fault.Op("unlock", o.Name(), fault.ErrNotHeld, fault.ErrLost)
	}
	s.released(a)
	_, err = s.ReportRelease()
	return err
}

// LockToRelease locks SendMu. It waits for it even if ctx ends, for as long as a release may take.
func (o *Ownership) LockToRelease(ctx context.Context) bool {
	if o.SendMu.TryLock() {
		return true
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.Client.Config.RetryBudget)
	defer cancel()
	return o.SendMu.Lock(ctx) == nil
}

// ReportRelease returns the result of Unlock if the hold is over by now. The result is nil for the
// first call that reports on a release, even if the release happened in the background after Unlock
// had failed.
func (s *Hold) ReportRelease() (done bool, err error) {
	o := s.Ownership
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case s.Cause() != nil, s.Reported():
		return true, fault.Op("unlock", o.Name(), fault.ErrNotHeld, s.Cause())
	case s.Released():
		s.MarkReported()
		return true, nil
	}
	return false, nil
}

// BeginRelease uncounts a hold before anything is sent, so that no renewal and no re-entry can
// follow. It may be called again after a failed release. If others read along, the hold leaves them
// and is over without a request: done is true.
func (s *Hold) BeginRelease() (done bool, err error) {
	o := s.Ownership
	if o.Spec.Along {
		_ = s.Err() // ends what should have ended already, without a request
	}
	o.mu.Lock()
	if s.Reported() || s.Cause() != nil {
		o.mu.Unlock()
		return false, fault.Op("unlock", o.Name(), fault.ErrNotHeld, s.Cause())
	}
	if !s.Active() {
		o.mu.Unlock()
		return false, nil
	}
	done, ending := o.Holds.Leave(&s.Item)
	if !done {
		if o.Holds.Uncount(&s.Item) {
			o.lastReleaseBegins()
		}
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

// ReleaseStores says that the last release stores something. If it finds the owner gone, nothing
// was stored.
func (o *Ownership) ReleaseStores() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Doubt.Stores = true
}

// goneAtRelease ends the ownership, and reports that, if a release has found it gone and no earlier
// release of this client, whose answer was lost, explains that.
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

// ReleaseFailed leaves the rest to the background, and returns the causes of the error of the call.
// After the last release, the first in line queries the server, and goes on with the next owner.
func (o *Ownership) ReleaseFailed(a transport.Answer, err error) (causes []error) {
	o.mu.Lock()
	o.Doubt.Release = o.Doubt.Release || a.Doubt
	o.Turn.Next.AcquisitionAnswered(a) // the release may yet put it into the queue or give it the lock
	var left line.Place
	if o.Phase == Releasing {
		var taken bool
		if left, taken = o.Links.ReleaseFails(placeOf(o.Turn.Next)); taken {
			o.Turn.Next = nil
		}
	}
	o.plan()
	span := o.Doubt.Span(o.Lease.Span())
	o.mu.Unlock()
	line.GiveUp(left)
	o.UndoLater(0, span)
	if outcome.Classify(err) == outcome.Refused {
		return []error{err}
	}
	return []error{fault.ErrUnknownOutcome, err}
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
	if free && o.Spec.Passes {
		o.Links.ReceiversSeen(receivers)
	}
	if o.Spec.Recipe {
		o.Links.LeftFree(o.Turn.Open(), !free) // nothing else changes what is open while SendMu is held
	}
	if receivers == -1 {
		o.Client.Reporter.Log(report.NoticePublish, o.Names.Channel)
	}
	o.Observe(report.Released, nil, nil) // before the next one can acquire
	o.Leave(next, !o.Spec.othersMayStay() || !script.Stays(a), receivers)
	o.mu.Lock()
	span, late := o.Doubt.Span(o.Lease.Span()), o.Doubt.Acquisition()
	late = late && o.Doubt.MayComeLate(o.Client.Clock(), span) && !o.Client.Topology.IsStill(o.Doubt.SentIn())
	o.mu.Unlock()
	if late { // an acquisition may still run, and this release was the first undo
		o.UndoLater(undo.FirstPause, span)
	}
}
