package latchkeyotel

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/latchkey-go/latchkey"
)

// The names of spans, and of the events in them.
const (
	waitSpan      = "latchkey.wait"
	holdSpan      = "latchkey.hold"
	renewalFailed = "latchkey.renewal_failed"
)

// tracers creates spans. It creates a span when the span ends, with the length that the event
// reports, so it keeps nothing for a hold that never gets an event for its end. Only failed
// renewals are kept.
type tracers struct {
	*labels

	tracer  trace.Tracer
	failing failing
}

func newTracers(t trace.Tracer, l *labels) *tracers {
	return &tracers{labels: l, tracer: t}
}

// trace creates the span that ends with an event, if there is one.
func (t *tracers) trace(e latchkey.Event) {
	switch e.Type {
	case latchkey.EventAcquired:
		t.span(waitSpan, e, e.Wait, OutcomeAcquired, nil)
	case latchkey.EventOpened:
		t.span(waitSpan, e, e.Wait, OutcomeOpened, nil)
	case latchkey.EventGaveUp:
		t.span(waitSpan, e, e.Wait, failure(e.Err), nil)
	case latchkey.EventRenewalFailed:
		t.failing.add(e)
	case latchkey.EventReleased, latchkey.EventLost:
		if e.Kind != latchkey.KindSemaphore { // it is unknown which of its permits were released
			t.span(holdSpan, e, e.Held, outcomeOf(e, OutcomeReleased), t.failing.take(e))
		}
	}
}

// span creates a span that ends with an event.
func (t *tracers) span(name string, e latchkey.Event, length time.Duration, outcome string, failures []failedRenewal) {
	attrs := t.list(e, outcome)
	if e.Reentry {
		attrs = append(attrs, attribute.Bool("latchkey.reentry", true))
	}
	if e.Kind == latchkey.KindSemaphore {
		attrs = append(attrs, attribute.Int("latchkey.permits", e.Count))
	}
	_, span := t.tracer.Start(e.Context, name, trace.WithTimestamp(e.Time.Add(-length)), trace.WithAttributes(attrs...))
	for _, f := range failures {
		span.AddEvent(renewalFailed, trace.WithTimestamp(f.at), trace.WithAttributes(OutcomeKey.String(failure(f.err))), t.text(f.err))
	}
	if !isOrdinary(outcome) {
		span.SetStatus(codes.Error, t.description(outcome, e.Err))
	}
	span.End(trace.WithTimestamp(e.Time))
}

// description returns the text of an error, or only its outcome if names, which the text contains,
// may not be shown.
func (t *tracers) description(outcome string, err error) string {
	if t.names && err != nil {
		return err.Error()
	}
	return outcome
}

// text returns the text of an error as an attribute, if names may be shown.
func (t *tracers) text(err error) trace.SpanStartEventOption {
	if t.names && err != nil {
		return trace.WithAttributes(attribute.String("exception.message", err.Error()))
	}
	return trace.WithAttributes()
}
