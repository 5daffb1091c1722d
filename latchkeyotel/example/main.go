// Command example uses locks on a server inside its process and serves their metrics to Prometheus:
//
//	go run ./latchkeyotel/example
//	curl http://localhost:9464/metrics
//
// With Docker, compose.yaml starts it together with a Prometheus that has the alert rules, and a
// Grafana that shows the dashboard.
package main

import (
	"context"
	"errors"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeyotel"
	"github.com/latchkey-go/latchkey/latchkeytest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "localhost:9464")
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("metrics are at http://%s/metrics; press ctrl-c to end", listener.Addr())
	if err := run(ctx, listener); err != nil {
		log.Fatal(err)
	}
}

// run uses locks and serves the metrics until ctx ends.
func run(ctx context.Context, listener net.Listener) error {
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry))
	if err != nil {
		return err
	}
	meters := metric.NewMeterProvider(metric.WithReader(reader))
	defer func() { _ = meters.Shutdown(context.Background()) }() // after the clients are closed
	observer, err := latchkeyotel.New(latchkeyotel.WithMeterProvider(meters))
	if err != nil {
		return err
	}

	redis, err := latchkeytest.Start() // a real program calls latchkey.Connect
	if err != nil {
		return err
	}
	defer redis.Close()
	client := redis.Client(latchkey.Options{Observer: observer.Observe})
	pool := client.NewSemaphore("pool")
	if _, err := pool.TrySetPermits(ctx, 2); err != nil {
		return err
	}
	watch, err := observer.Watch(pool)
	if err != nil {
		return err
	}
	defer func() { _ = watch.Unregister() }()
	defer observer.WatchClient(client)()

	var all sync.WaitGroup
	defer all.Wait()
	for range 4 {
		all.Go(func() { work(ctx, client, pool) })
	}
	server := &http.Server{Handler: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), ReadHeaderTimeout: time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// work acquires a lock and a permit repeatedly. It waits only briefly for the lock, so that some
// calls give up.
func work(ctx context.Context, client *latchkey.Client, pool *latchkey.Semaphore) {
	report := client.NewLock("report")
	for ctx.Err() == nil {
		err := report.Do(ctx, pause, latchkey.Wait(50*time.Millisecond))
		if err != nil && !errors.Is(err, latchkey.ErrNotAcquired) && ctx.Err() == nil {
			log.Print(err)
		}
		if pool.AcquireN(ctx, 1) == nil {
			_ = pause(ctx)
			_ = pool.ReleaseN(context.WithoutCancel(ctx), 1) // the embedded server does not fail
		}
	}
}

// pause simulates work that takes some time.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-time.After(rand.N(40 * time.Millisecond)): //nolint:gosec // no secret
	}
	return nil
}
