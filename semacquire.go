package latchkey

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// acquire implements Acquire and TryAcquire.
func (s *Semaphore) acquire(ctx context.Context, verb string, waits bool, n int, settings []setting) error {
	r, err := newRequest(s.client.options.Lease, waits, settings)
	if err = errors.Join(s.invalid, err, checkCount(n)); err == nil {
		err = s.begin(ctx)
	}
	if err != nil {
		return s.notBegun(ctx, verb, n, err)
	}
	defer s.client.working.Done()
	began := time.Now()
	r.parent = s.client.parentOf(ctx)
	ctx, cancel := r.bound(ctx)
	defer cancel()
	each := &semAcquisition{Semaphore: s, request: &r, permitRequest: permitRequest{count: n}}
	if err = each.conclude(each.run(ctx)); err != nil {
		err = fail(verb, s.name, explain(s.client.wrongKind(ctx, s.keys, s.kind, err))...)
	}
	s.observeCall(r.parent, EventAcquired, n, began, err)
	return err
}

// undo gives back what an acquisition may have taken, and drops its reservation.
func (s *Semaphore) undo(o *operation) call {
	return call{semUndo, []string{s.key, s.reserve(), o.record, s.kindKey()},
		[]string{s.client.id, o.number, s.client.publish, s.channel}}
}

// semAcquisition is one acquisition of permits.
type semAcquisition struct {
	*Semaphore
	permitRequest

	request  *request
	op       *operation      // nil before the first attempt
	since    transport.Stamp // when it came to the front of the line
	doubt    bool            // it may have been executed, or may still be
	reserved bool            // permits may be reserved for it
}

// run makes one attempt, or waits in line and repeats it until there are enough permits.
func (s *semAcquisition) run(ctx context.Context) error {
	if !s.request.waits {
		_, err := s.attempt(ctx, 0)
		return err
	}
	return s.client.wait(ctx, s.line(), onlyLine, s, nil)
}

// line returns the line in which the call waits. Calls that also wait for somebody to set the permits have a line of
// their own.
func (s *semAcquisition) line() lineKey {
	if s.request.awaitSet {
		return lineKey{KindSemaphore + " to be set", s.key}
	}
	return lineKey{KindSemaphore, s.key}
}

// attempt implements [attempter].
func (s *semAcquisition) attempt(ctx context.Context, _ int) (left time.Duration, err error) {
	left, err = s.sendAttempt(ctx)
	s.observeAttempt(s.request.parent, s.count, err)
	return left, err
}

// sendAttempt sends one attempt to the server.
func (s *semAcquisition) sendAttempt(ctx context.Context) (left time.Duration, err error) {
	c := s.call()
	a, err := s.client.sender.CallOn(ctx, s.client.closing, transport.Terms{Patience: s.client.sender.Patience, Waits: s.request.waits}, c.cmd, c.keys, c.args)
	if err == nil && s.client.confirmCalls != nil && granted(a) {
		a, err = s.client.confirm(ctx, a, c)
	}
	s.doubt = s.doubt || a.Doubt || transport.StoppedHalfWay(err)
	if err != nil {
		return -1, s.request.waitForSet(err)
	}
	if a.Message.IsArray() {
		left, _, err = readPermitRefusal(a, s.count)
		return left, err
	}
	if isClosed(s.client.closing) {
		s.doubt = true // it has to be given back
		return 0, ErrClosed
	}
	s.noteGranted(s.count)
	return 0, nil
}

// call returns the command of an attempt. A request that has waited long enough in front has
// permits reserved for it.
func (s *semAcquisition) call() call {
	s.isFirst()
	if s.op == nil {
		s.op = s.client.newOperation(s.key)
	}
	reserve := ""
	if s.request.waits && s.client.clock().Since(s.since) > s.client.patienceInFront() {
		reserve, s.reserved = s.client.staleMS, true
	}
	return call{semAcquire, []string{s.key, s.reserve(), s.op.record, s.secondKey, s.kindKey()},
		[]string{s.client.id, s.op.number, strconv.Itoa(s.count), reserve, s.client.publish, s.channel}}
}

// isFirst notes when the request came to the front of the line.
func (s *semAcquisition) isFirst() {
	if s.since == (transport.Stamp{}) {
		s.since = s.client.clock()
	}
}

// pause implements [attempter].
func (s *semAcquisition) pause(q *waitQueue, _ int, left time.Duration) time.Duration {
	s.isFirst()
	q.subscribe(s.client.notifier, s.channel, presenceChannel(s.key))
	pause := min(s.client.pollPause(), max(s.client.patienceInFront(), time.Millisecond))
	return pauseUntil(left, pause)
}

func (s *semAcquisition) what() (Kind, string) { return s.kind, s.name }

// conclude ends the operation. If it failed and may have left something behind, conclude has it
// undone.
func (s *semAcquisition) conclude(err error) error {
	granted := isToBeUndone(err)
	if s.passed {
		err = s.keepPassed()
	}
	switch {
	case s.op == nil:
		return err
	case err == nil && !s.passed, !s.doubt && !s.reserved && !granted:
		s.op.done()
		return err
	}
	s.op.followUp = s.undo(s.op)
	if granted && s.client.undo.undoNow(s.op.undo) {
		return err
	}
	s.op.repeatLater()
	if !s.passed && (s.doubt || granted) {
		return errors.Join(err, ErrUnknownOutcome)
	}
	return err
}

// keepPassed gives passed permits back if the client was closed in the meantime.
func (s *semAcquisition) keepPassed() error {
	if !isClosed(s.client.closing) {
		return nil
	}
	s.sendLater(func(o *operation) call { return s.release(o, "release", s.count) })
	return ErrClosed
}
