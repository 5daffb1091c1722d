package tests

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeyotel"
	"github.com/latchkey-go/latchkey/latchkeytest"
)

// soon is how long a busy machine may take for something that should happen at once.
const soon = 30 * time.Second

// goroutines returns a group for goroutines that may fail the test. The test does not end before
// they do: one that fails a test that has ended would end the whole run.
func goroutines(t *testing.T) *sync.WaitGroup {
	t.Helper()
	all := new(sync.WaitGroup)
	t.Cleanup(all.Wait)
	return all
}

// bench is an observer whose metrics and spans a test reads.
type bench struct {
	observer *latchkeyotel.Observer
	reader   *metric.ManualReader
	spans    *tracetest.SpanRecorder
	tracers  *trace.TracerProvider
	events   chan latchkey.Event // after they were recorded
}

func newBench(t *testing.T, options ...latchkeyotel.Option) *bench {
	t.Helper()
	b := &bench{
		reader: metric.NewManualReader(), spans: tracetest.NewSpanRecorder(), events: make(chan latchkey.Event, 100_000),
	}
	b.tracers = trace.NewTracerProvider(trace.WithSpanProcessor(b.spans))
	options = append([]latchkeyotel.Option{
		latchkeyotel.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(b.reader))),
		latchkeyotel.WithTracerProvider(b.tracers),
		latchkeyotel.WithNext(func(e latchkey.Event) { b.events <- e }),
	}, options...)
	var err error
	b.observer, err = latchkeyotel.New(options...)
	require.NoError(t, err)
	return b
}

// client returns a client that the observer observes.
func (b *bench) client(server *latchkeytest.Server, o latchkey.Options) *latchkey.Client {
	o.Observer = b.observer.Observe
	return server.Client(o)
}

// await waits for the next recorded event of that type and returns it.
func (b *bench) await(t *testing.T, is latchkey.EventType) latchkey.Event {
	t.Helper()
	for timeout := time.After(soon); ; {
		select {
		case e := <-b.events:
			if e.Type == is {
				return e
			}
		case <-timeout:
			require.Fail(t, "there was no event", is)
		}
	}
}

// values returns the sums, the gauges and the counts of the histograms by "name{values of the
// attributes}".
func (b *bench) values(t *testing.T) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, b.reader.Collect(context.Background(), &all))
	values := map[string]int64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				addPoints(values, m.Name, data.DataPoints)
			case metricdata.Gauge[int64]:
				addPoints(values, m.Name, data.DataPoints)
			case metricdata.Histogram[float64]:
				require.Equal(t, "s", m.Unit)
				for _, p := range data.DataPoints {
					values[series(m.Name, p.Attributes)] = int64(p.Count) //nolint:gosec // it is small
				}
			default:
				require.Fail(t, "what is it?", "%s %T", m.Name, m.Data)
			}
		}
	}
	return values
}

func addPoints(values map[string]int64, name string, points []metricdata.DataPoint[int64]) {
	for _, p := range points {
		values[series(name, p.Attributes)] = p.Value
	}
}

func series(name string, attrs attribute.Set) string {
	var list []string
	for _, attr := range attrs.ToSlice() {
		list = append(list, attr.Value.String())
	}
	return fmt.Sprintf("%s{%s}", name, strings.Join(list, ","))
}

// span returns the latest span with that name and outcome.
func (b *bench) span(t *testing.T, name, outcome string) trace.ReadOnlySpan {
	t.Helper()
	ended := b.spans.Ended()
	slices.Reverse(ended)
	i := slices.IndexFunc(ended, func(s trace.ReadOnlySpan) bool {
		return s.Name() == name && slices.Contains(s.Attributes(), latchkeyotel.OutcomeKey.String(outcome))
	})
	require.GreaterOrEqual(t, i, 0, "there is no span %s, %s, of %d", name, outcome, len(ended))
	return ended[i]
}
