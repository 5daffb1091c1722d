package latchkey

import (
	"context"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/report"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// release releases the hold: to the next goroutine in line, or to the server. It uncounts the hold before
// it has sendMu, so that a wait for sendMu cannot keep the hold alive.
func (s *holdState) release(ctx context.Context) error {
	o := s.ownership
	awaited := o.links.FirstInLine() != nil
	if awaited && s.passOn() {
		return nil
	}
	if done, err := s.beginRelease(); done || err != nil {
		return err
	}
	if !o.lockToRelease(ctx) {
		return o.releaseFailed(transport.Answer{}, transport.Unavailable(transport.ErrSilent))
	}
	defer o.sendMu.Unlock()
	if done, err := s.reportRelease(); done {
		return err
	}
	if o.keptAfter(0) == 0 {
		if awaited {
			o.chooseNext()
		}
		o.chooseTurn()
	}
	a, err := o.sendCount(o.lock.client.Sender.Detached(ctx), nil)
	switch {
	case err != nil:
		return o.releaseFailed(a.Answer, err)
	case a.Null && !o.explains(a):
		o.lose(fault.ErrLost, "the key was gone when the hold was released")
		return fault.Op("unlock", o.lock.Name(), fault.ErrNotHeld, fault.ErrLost)
	}
	o.released(s, a)
	_, err = s.reportRelease()
	return err
}

// releaseFails lets the first in line query the server, and go on with the next owner. If there is nobody, it returns that
// owner as left. o.mu is held: an ownership that is over is no longer counted.
func (o *ownership) releaseFails() (left line.Place) {
	left, taken := o.links.ReleaseFails(o.local.next.asLeft())
	if taken {
		o.local.next = nil
	}
	return left
}

// lockToRelease locks sendMu. It waits for it even if ctx ends, for as long as a release may take.
func (o *ownership) lockToRelease(ctx context.Context) bool {
	if o.sendMu.TryLock() {
		return true
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.lock.client.Config.RetryBudget)
	defer cancel()
	return o.sendMu.Lock(ctx) == nil
}

// reportRelease returns the result of Unlock if the hold is over by now. The result is nil for the first call
// that reports on a release, even if the release happened in the background after Unlock had failed.
func (s *holdState) reportRelease() (done bool, err error) {
	o := s.ownership
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case s.Cause() != nil, s.Reported():
		return true, fault.Op("unlock", o.lock.Name(), fault.ErrNotHeld, s.Cause())
	case s.Released():
		s.MarkReported()
		return true, nil
	}
	return false, nil
}

// beginRelease uncounts a hold before anything is sent, so that no renewal and no re-entry can follow. It may
// be called again after a failed release. If others read along, the hold leaves them and is over without a
// request: done is true.
func (s *holdState) beginRelease() (done bool, err error) {
	o := s.ownership
	if o.lock.spec.along {
		_ = s.Err() // ends what should have ended already, without a request
	}
	o.mu.Lock()
	if s.Reported() || s.Cause() != nil {
		o.mu.Unlock()
		return false, fault.Op("unlock", o.lock.Name(), fault.ErrNotHeld, s.Cause())
	}
	if !s.Active() {
		o.mu.Unlock()
		return false, nil
	}
	done, ending := o.holds.leave(s)
	if !done {
		o.uncount(s)
		ending = s.TakeDependents()
	}
	o.mu.Unlock()
	// Before anything is sent: the server may free the lock long before it answers.
	ending.End(fault.ErrNotHeld)
	if done {
		o.observe(report.Released, s, nil)
	}
	return done, nil
}

// explains reports whether an earlier release of this client, whose answer was lost, explains that the owner is
// gone.
func (o *ownership) explains(a releaseAnswer) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return a.count == 0 && o.doubt.ExplainsLoss(a.Doubt)
}

// releaseFailed leaves the rest to the background.
func (o *ownership) releaseFailed(a transport.Answer, err error) error {
	o.mu.Lock()
	o.doubt.Release = o.doubt.Release || a.Doubt
	o.local.next.noteDoubt(a) // the release may yet put it into the queue or give it the lock
	var left line.Place
	if o.phase == releasing {
		left = o.releaseFails()
	}
	o.plan()
	span := o.span()
	o.mu.Unlock()
	line.GiveUp(left)
	o.undoLater(0, span)
	if transport.Classify(err) == transport.Refused {
		return fault.Op("unlock", o.lock.Name(), err)
	}
	return fault.Op("unlock", o.lock.Name(), fault.ErrUnknownOutcome, err)
}

// released ends a hold that the server has released, and after the last one the ownership.
func (o *ownership) released(s *holdState, a releaseAnswer) {
	if a.count == 0 {
		o.finishRelease(a.Answer)
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.holds.remove(s, nil) // what ends with it ended when its release began
	if raised := o.releaseLease(); raised > 0 && o.lock.client.Replication == nil {
		o.lease.Extend(a.Sent, raised) // no replica confirms this
	}
	o.plan()
}

// finishRelease ends an ownership that the server has released.
func (o *ownership) finishRelease(a transport.Answer) {
	next, ended := o.end(nil)
	if !ended {
		return
	}
	next.noteHandover(a)
	receivers, free := script.Receivers(a)
	if free && o.lock.spec.passes {
		o.links.ReceiversSeen(receivers)
	}
	o.noteOpen(a)
	if receivers == -1 {
		o.lock.client.Reporter.Log(report.NoticePublish, o.lock.names.Channel)
	}
	o.observe(report.Released, nil, nil) // before the next one can acquire
	if o.lock.spec.othersMayStay() && script.Stays(a) {
		o.leave(next)
	} else {
		o.leaveFree(next, receivers)
	}
	if late, span := o.mayComeLate(); late {
		o.undoLater(undo.FirstPause, span) // this release was the first undo
	}
}

// MayComeLate reports whether an acquisition may still run after the release, and for how long the key may live
// then.
func (o *ownership) mayComeLate() (late bool, span time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.doubt.Acquisition() {
		return false, 0
	}
	span = o.span()
	return o.doubt.MayComeLate(o.lock.client.Clock(), span) && !o.lock.client.Topology.IsStill(o.doubt.SentIn()), span
}

// releaseAnswer is the answer to a release, with the count of holds that was sent: the ownership's count may be
// lower by then.
type releaseAnswer struct {
	transport.Answer

	count int
}

// sendCount makes the server's count equal to the client's. It is the release, and the undo of an acquisition
// whose outcome is unknown. It does no harm if it runs twice, late, or for an ownership that is over. sendMu
// is held.
func (o *ownership) sendCount(ctx context.Context, stop <-chan struct{}) (releaseAnswer, error) {
	o.mu.Lock()
	count, on := o.holds.count, o.terms(false)
	to := release{count, o.releaseLease(), o.keptAfter(count)}
	o.mu.Unlock()
	a, err := o.sendRelease(ctx, stop, on, to)
	if transport.HasCode(err, "WRONGTYPE") {
		a.Null, err = true, nil // somebody replaced the lock by something else
	}
	o.mu.Lock()
	if err == nil && !o.doubt.Acquisition() {
		o.holds.most = int32(count) //nolint:gosec // there are fewer holds
	}
	o.mu.Unlock()
	return releaseAnswer{a, count}, err
}

// releaseLease returns the lease to which a release raises the remaining time of the key if the ownership stays held,
// or 0. o.mu is held.
func (o *ownership) releaseLease() time.Duration {
	if o.holds.renewing == 0 {
		return 0
	}
	return o.lease.ReleaseLease()
}

func (o *ownership) sendRelease(ctx context.Context, stop <-chan struct{}, on transport.Terms, to release) (transport.Answer, error) {
	args := releaseBuffers.Get().(*[16]string)
	c := o.protocol().releaseCall(o, to, args[:0])
	if c.Keys == nil {
		return transport.Answer{}, nil
	}
	a, err := o.lock.client.Sender.CallOn(ctx, stop, on, c.Cmd, c.Keys, c.Args)
	if err == nil && !a.Doubt { // nothing sends it again
		clear(args[:])
		releaseBuffers.Put(args)
	}
	if to.keep > 0 {
		o.lock.client.Record.KeepUntil(a.Sent.Mono + to.keep)
	}
	return a, err
}

// releaseBuffers has buffers for the arguments of releases.
var releaseBuffers = sync.Pool{New: func() any { return new([16]string) }}

// uncount removes a hold from the count. After the last one the ownership is releasing: it is neither renewed
// nor re-entered. o.mu is held.
func (o *ownership) uncount(s *holdState) {
	if o.holds.uncount(s) {
		o.phase = releasing
		o.doubt.ValidAtRelease = o.valid() > 0
		o.echo = o.lock.spec.ignoresOwnRelease() && o.links.ReleaseBegins()
	}
}

// noteCount records the count that is about to be sent to the server, and returns the terms of that call. waits
// says that the caller keeps waiting after they have ended.
func (o *ownership) noteCount(count int, waits bool) transport.Terms {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.holds.most = max(o.holds.most, int32(count)) //nolint:gosec // there are fewer holds
	return o.terms(waits)
}

// count returns how many holds there are, and mostHolds how many the server may have counted.
func (o *ownership) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.holds.count
}

func (o *ownership) mostHolds() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return int(o.holds.most)
}
