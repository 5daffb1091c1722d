package latchkeyotel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/latchkey-go/latchkey"
)

// watchPatience limits how long a collection queries the server for all objects. Values that have not arrived by then
// are missing from that collection.
const watchPatience = 2 * time.Second

// Object is a named object of a client, such as a [latchkey.Semaphore].
type Object interface{ Name() string }

// Watch adds metrics whose values each collection queries from the server, with the names of the objects as the
// attribute latchkey.name. It takes a [latchkey.FairLock] (latchkey.waiters), a [latchkey.Semaphore] or a
// [latchkey.PermitSemaphore] (latchkey.permits.available, latchkey.permits.limit), a [latchkey.FairSemaphore] (all
// three), and a [latchkey.CountDownLatch] (latchkey.latch.count), and returns an error for anything else. An object that
// is not set has no values.
//
// Each object costs a round trip per collection; a [latchkey.FairSemaphore] costs two. A collection takes 2 s at most:
// later values are missing, and the error goes to the OpenTelemetry error handler. Watch an object in one process only;
// otherwise each process reports the same values.
//
// Unregister the result before you close the client of the objects.
func (o *Observer) Watch(objects ...Object) (metric.Registration, error) {
	gauges, err := newGauges(o.meters.meter)
	if err != nil {
		return nil, err
	}
	looks := make([]look, len(objects))
	for i, object := range objects {
		if looks[i] = gauges.lookAt(object); looks[i] == nil {
			return nil, fmt.Errorf("latchkeyotel: a %T cannot be watched: it is not a fair lock, a semaphore or a latch", object)
		}
	}
	collect := func(ctx context.Context, to metric.Observer) error {
		ctx, cancel := context.WithTimeout(ctx, watchPatience)
		defer cancel()
		var errs []error
		for _, look := range looks {
			if err := look(ctx, to); !errors.Is(err, latchkey.ErrNotSet) {
				errs = append(errs, err)
			}
		}
		return errors.Join(errs...)
	}
	return o.meters.meter.RegisterCallback(collect, gauges.waiters, gauges.available, gauges.limit, gauges.count)
}

// look queries the server for the values of an object.
type look func(context.Context, metric.Observer) error

// gauges are the instruments of watched objects.
type gauges struct{ waiters, available, limit, count metric.Int64ObservableGauge }

func newGauges(meter metric.Meter) (g gauges, err error) {
	var errs [4]error
	g.waiters, errs[0] = meter.Int64ObservableGauge("latchkey.waiters", metric.WithUnit("{waiter}"), metric.WithDescription("Waiters in the queue of a fair lock or a fair semaphore."))
	g.available, errs[1] = meter.Int64ObservableGauge("latchkey.permits.available", metric.WithUnit("{permit}"), metric.WithDescription("Available permits of a semaphore."))
	g.limit, errs[2] = meter.Int64ObservableGauge("latchkey.permits.limit", metric.WithUnit("{permit}"), metric.WithDescription("Total permits of a semaphore."))
	g.count, errs[3] = meter.Int64ObservableGauge("latchkey.latch.count", metric.WithUnit("{count}"), metric.WithDescription("Remaining count of a latch."))
	return g, errors.Join(errs[:]...)
}

// lookAt returns how to query an object, or nil if it cannot be watched.
func (g gauges) lookAt(object Object) look {
	switch o := object.(type) {
	case *latchkey.FairLock:
		of := watched(latchkey.KindFair, o)
		return func(ctx context.Context, to metric.Observer) error {
			waiters, err := o.Waiters(ctx)
			if err == nil {
				to.ObserveInt64(g.waiters, int64(len(waiters)), of)
			}
			return err
		}
	case *latchkey.Semaphore:
		of := watched(latchkey.KindSemaphore, o)
		return func(ctx context.Context, to metric.Observer) error {
			stats, err := o.Stats(ctx)
			if err == nil {
				to.ObserveInt64(g.available, int64(stats.Available), of)
			}
			if err == nil && stats.TotalKnown {
				to.ObserveInt64(g.limit, int64(stats.Total), of)
			}
			return err
		}
	case *latchkey.PermitSemaphore:
		of := watched(latchkey.KindPermit, o)
		return func(ctx context.Context, to metric.Observer) error {
			stats, err := o.Stats(ctx)
			if err == nil {
				to.ObserveInt64(g.available, int64(stats.Available), of)
				to.ObserveInt64(g.limit, int64(stats.Total), of)
			}
			return err
		}
	case *latchkey.FairSemaphore:
		of := watched(latchkey.KindFairPermit, o)
		return func(ctx context.Context, to metric.Observer) error {
			waiters, err := o.Waiters(ctx)
			if err != nil {
				return err
			}
			to.ObserveInt64(g.waiters, int64(len(waiters)), of)
			stats, err := o.Stats(ctx)
			if err == nil {
				to.ObserveInt64(g.available, int64(stats.Available), of)
				to.ObserveInt64(g.limit, int64(stats.Total), of)
			}
			return err
		}
	case *latchkey.CountDownLatch:
		of := watched(latchkey.KindLatch, o)
		return func(ctx context.Context, to metric.Observer) error {
			count, err := o.Count(ctx)
			if err == nil {
				to.ObserveInt64(g.count, int64(count), of)
			}
			return err
		}
	}
	return nil
}

// watched returns the attributes of a watched object.
func watched(kind latchkey.Kind, o Object) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(KindKey.String(string(kind)), NameKey.String(o.Name())))
}
