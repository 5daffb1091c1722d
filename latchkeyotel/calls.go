package latchkeyotel

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/metric"

	"github.com/latchkey-go/latchkey"
)

// calls observes how many calls wait in the watched clients.
type calls struct {
	mu      sync.Mutex
	watches map[*clientWatch]struct{}
	known   map[latchkey.Kind]struct{} // kinds that have been observed
}

// clientWatch is one call of WatchClient.
type clientWatch struct{ client *latchkey.Client }

// newCalls creates the instrument.
func newCalls(meter metric.Meter) (*calls, error) {
	c := &calls{watches: map[*clientWatch]struct{}{}, known: map[latchkey.Kind]struct{}{}}
	_, err := meter.Int64ObservableUpDownCounter("latchkey.calls.waiting", metric.WithUnit("{call}"),
		metric.WithDescription("Calls of this process that wait now."), metric.WithInt64Callback(c.observe))
	return c, err
}

// WatchClient adds the calls of a client that wait to latchkey.calls.waiting, by kind, until stop
// is called. Each collection reads the number from the client ([latchkey.Client.Waiting]): it
// cannot drift, and sends nothing. If you watch several clients, the metric has their sums. Call
// WatchClient once for each client, and stop when you close the client. For a nil client it does
// nothing.
func (o *Observer) WatchClient(c *latchkey.Client) (stop func()) {
	if c == nil {
		return func() {}
	}
	return o.calls.watch(&clientWatch{c})
}

func (c *calls) watch(w *clientWatch) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watches[w] = struct{}{}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.watches, w)
	}
}

// observe adds up the clients. A kind for which calls have waited continues with 0, so that its
// series has no gaps.
func (c *calls) observe(_ context.Context, to metric.Int64Observer) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.watches) == 0 {
		return nil
	}
	sums := map[latchkey.Kind]int{}
	for w := range c.watches {
		for kind, n := range w.client.Waiting() {
			sums[kind] += n
			c.known[kind] = struct{}{}
		}
	}
	for kind := range c.known {
		to.Observe(int64(sums[kind]), metric.WithAttributes(KindKey.String(string(kind))))
	}
	return nil
}
