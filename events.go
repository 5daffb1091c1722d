package latchkey

import (
	"context"
	"errors"
	"time"
)

// What the observer of a client is told of calls and ownerships. Without an observer none of this
// does anything.

// parentOf returns the values of a context, for the events of a call, or nil if nobody is told of them. It
// is a pointer because each hold has one.
func (c *Client) parentOf(ctx context.Context) *context.Context {
	if c.options.Observer == nil {
		return nil
	}
	parent := context.WithoutCancel(ctx)
	return &parent
}

// observe has the observer, if there is one, told of an event of a call that was made with that parent.
func (c *Client) observe(parent *context.Context, e Event) {
	if c.options.Observer == nil {
		return
	}
	if e.Context = context.Background(); parent != nil {
		e.Context = *parent
	}
	e.Time = time.Now()
	c.reporter.observe(e)
}

// observeCall tells what has come of a call that asked for something of an object which no ownership stands
// for: it has got it, or given up.
func (o *object) observeCall(parent *context.Context, got EventType, count int, began time.Time, err error) {
	e := Event{Type: got, Kind: o.kind, Name: o.name, Count: count, Wait: time.Since(began), Err: err}
	if err != nil {
		e.Type = EventGaveUp
	}
	o.client.observe(parent, e)
}

// observeAttempt tells of one attempt to acquire so many permits.
func (o *object) observeAttempt(parent *context.Context, count int, err error) {
	if parent != nil {
		o.client.observe(parent, Event{Type: EventAttempt, Kind: o.kind, Name: o.name, Count: count, Err: asTold(err)})
	}
}

// asTold is what a command failed with, in the errors of this package, as a call that ends with it tells it.
func asTold(err error) error {
	if err == nil {
		return nil
	}
	told := explain(err)
	if len(told) == 1 {
		return told[0]
	}
	return errors.Join(told...)
}

// event is an event of an owner of a lock, or of a permit.
func (p *primitive) event(t EventType, number uint64, owner Owner) Event {
	e := Event{Type: t, Kind: p.spec.kind, Name: p.Name(), Owner: owner}
	if p.spec.family == KindPermit {
		e.Permit, e.Owner = owner.String(), Owner{client: p.client.id, number: number}
	}
	return e
}

// observe has the observer told what happened to the ownership, or to a hold of it: the outermost one
// if s is nil. A party of a barrier is not a hold: it has the events of its Await only.
func (o *ownership) observe(t EventType, s *holdState, err error) {
	if o.lock.client.options.Observer == nil || o.lock.spec.lost != nil {
		return
	}
	e := o.lock.event(t, o.number, o.owner())
	e.Err = err
	now := o.lock.client.clock()
	o.mu.Lock()
	if s == nil {
		s = o.holds.outermost()
	}
	var parent *context.Context
	if s != nil && s.rare != nil {
		parent = s.rare.parent
		if t == EventLost || t == EventReleased {
			e.Held = now.Since(s.rare.acquired)
		}
	}
	o.mu.Unlock()
	o.lock.client.observe(parent, e)
}

// observeEnd has the observer told that all outermost holds have ended in that way. They are told
// one by one: those that read along were acquired one by one.
func (o *ownership) observeEnd(t EventType, err error) {
	if o.lock.client.options.Observer == nil {
		return
	}
	o.mu.Lock()
	var roots []*holdState
	for h := range o.holds.roots {
		roots = append(roots, h)
	}
	o.mu.Unlock()
	for _, h := range roots {
		o.observe(t, h, err)
	}
}

// observeAttempt tells of one attempt.
func (a *acquisition) observeAttempt(err error) {
	if o := a.ownership; a.parent != nil {
		e := o.lock.event(EventAttempt, o.number, o.owner())
		e.Err = asTold(err)
		o.lock.client.observe(a.parent, e)
	}
}

// observeEnd tells what has come of the call: a hold, maybe one that was entered again, or an error.
func (a *acquisition) observeEnd(reentry bool, err error) {
	if a.parent == nil {
		return
	}
	c := a.lock.client
	wait := c.clock().Since(a.began)
	if err != nil {
		var e Event
		if o := a.ownership; o != nil {
			e = o.lock.event(EventGaveUp, o.number, o.owner())
		} else {
			e = Event{Type: EventGaveUp, Kind: a.lock.spec.kind, Name: a.lock.Name()}
		}
		e.Err, e.Wait = err, wait
		c.observe(a.parent, e)
		return
	}
	for o := range a.each {
		o.observeAcquired(a.parent, wait, reentry)
	}
}

// observeAcquired tells of a hold that a call with that parent got after that time.
func (o *ownership) observeAcquired(parent *context.Context, wait time.Duration, reentry bool) {
	e := o.lock.event(EventAcquired, o.number, o.owner())
	e.Wait, e.Reentry = wait, reentry
	o.lock.client.observe(parent, e)
}

// madeFor notes for which call a hold was made that was passed on.
func (s *holdState) madeFor(parent *context.Context) {
	if parent == nil {
		return
	}
	s.ownership.mu.Lock()
	defer s.ownership.mu.Unlock()
	s.makeRare().parent = parent
}
