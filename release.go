package latchkey

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// releaseHold gives one hold back. It begins before it has the turn, so that nothing
// that delays the turn can keep the hold alive.
func (t *ownership) releaseHold(ctx context.Context, s *holdState) error {
	if err := t.beginRelease(s); err != nil {
		return err
	}
	if !t.turnToRelease(ctx) {
		return t.releaseFailed(transport.Answer{}, transport.Unavailable(transport.ErrSilent))
	}
	defer t.turn.Unlock()
	if done, err := t.reportRelease(s); done {
		return err
	}
	a, err := t.sendCount(t.client.sender.Detached(ctx), nil)
	switch {
	case err != nil:
		return t.releaseFailed(a.Answer, err)
	case a.Null && !t.explains(a):
		t.lose(ErrLost, "it was gone when it was released")
		return fail("unlock", t.lock.name, ErrNotHeld, ErrLost)
	}
	t.released(s, a)
	_, err = t.reportRelease(s)
	return err
}

// turnToRelease takes the turn. It waits for it whatever becomes of ctx, for as long as a
// release may take.
func (t *ownership) turnToRelease(ctx context.Context) bool {
	if t.turn.TryLock() {
		return true
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.client.options.RetryBudget)
	defer cancel()
	return t.turn.Lock(ctx) == nil
}

// reportRelease says what Unlock has to, if the hold is over by now: nil to the first who asks
// about a release, be it one in the background after Unlock had failed.
func (t *ownership) reportRelease(s *holdState) (done bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case s.cause != nil, s.reported:
		return true, fail("unlock", t.lock.name, ErrNotHeld, s.cause)
	case s.released:
		s.reported = true
		return true, nil
	}
	return false, nil
}

// beginRelease takes a hold off the count before anything is sent, so that no renewal
// and no re-entry can follow. It may be called again after a release that failed.
func (t *ownership) beginRelease(s *holdState) error {
	t.mu.Lock()
	if s.reported || s.cause != nil {
		t.mu.Unlock()
		return fail("unlock", t.lock.name, ErrNotHeld, s.cause)
	}
	if s.released || s.releasing {
		t.mu.Unlock()
		return nil
	}
	t.giveUp(s)
	endings := s.takeEndings()
	t.mu.Unlock()
	// Before anything is sent: the server may free the lock long before it answers.
	endAll(endings, ErrNotHeld)
	return nil
}

// explains reports whether an owner that is gone is explained by a release of ours
// whose answer was lost.
func (t *ownership) explains(a releaseAnswer) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return a.count == 0 && t.doubt.explainsLoss(a.Doubt)
}

// releaseFailed leaves the rest to the background.
func (t *ownership) releaseFailed(a transport.Answer, err error) error {
	t.mu.Lock()
	t.doubt.release = t.doubt.release || a.Doubt
	t.plan()
	left := t.span()
	t.mu.Unlock()
	t.undoLater(0, left)
	if transport.Classify(err) == transport.Refused {
		return fail("unlock", t.lock.name, err)
	}
	return fail("unlock", t.lock.name, ErrUnknownOutcome, err)
}

// released ends a hold that the server has taken back, and with the last one the
// ownership.
func (t *ownership) released(s *holdState, a releaseAnswer) {
	t.mu.Lock()
	if a.count > 0 {
		t.holds.remove(s, nil) // what ends with it has ended when its release began
		if raised := t.raised(); raised > 0 && t.client.acks == nil {
			t.lease.extend(a.Sent, raised) // which no replica confirms
		}
		t.plan()
		t.mu.Unlock()
		return
	}
	t.mu.Unlock()
	t.finishRelease(a.Answer)
}

// finishRelease ends an ownership that the server has taken back.
func (t *ownership) finishRelease(a transport.Answer) {
	if !t.end(nil) {
		return
	}
	told, _ := a.Message.AsInt64()
	if told == -1 {
		t.client.reporter.log(noticePublish, t.lock.channel)
	}
	t.observe(Event{Type: EventReleased}) // before the next one can acquire
	if t.lock.spec.joint && !a.Message.IsInt64() {
		t.leaveHold()
	} else {
		t.endHold(told)
	}
	t.mu.Lock()
	span := t.span()
	late := t.doubt.mayComeLate(t.client.clock(), span) && !t.client.topology.IsStill(t.doubt.sentIn)
	t.mu.Unlock()
	if late {
		t.undoLater(undoPause, span) // this release was the first undo
	}
}

// releaseAnswer is the answer to a release, with the count of holds that it has asked for:
// that of the ownership may be lower by then.
type releaseAnswer struct {
	transport.Answer

	count int
}

// sendCount makes the server's count equal to ours. It is the release, and the undo
// of an acquisition whose outcome is unknown: run twice, late or for an ownership that
// is over, it does no harm. The turn is held.
func (t *ownership) sendCount(ctx context.Context, stop <-chan struct{}) (releaseAnswer, error) {
	t.mu.Lock()
	count, raised := t.holds.count, t.raised()
	t.mu.Unlock()
	a, err := t.sendRelease(ctx, stop, count, millis(raised))
	if transport.HasCode(err, "WRONGTYPE") {
		a.Null, err = true, nil // somebody put something else in the place of the lock
	}
	t.mu.Lock()
	if err == nil && !t.doubt.acquisition {
		t.holds.most = count
	}
	t.mu.Unlock()
	return releaseAnswer{a, count}, err
}

// raised is the lease to which a release raises what is left of the time of the key, if the
// ownership stays held, or 0. t.mu is held.
func (t *ownership) raised() time.Duration {
	if t.holds.renewing == 0 {
		return 0
	}
	return t.lease.raised()
}

func (t *ownership) sendRelease(ctx context.Context, stop <-chan struct{}, count int, raise int64) (transport.Answer, error) {
	c := t.protocol.releaseCall(t, count, raise)
	if c.keys == nil {
		return transport.Answer{}, nil
	}
	return t.client.sender.CallOn(ctx, stop, t.terms(false), c.cmd, c.keys, c.args)
}

// giveUp takes a hold off the count. With the last one the ownership is releasing: it
// is neither renewed nor entered again. t.mu is held.
func (t *ownership) giveUp(s *holdState) {
	if t.holds.giveUp(s) {
		t.phase = releasing
		t.doubt.stood = t.valid() > 0
		// While a lock has one holder, nobody else publishes its release. That is not so
		// for readers, whose own messages are heard like all others.
		t.echo = !t.lock.spec.joint && !t.lock.spec.shared && t.queue.releaseBegins()
	}
}

// counting notes that the server is about to be asked to count so many holds.
func (t *ownership) counting(count int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.holds.counting(count)
}

// count is how many holds there are, and mostHolds how many the server may have counted.
func (t *ownership) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.holds.count
}

func (t *ownership) mostHolds() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.holds.most
}
