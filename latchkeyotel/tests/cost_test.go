package tests

import (
	"context"
	"testing"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeyotel"
)

// BenchmarkObserve measures the cost of the events of one uncontended Lock and Unlock, without the
// lock itself.
func BenchmarkObserve(b *testing.B) {
	meters := latchkeyotel.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(metric.NewManualReader())))
	for name, options := range map[string][]latchkeyotel.Option{
		"metrics":            {meters, latchkeyotel.WithTracerProvider(noop.NewTracerProvider())},
		"metrics-with-names": {meters, latchkeyotel.WithTracerProvider(noop.NewTracerProvider()), latchkeyotel.WithNames()},
		"nothing":            {latchkeyotel.WithMeterProvider(metricnoop.NewMeterProvider()), latchkeyotel.WithTracerProvider(noop.NewTracerProvider())},
	} {
		b.Run(name, func(b *testing.B) {
			o, err := latchkeyotel.New(options...)
			if err != nil {
				b.Fatal(err)
			}
			e := latchkey.Event{Kind: latchkey.KindLock, Name: "orders:42", Context: context.Background(), Time: time.Now(), Wait: time.Millisecond}
			b.ReportAllocs()
			for b.Loop() {
				for _, e.Type = range []latchkey.EventType{latchkey.EventAttempt, latchkey.EventAcquired, latchkey.EventReleased} {
					o.Observe(e)
				}
			}
		})
	}
}
