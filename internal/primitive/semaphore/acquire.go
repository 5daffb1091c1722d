package semaphore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/object"
	"github.com/latchkey-go/latchkey/internal/engine/report"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
)

// Acquire acquires n permits, all or none.
func (s *Semaphore) Acquire(ctx context.Context, verb string, waits bool, n int, settings []request.Setting) error {
	r, err := request.New(s.Client.Config.Lease, 0, waits, settings)
	if err = errors.Join(s.Names.Invalid, err, request.CheckNumber("%d permits", n, 1)); err == nil {
		err = s.Begin(ctx)
	}
	if err != nil {
		return s.NotBegun(ctx, verb, n, err)
	}
	defer s.Client.Done()
	began := time.Now()
	r.Parent = s.Client.Reporter.Parent(ctx)
	ctx, cancel := r.Bound(ctx)
	defer cancel()
	a := &Acquisition{Semaphore: s, Wait: object.Wait{Of: &s.Object}, request: &r, semWaiter: semWaiter{count: n}}
	if waits {
		err = a.wait(ctx)
	} else {
		err = a.try(ctx)
	}
	if err != nil {
		err = fault.Op(verb, s.Names.Name, script.Explain(s.Client.Inspector.WrongKind(ctx, s.Names, s.Kind, err))...)
	}
	s.ObserveCall(r.Parent, report.Acquired, n, began, err)
	return err
}

// Acquisition is one acquisition of permits.
type Acquisition struct {
	*Semaphore
	object.Wait
	semWaiter

	request *request.Request
	Line    *Line
	front   *line.Line // what the front waits in: its signals, and the subscription to the channel of the semaphore
	aside   bool       // it wants more permits than there are in all
	ticket  string     // of the place that it had then
	doubt   bool       // an attempt of it may still be executed
}

// try makes one attempt.
func (s *Acquisition) try(ctx context.Context) error {
	p := s.NewPlace(s.count, false, "", nil)
	err := p.Ask(ctx)
	s.ObserveAttempt(s.request.Parent, s.count, err)
	return p.conclude(err)
}

// Lines for those that do not wait for the same as the others.
const (
	toBeSet    = " to be set"         // they also wait for somebody to set the permits
	aboveTotal = " above the total, " // they want more than there are in all; with the number
)

// wait waits in line, and then in the queue on the server. A request for more permits than there
// are in all makes way for the others, and goes on in a line of its kind.
func (s *Acquisition) wait(ctx context.Context) error {
	key := line.Key{Kind: keyspace.KindSemaphore, Key: s.Names.Key}
	if s.request.AwaitSet {
		key.Kind += toBeSet
	}
	err := s.waitIn(ctx, key)
	if s.aside {
		key.Kind += keyspace.Kind(fmt.Sprint(aboveTotal, s.count))
		err = s.waitIn(ctx, key)
	}
	return err
}

// waitIn waits in the line with a key.
func (s *Acquisition) waitIn(ctx context.Context, key line.Key) error {
	s.Line, s.front = semLinesOf(s.Client).Use(key), s.Client.Lines.Use(key)
	s.semWaiter = semWaiter{count: s.count, moved: make(chan struct{}), wake: s.front.WakeFront}
	defer s.front.Done()
	defer semLinesOf(s.Client).Done(key)
	var mark line.Mark
	defer mark.End()
	err := s.Line.enter(ctx, s.Client.Closing, &s.semWaiter, func() { mark.BeginFor(s.Client.Waiting.Counts, s) })
	switch {
	case err != nil:
		err = s.front.WaitError(ctx, err, nil)
	case !s.Line.received(&s.semWaiter):
		err = s.Client.Waiting.InFront(ctx, s.front, s, &mark)
	}
	left, passed := s.Line.leave(&s.semWaiter)
	if left != nil {
		left.settle()
	}
	switch {
	case passed:
		s.front.HadPermits()
		return s.keepPassed()
	case err != nil && s.doubt:
		err = errors.Join(err, fault.ErrUnknownOutcome)
	}
	return err
}

// Attempt implements [line.Attempter]. The front has permits if a release of this client has passed
// it some. If it has just come, it need not ask what the one before it has asked.
func (s *Acquisition) Attempt(ctx context.Context, round int) (left time.Duration, err error) {
	if !s.Line.asks(&s.semWaiter) {
		return 0, nil
	}
	p, signaled := s.takePlace(), s.front.TakeSignal()
	if round == 0 && time.Now().Before(p.rests) && !signaled {
		s.Line.refused(&s.semWaiter)
		return p.left, p.refusal
	}
	if err = p.Ask(ctx); s.request.AwaitsSet() {
		err = script.AwaitsSet(err)
	}
	s.ObserveAttempt(s.request.Parent, s.count, err)
	switch {
	case err == nil:
		s.Line.granted(s.count, s.Client.Config.Turn)
		s.front.HadPermits()
		fallthrough
	case script.IsToBeUndone(err):
		s.Line.place = nil
		return -1, p.conclude(err)
	case p.Aside && !s.aside:
		s.Line.place = nil
		s.aside, s.ticket = true, p.Ticket
		p.settle()
		return -1, nil
	}
	s.doubt = s.doubt || p.Doubt
	s.Line.refused(&s.semWaiter)
	return p.left, err
}

// takePlace returns the place of the line, or makes one if there is none for as many permits.
func (s *Acquisition) takePlace() *Place {
	p := s.Line.place
	ticket := s.ticket
	if p != nil && (p.Count != s.count || p.isUsedUp()) {
		ticket = p.Ticket
		p.settle()
		p = nil
	}
	if p == nil {
		p = s.NewPlace(s.count, true, ticket, s.front.Signal)
		s.Line.place = p
	}
	return p
}

// Pause implements [line.Attempter]. Others that know no queue release permits with a message on
// the channel of the semaphore.
func (s *Acquisition) Pause(q *line.Line, _ int, left time.Duration) time.Duration {
	q.Subscribe(s.Client.Notifier, s.Names.Channel, line.PresenceChannel(s.Names.Key))
	pause := line.PauseUntil(left, s.Client.PollPause())
	if p := s.Line.place; p != nil {
		return p.restFor(pause)
	}
	return pause
}

// keepPassed gives passed permits back if the client was closed in the meantime.
func (s *Acquisition) keepPassed() error {
	if !async.IsClosed(s.Client.Closing) {
		return nil
	}
	s.SendLater(func(o *undo.Operation) script.Call { return s.releaseCall(o, "release", s.count, "") })
	return fault.ErrClosed
}
