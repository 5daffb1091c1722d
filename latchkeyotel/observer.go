package latchkeyotel

import (
	"errors"

	"github.com/latchkey-go/latchkey"
)

// scope is the name of the instrumentation scope.
const scope = "github.com/latchkey-go/latchkey/latchkeyotel"

// Observer turns events into metrics and spans. Its methods may be called from any goroutine, and
// one Observer may serve several clients. It does not need to be closed: shut down the providers
// after the clients are closed.
type Observer struct {
	meters  *meters
	tracers *tracers
	calls   *calls
	next    func(latchkey.Event) // or nil
}

// New returns an observer. Its error says which instrument the meter provider refuses, or that a
// provider is nil.
func New(options ...Option) (*Observer, error) {
	s := newSettings(options)
	if s.meters == nil || s.tracers == nil {
		return nil, errors.New("latchkeyotel: the provider is nil")
	}
	l := &labels{names: s.names}
	m, err := newMeters(s.meters.Meter(scope), l)
	if err != nil {
		return nil, err
	}
	waiting, err := newCalls(m.meter)
	if err != nil {
		return nil, err
	}
	return &Observer{meters: m, tracers: newTracers(s.tracers.Tracer(scope), l), calls: waiting, next: s.next}, nil
}

// Observe records the event and then calls the observer of [WithNext]. Pass it as
// [latchkey.Options].Observer.
func (o *Observer) Observe(e latchkey.Event) {
	if o.next != nil {
		defer o.next(e)
	}
	o.meters.record(e)
	o.tracers.trace(e)
}
