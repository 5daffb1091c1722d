package latchkeyotel

import (
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/latchkey-go/latchkey"
)

// Option is a setting of an [Observer].
type Option func(*settings)

type settings struct {
	meters  metric.MeterProvider
	tracers trace.TracerProvider
	names   bool
	next    func(latchkey.Event)
}

func newSettings(options []Option) settings {
	s := settings{meters: otel.GetMeterProvider(), tracers: otel.GetTracerProvider()}
	for _, option := range options {
		if option != nil {
			option(&s)
		}
	}
	return s
}

// WithMeterProvider sets where the metrics go. Default: the global provider, otel.GetMeterProvider.
// For no metrics, use the one of go.opentelemetry.io/otel/metric/noop.
func WithMeterProvider(p metric.MeterProvider) Option {
	return func(s *settings) { s.meters = p }
}

// WithTracerProvider sets where the spans go. Default: the global provider, otel.GetTracerProvider.
// For no spans, use the one of go.opentelemetry.io/otel/trace/noop.
func WithTracerProvider(p trace.TracerProvider) Option {
	return func(s *settings) { s.tracers = p }
}

// WithNames adds the attribute latchkey.name, the name of the object as the program gave it, to all
// metrics and spans. It also adds the texts of errors, which contain the name, to spans. Each name
// is a series of its own in each metric: use WithNames only if there are few names.
func WithNames() Option {
	return func(s *settings) { s.names = true }
}

// WithNext sets another observer that is called after this one, with each event, even if this one
// panics.
func WithNext(observe func(latchkey.Event)) Option {
	return func(s *settings) { s.next = observe }
}
