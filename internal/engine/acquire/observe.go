package acquire

import (
	"github.com/latchkey-go/latchkey/internal/engine/report"
	"github.com/latchkey-go/latchkey/internal/engine/script"
)

// observeAttempt reports one attempt.
func (a *Acquisition) observeAttempt(err error) {
	if o := a.Ownership; a.Parent != nil {
		e := o.Event(report.Attempt, o.Number, o.Owner())
		e.Err = script.Returned(err)
		o.Client.Reporter.Observe(a.Parent, e)
	}
}

// ObserveEnd reports the outcome of the call: a hold, possibly a re-entry, or an error.
func (a *Acquisition) ObserveEnd(reentry bool, err error) {
	if a.Parent == nil {
		return
	}
	c := a.Lock.Client
	wait := c.Clock().Since(a.Began)
	if err != nil {
		var e report.Event
		if o := a.Ownership; o != nil {
			e = o.Event(report.GaveUp, o.Number, o.Owner())
		} else {
			e = report.Event{Type: report.GaveUp, Kind: a.Lock.Spec.Kind, Name: a.Lock.Name()}
		}
		e.Err, e.Wait = err, wait
		c.Reporter.Observe(a.Parent, e)
		return
	}
	for o := range a.each {
		e := o.Event(report.Acquired, o.Number, o.Owner())
		e.Wait, e.Reentry = wait, reentry
		o.Client.Reporter.Observe(a.Parent, e)
	}
}
