package latchkey

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// identityAge is how long a client relies on the identity of its server if it does not own its
// connections, and so does not see them break.
const identityAge = 10 * time.Second

// serverPatience is how long callers wait for a server to identify itself.
const serverPatience = 50 * time.Millisecond

// serverIdentity is the run id of the server of a client. The client queries it once, and again
// after a connection has broken: another server may have taken its place.
type serverIdentity struct {
	queryMu transport.FIFOMutex // of the goroutine that queries the server

	mu         sync.Mutex
	known      bool
	id         string // "" if the server does not say
	generation transport.Generation
	at         time.Time
	since      time.Time // when the first query without an answer was sent, or zero
}

// knownServerID returns the identity of the server, if it can still be relied on.
func (c *Client) knownServerID() (id string, known bool) {
	if c.cluster {
		return "", true
	}
	i := &c.serverIdentity
	i.mu.Lock()
	defer i.mu.Unlock()
	fresh := i.known && c.topology.IsStill(i.generation) && (c.owned || time.Since(i.at) < identityAge)
	return i.id, fresh
}

// serverID returns the identity of the server, "" if the server does not say. known is false if the
// server may still answer.
func (c *Client) serverID(ctx context.Context) (id string, known bool) {
	if c.begin(context.Background()) != nil {
		return "", true
	}
	defer c.working.Done()
	if c.serverIdentity.queryMu.Lock(ctx) != nil {
		return "", false
	}
	defer c.serverIdentity.queryMu.Unlock()
	if id, known := c.knownServerID(); known {
		return id, true
	}
	return c.queryServerID(ctx)
}

// queryServerID is serverID with queryMu held.
func (c *Client) queryServerID(ctx context.Context) (id string, known bool) {
	i := &c.serverIdentity
	generation := c.topology.Generation()
	i.mu.Lock()
	if i.since.IsZero() {
		i.since = time.Now()
	}
	i.mu.Unlock()
	_, reply := c.sender.QueryAnyNode(ctx, func(ctx context.Context, client rueidis.Client) rueidis.RedisResult {
		return client.Do(ctx, client.B().Info().Section("server").Build())
	})
	info, err := reply.ToString()
	if err != nil && !transport.Declined(err) {
		return "", false
	}
	_, id, _ = strings.Cut(info, "run_id:")
	id, _, _ = strings.Cut(id, "\r")
	i.mu.Lock()
	defer i.mu.Unlock()
	i.known, i.id, i.generation, i.at, i.since = true, id, generation, time.Now(), time.Time{}
	return id, true
}

// overdue reports whether the server has not answered within serverPatience.
func (i *serverIdentity) overdue() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return !i.since.IsZero() && time.Since(i.since) >= serverPatience
}
