package latchkeyotel

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/latchkey-go/latchkey"
)

// watchPatience limits how long a collection queries the server for all objects. Values that have
// not arrived by then are missing from that collection.
const watchPatience = 2 * time.Second

// Object is a named object of a client, such as a [latchkey.Semaphore].
type Object interface{ Name() string }

// Watch adds metrics whose values each collection queries from the server, with the names of the
// objects as the attribute latchkey.name. It takes
//
//   - a [latchkey.Lock], [latchkey.RWLock], [latchkey.Election] or [latchkey.Barrier]:
//     latchkey.waiters
//   - a [latchkey.Semaphore]: latchkey.permits.available, latchkey.permits.limit
//   - a [latchkey.PermitSemaphore]: all three
//   - a [latchkey.CountDownLatch]: latchkey.latch.count
//
// and returns an error for anything else, such as nil or the read side of an RWLock.
// latchkey.waiters is the length of the queue on the server, of all processes. The queue of a fair
// lock or semaphore, of writers and of a barrier has each waiter. The queue of another lock or
// PermitSemaphore has each client once, for all its goroutines: [Observer.WatchClient] counts
// those. The waiters of a latch, and readers, are in no queue, and those of a Semaphore are not
// queried.
//
// An object that is not set has no values. Each object costs one to three round trips per
// collection. A collection takes 2 s at most: later values are missing, and the error goes to the
// OpenTelemetry error handler. Watch an object in one process only; otherwise each process reports
// the same values.
//
// Unregister the result before you close the client of the objects.
func (o *Observer) Watch(objects ...Object) (metric.Registration, error) {
	gauges, err := newGauges(o.meters.meter)
	if err != nil {
		return nil, err
	}
	looks := make([]look, len(objects))
	for i, object := range objects {
		if v := reflect.ValueOf(object); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
			return nil, fmt.Errorf("latchkeyotel: object %d of %d is nil", i+1, len(objects))
		}
		if looks[i] = gauges.lookAt(object); looks[i] == nil {
			return nil, fmt.Errorf("latchkeyotel: a %T cannot be watched: it has no queue on the server", object)
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
	g.waiters, errs[0] = meter.Int64ObservableGauge("latchkey.waiters", metric.WithUnit("{waiter}"), metric.WithDescription("Waiters in the queue of an object on the server."))
	g.available, errs[1] = meter.Int64ObservableGauge("latchkey.permits.available", metric.WithUnit("{permit}"), metric.WithDescription("Available permits of a semaphore."))
	g.limit, errs[2] = meter.Int64ObservableGauge("latchkey.permits.limit", metric.WithUnit("{permit}"), metric.WithDescription("Total permits of a semaphore."))
	g.count, errs[3] = meter.Int64ObservableGauge("latchkey.latch.count", metric.WithUnit("{count}"), metric.WithDescription("Remaining count of a latch."))
	return g, errors.Join(errs[:]...)
}

// lookAt returns how to query an object, or nil if it cannot be watched.
func (g gauges) lookAt(object Object) look {
	switch o := object.(type) {
	case *latchkey.Lock:
		switch o.Kind() {
		case latchkey.KindRead:
			return nil
		case latchkey.KindFair:
			return g.listed(latchkey.KindFair, o)
		}
		return g.queued(o.Kind(), o)
	case *latchkey.RWLock:
		return g.queued(latchkey.KindRWLock, o.Writer())
	case *latchkey.Election:
		return g.queued(latchkey.KindElection, o)
	case *latchkey.Barrier:
		return g.queued(latchkey.KindBarrier, o)
	case *latchkey.PermitSemaphore:
		waiters, permits := g.listed(o.Kind(), o), g.permits(o.Kind(), o)
		return func(ctx context.Context, to metric.Observer) error {
			return errors.Join(waiters(ctx, to), permits(ctx, to))
		}
	case *latchkey.Semaphore:
		return g.permits(latchkey.KindSemaphore, o)
	case *latchkey.CountDownLatch:
		return g.latch(o)
	}
	return nil
}

// inspected is an object that the server can be asked about.
type inspected interface {
	Object
	Inspect(ctx context.Context) (latchkey.Object, error)
}

// queued observes how many waiters the server counts in the queue of an object.
func (g gauges) queued(kind latchkey.Kind, o inspected) look {
	of := watched(kind, o)
	return func(ctx context.Context, to metric.Observer) error {
		found, err := o.Inspect(ctx)
		if err == nil {
			to.ObserveInt64(g.waiters, int64(found.Queued), of)
		}
		return err
	}
}

// lister is an object whose queue may have entries of waiters that have left, which its list leaves
// out.
type lister interface {
	Object
	Waiters(ctx context.Context) ([]latchkey.Waiter, error)
}

// listed observes how many waiters an object lists.
func (g gauges) listed(kind latchkey.Kind, o lister) look {
	of := watched(kind, o)
	return func(ctx context.Context, to metric.Observer) error {
		waiters, err := o.Waiters(ctx)
		if err == nil {
			to.ObserveInt64(g.waiters, int64(len(waiters)), of)
		}
		return err
	}
}

// permits observes the permits of a semaphore.
func (g gauges) permits(kind latchkey.Kind, o inspected) look {
	of := watched(kind, o)
	return func(ctx context.Context, to metric.Observer) error {
		found, err := o.Inspect(ctx)
		if err != nil || found.Kind == latchkey.KindNone {
			return err
		}
		to.ObserveInt64(g.available, int64(found.Available), of)
		if kind != latchkey.KindSemaphore || found.Total > 0 { // the total of a Semaphore of Redisson is unknown
			to.ObserveInt64(g.limit, int64(found.Total), of)
		}
		return nil
	}
}

// latch observes the remaining count of a latch.
func (g gauges) latch(o *latchkey.CountDownLatch) look {
	of := watched(latchkey.KindLatch, o)
	return func(ctx context.Context, to metric.Observer) error {
		count, err := o.Count(ctx)
		if err == nil {
			to.ObserveInt64(g.count, int64(count), of)
		}
		return err
	}
}

// watched returns the attributes of a watched object.
func watched(kind latchkey.Kind, o Object) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(KindKey.String(string(kind)), NameKey.String(o.Name())))
}
