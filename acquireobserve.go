package latchkey

import (
	"github.com/latchkey-go/latchkey/internal/engine/report"
	"github.com/latchkey-go/latchkey/internal/engine/script"
)

// observeAttempt reports one attempt.
func (a *acquisition) observeAttempt(err error) {
	if o := a.ownership; a.Parent != nil {
		e := o.Lock.Event(report.Attempt, o.Number, o.Owner())
		e.Err = script.Returned(err)
		o.Lock.Client.Reporter.Observe(a.Parent, e)
	}
}

// observeEnd reports the outcome of the call: a hold, possibly a re-entry, or an error.
func (a *acquisition) observeEnd(reentry bool, err error) {
	if a.Parent == nil {
		return
	}
	c := a.lock.Client
	wait := c.Clock().Since(a.began)
	if err != nil {
		var e report.Event
		if o := a.ownership; o != nil {
			e = o.Lock.Event(report.GaveUp, o.Number, o.Owner())
		} else {
			e = report.Event{Type: report.GaveUp, Kind: a.lock.spec.Kind, Name: a.lock.Name()}
		}
		e.Err, e.Wait = err, wait
		c.Reporter.Observe(a.Parent, e)
		return
	}
	for o := range a.each {
		o.ObserveAcquired(a.Parent, wait, reentry)
	}
}
