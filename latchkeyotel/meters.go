package latchkeyotel

import (
	"errors"

	"go.opentelemetry.io/otel/metric"

	"github.com/latchkey-go/latchkey"
)

// meters are the instruments.
type meters struct {
	*labels

	meter metric.Meter

	waits, held        metric.Float64Histogram
	holds              metric.Int64UpDownCounter
	losses, attempts   metric.Int64Counter
	renewals, undone   metric.Int64Counter
	acquired, released metric.Int64Counter // permits
	countdowns         metric.Int64Counter
}

// The bounds of the histograms, in seconds. They range from the time of a lock that is passed on in
// memory, or of a fast round trip, to times that somebody should look at.
var (
	waitBounds = []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300}
	holdBounds = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600}
)

// newMeters creates the instruments.
func newMeters(meter metric.Meter, l *labels) (*meters, error) {
	m := &meters{labels: l, meter: meter}
	var errs []error
	counter := func(name, unit, what string) metric.Int64Counter {
		c, err := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(what))
		errs = append(errs, err)
		return c
	}
	histogram := func(name, what string, bounds []float64) metric.Float64Histogram {
		h, err := meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(what), metric.WithExplicitBucketBoundaries(bounds...))
		errs = append(errs, err)
		return h
	}
	m.waits = histogram("latchkey.wait.duration", "How long calls took to succeed or to give up.", waitBounds)
	m.held = histogram("latchkey.hold.duration", "How long locks and permits were held.", holdBounds)
	m.losses = counter("latchkey.losses", "{hold}", "Holds that ended without a release.")
	m.attempts = counter("latchkey.attempts", "{attempt}", "Attempts to acquire a lock or permits on the server.")
	m.renewals = counter("latchkey.renewals", "{renewal}", "Renewals of leases.")
	m.undone = counter("latchkey.undone", "{acquisition}", "Acquisitions that were undone because no caller received them.")
	m.acquired = counter("latchkey.permits.acquired", "{permit}", "Permits of semaphores without ids that were acquired.")
	m.released = counter("latchkey.permits.released", "{permit}", "Permits of semaphores without ids that were released.")
	m.countdowns = counter("latchkey.latch.countdowns", "{call}", "Calls that counted a latch down.")
	var err error
	m.holds, err = meter.Int64UpDownCounter("latchkey.holds", metric.WithUnit("{hold}"), metric.WithDescription("Locks and permits that are held now."))
	return m, errors.Join(append(errs, err)...)
}

// record adds an event to the metrics. It starts each series that an alert reads at 0, before there
// is anything to count: Prometheus sees no increase in a series that starts at 1.
func (m *meters) record(e latchkey.Event) {
	ctx, kind := e.Context, m.of(e, "")
	switch e.Type {
	case latchkey.EventAttempt:
		m.attempts.Add(ctx, 1, m.of(e, outcomeOf(e, OutcomeAcquired)))
	case latchkey.EventAcquired:
		m.waits.Record(ctx, e.Wait.Seconds(), m.of(e, OutcomeAcquired))
		switch {
		case e.Kind == latchkey.KindSemaphore:
			m.acquired.Add(ctx, int64(e.Count), kind)
		case !e.Reentry:
			m.holds.Add(ctx, 1, kind)
			m.losses.Add(ctx, 0, m.of(e, OutcomeLost))
			m.losses.Add(ctx, 0, m.of(e, OutcomeMaxHold))
		}
	case latchkey.EventOpened:
		m.waits.Record(ctx, e.Wait.Seconds(), m.of(e, OutcomeOpened))
	case latchkey.EventGaveUp:
		m.waits.Record(ctx, e.Wait.Seconds(), m.of(e, failure(e.Err)))
	case latchkey.EventReleased:
		if e.Kind == latchkey.KindSemaphore {
			m.released.Add(ctx, int64(e.Count), kind)
			return
		}
		m.holds.Add(ctx, -1, kind)
		m.held.Record(ctx, e.Held.Seconds(), m.of(e, OutcomeReleased))
	case latchkey.EventLost:
		m.holds.Add(ctx, -1, kind)
		m.held.Record(ctx, e.Held.Seconds(), m.of(e, failure(e.Err)))
		m.losses.Add(ctx, 1, m.of(e, failure(e.Err)))
	case latchkey.EventRenewed:
		m.renewals.Add(ctx, 1, m.of(e, OutcomeRenewed))
		m.renewals.Add(ctx, 0, m.of(e, OutcomeUnavailable))
	case latchkey.EventRenewalFailed:
		m.renewals.Add(ctx, 1, m.of(e, failure(e.Err)))
	case latchkey.EventUndone:
		m.undone.Add(ctx, 1, kind)
	case latchkey.EventCountedDown:
		m.countdowns.Add(ctx, 1, kind)
	}
}
