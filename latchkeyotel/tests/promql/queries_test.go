package promql

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeyotel"
	"github.com/latchkey-go/latchkey/latchkeytest"
)

const soon = 30 * time.Second

// program stands for a program that uses locks, with its metrics.
type program struct {
	*server

	observer *latchkeyotel.Observer
	events   chan latchkey.EventType
	longer   time.Duration // added to the length of each wait
	redis    *latchkeytest.Server
	client   *latchkey.Client
	name     int
}

func newProgram(t *testing.T) *program {
	t.Helper()
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry))
	require.NoError(t, err)
	p := &program{server: newServer(registry), redis: latchkeytest.NewServer(t), events: make(chan latchkey.EventType, 10_000)}
	p.observer, err = latchkeyotel.New(
		latchkeyotel.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))),
		latchkeyotel.WithNext(func(e latchkey.Event) { p.events <- e.Type }),
	)
	require.NoError(t, err)
	p.client = p.redis.Client(latchkey.Options{
		Lease: 2 * time.Second, RetryBudget: 2 * time.Second, Tuning: latchkey.Tuning{StaleWaiterTimeout: time.Minute}, Logger: slog.New(slog.DiscardHandler),
		Observer: func(e latchkey.Event) {
			e.Wait += p.longer
			p.observer.Observe(e)
		},
	})
	return p
}

// await waits until an event of each of these types is recorded, in any order.
func (p *program) await(t *testing.T, want ...latchkey.EventType) {
	t.Helper()
	for timeout := time.After(soon); len(want) > 0; {
		select {
		case is := <-p.events:
			want = slices.DeleteFunc(want, func(each latchkey.EventType) bool { return each == is })
		case <-timeout:
			require.Fail(t, "there was no event", want)
		}
	}
}

// scrapes reads the metrics for six minutes of Prometheus' time, and calls during before each
// scrape.
func (p *program) scrapes(t *testing.T, during func()) {
	t.Helper()
	for range int(6 * time.Minute / interval) {
		during()
		p.scrape(t)
	}
}

// work uses a lock without problems.
func (p *program) work(t *testing.T) {
	t.Helper()
	require.NoError(t, p.client.NewLock("job").Do(t.Context(), func(context.Context) error { return nil }))
	p.await(t, latchkey.EventReleased)
}

// other uses objects that are not locks, and watches some.
func (p *program) other(t *testing.T) {
	t.Helper()
	pool, gate, fair := p.client.NewSemaphore("pool"), p.client.NewCountDownLatch("gate"), p.client.NewFairLock("line")
	_, err := pool.TrySetPermits(t.Context(), 2)
	require.NoError(t, err)
	_, err = gate.TrySetCount(t.Context(), 1000)
	require.NoError(t, err)
	require.NoError(t, pool.Acquire(t.Context()))
	require.NoError(t, pool.Release(t.Context()))
	_, err = gate.CountDown(t.Context())
	require.NoError(t, err)
	if p.name++; p.name == 1 {
		_, err = p.observer.Watch(pool, gate, fair)
		require.NoError(t, err)
		t.Cleanup(p.observer.WatchClient(p.client))
		lock := p.client.NewLock("busy")
		hold, err := lock.Lock(t.Context())
		require.NoError(t, err)
		stop := p.wait(t, 1, latchkey.KindLock, func(ctx context.Context) error { _, err := lock.Lock(ctx); return err })
		p.scrape(t)
		stop()
		require.NoError(t, hold.Unlock(t.Context()))
	}
	// A real event of this type needs a network that loses a reply.
	p.observer.Observe(latchkey.Event{Type: latchkey.EventUndone, Kind: latchkey.KindLock, Context: t.Context()})
}

// wait makes that many calls wait until the test or stop ends them.
func (p *program) wait(t *testing.T, n int, kind latchkey.Kind, call func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range n {
		all.Go(func() { assert.ErrorIs(t, call(ctx), context.Canceled) })
	}
	stop = func() { cancel(); all.Wait() }
	t.Cleanup(stop)
	require.Eventually(t, func() bool { return p.client.Waiting()[kind] == n }, soon, time.Millisecond)
	return stop
}

// stored returns a function that changes a key on the server.
func (p *program) stored(t *testing.T) (change func(command string, keyAndArgs ...string)) {
	t.Helper()
	options, err := rueidis.ParseURL(p.redis.URL())
	require.NoError(t, err)
	options.DisableCache = true
	client, err := rueidis.NewClient(options)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return func(command string, keyAndArgs ...string) {
		cmd := client.B().Arbitrary(command).Keys(keyAndArgs[0]).Args(keyAndArgs[1:]...).Build()
		require.NoError(t, client.Do(t.Context(), cmd).Error())
	}
}

// entries returns scores and owners for a queue.
func entries(n int) (all []string) {
	for i := range n {
		all = append(all, strconv.Itoa(i+1), fmt.Sprintf("6c9e7d7a-2b1f-4a55-9f0e-1d2c3b4a5968:%d", i+1))
	}
	return all
}

// renewed holds a lock until it is renewed.
func (p *program) renewed(t *testing.T) {
	t.Helper()
	hold, err := p.client.NewLock("long").Lock(t.Context())
	require.NoError(t, err)
	p.await(t, latchkey.EventRenewed)
	require.NoError(t, hold.Unlock(t.Context()))
	p.await(t, latchkey.EventReleased)
}

// trouble makes renewals and calls fail, and loses holds.
func (p *program) trouble(t *testing.T) {
	t.Helper()
	hold, err := p.client.NewLock("long").Lock(t.Context())
	require.NoError(t, err)
	p.redis.Refuse("LOADING Redis is loading the dataset in memory")
	_, err = p.client.NewLock("other").TryLock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrUnavailable)
	<-hold.Lost()
	p.await(t, latchkey.EventGaveUp, latchkey.EventLost)
	p.redis.Refuse("")
	hold, err = p.client.NewLock("limited").Lock(t.Context(), latchkey.MaxHold(time.Second))
	require.NoError(t, err)
	<-hold.Lost()
	p.await(t, latchkey.EventLost)
}

// alerts returns the expressions of the rules by the names of the alerts.
func alerts(t *testing.T) map[string]string {
	t.Helper()
	groups, errs := rulefmt.ParseFile("../../alerts/latchkey.yaml", false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.Default())
	require.Empty(t, errs)
	all := map[string]string{}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			assert.NotEmpty(t, rule.Annotations["summary"], rule.Alert)
			assert.NotEmpty(t, rule.Annotations["description"], rule.Alert)
			all[rule.Alert] = rule.Expr
		}
	}
	require.NotEmpty(t, all)
	return all
}

// firing returns the alerts whose expressions are true now.
func (p *program) firing(t *testing.T) (names []string) {
	t.Helper()
	for name, expr := range alerts(t) {
		if len(p.query(t, expr)) > 0 {
			names = append(names, name)
		}
	}
	return names
}

// Each alert fires in its own situation, and in no other.
func TestAlertRules(t *testing.T) {
	p := newProgram(t)
	p.scrape(t)
	p.scrapes(t, func() { p.work(t); p.renewed(t) })
	assert.Empty(t, p.firing(t), "all is well")

	p.trouble(t)
	p.scrape(t)
	assert.ElementsMatch(t, []string{"LatchkeyHoldsLost", "LatchkeyMaxHoldReached", "LatchkeyRenewalsFail"},
		p.firing(t), "after the first hold that was ever lost")
	p.trouble(t)
	p.scrape(t)
	assert.Contains(t, p.firing(t), "LatchkeyServerUnavailable", "it goes on")

	p.scrapes(t, func() { p.work(t) })
	assert.Empty(t, p.firing(t), "the trouble is over")

	p.longer = 7 * time.Second
	p.scrapes(t, func() { p.work(t) })
	assert.Equal(t, []string{"LatchkeyWaitsLong"}, p.firing(t))
	p.longer = 0

	// 101 calls, of which only the first asks the server, and a queue of 101 owners of other
	// programs.
	line := p.client.NewLock("line")
	_, err := p.observer.Watch(line)
	require.NoError(t, err)
	defer p.observer.WatchClient(p.client)()
	other := p.redis.Client() // its holds are not of this program
	held, err := other.NewMutex("many").Lock(t.Context())
	require.NoError(t, err)
	_, err = other.NewLock("line").Lock(t.Context())
	require.NoError(t, err)
	stop := p.wait(t, 101, latchkey.KindMutex, func(ctx context.Context) error {
		_, err := p.client.NewMutex("many").Lock(ctx)
		return err
	})
	change := p.stored(t)
	change("ZADD", append([]string{"latchkey_queue:{line}"}, entries(101)...)...)
	p.scrapes(t, func() {})
	assert.ElementsMatch(t, []string{"LatchkeyManyCallsWait", "LatchkeyQueueLong"}, p.firing(t))
	stop()
	require.NoError(t, held.Unlock(t.Context()))
	change("DEL", "latchkey_queue:{line}")
	p.scrapes(t, func() { p.work(t) })
	assert.Empty(t, p.firing(t), "nobody waits")

	_, err = p.client.NewLock("fixed").Lock(t.Context(), latchkey.Lease(time.Hour))
	require.NoError(t, err)
	p.scrapes(t, func() { p.work(t) })
	assert.Empty(t, p.firing(t), "others end")
	renewed, err := p.client.NewLock("renewed").Lock(t.Context())
	require.NoError(t, err)
	p.scrapes(t, func() { p.await(t, latchkey.EventRenewed) })
	assert.Empty(t, p.firing(t), "others are renewed")
	require.NoError(t, renewed.Unlock(t.Context()))
	p.await(t, latchkey.EventReleased)
	p.scrapes(t, func() {})
	assert.Equal(t, []string{"LatchkeyNoRenewals"}, p.firing(t))
}

// queries returns the queries of the dashboard by the titles of their panels.
func queries(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../grafana/latchkey.json")
	require.NoError(t, err)
	var dashboard struct {
		Panels []struct {
			Title, Description string
			Targets            []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &dashboard))
	variables := strings.NewReplacer("$__rate_interval", "1m", "$kind", ".*")
	all := map[string][]string{}
	for _, panel := range dashboard.Panels {
		assert.NotEmpty(t, panel.Description, panel.Title)
		for _, target := range panel.Targets {
			all[panel.Title] = append(all[panel.Title], variables.Replace(target.Expr))
		}
	}
	require.NotEmpty(t, all)
	return all
}

// Each query of the dashboard has data, and each metric is on the dashboard.
func TestDashboard(t *testing.T) {
	p := newProgram(t)
	for range 3 {
		p.work(t)
		p.renewed(t)
		p.other(t)
		p.trouble(t)
		p.scrape(t)
	}
	var texts []string
	for title, list := range queries(t) {
		require.NotEmpty(t, list, title)
		for _, query := range list {
			result := p.query(t, query)
			assert.NotEmpty(t, result, "%s: %s", title, query)
			for _, series := range result {
				assert.False(t, series.F != series.F, "%s: %s is no number", title, query) //nolint:testifylint // NaN
			}
			texts = append(texts, query)
		}
	}
	all := strings.Join(texts, "\n")
	for name := range p.names {
		if strings.HasPrefix(name, "latchkey_") {
			assert.Contains(t, all, name, "it is not on the dashboard")
		}
	}
}
