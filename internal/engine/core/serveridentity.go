package core

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/transport/nodes"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// identityAge is how long a client relies on the identity of its server if it does not own its
// connections, and so does not see them break.
const identityAge = 10 * time.Second

// identityPatience is how long a query for the identity may take.
const identityPatience = 500 * time.Millisecond

// serverIdentity is the run id that the server of a client has told last. The client queries it
// again after a connection has broken: another server may have taken its place.
type serverIdentity struct {
	told     atomic.Pointer[toldIdentity] // or nil
	querying atomic.Bool
}

type toldIdentity struct {
	id         string // "" if the server does not say
	generation nodes.Generation
	at         time.Time
}

// ServerID returns the identity that the server has told last, or "". If it is not known, or may
// have changed, the client queries it in the background.
func (c *Parts) ServerID() string {
	if c.Cluster {
		return ""
	}
	i := &c.serverIdentity
	told := i.told.Load()
	fresh := told != nil && c.Topology.IsStill(told.generation) && (c.owned || time.Since(told.at) < identityAge)
	if !fresh && i.querying.CompareAndSwap(false, true) {
		go c.queryServerID()
	}
	if told == nil {
		return ""
	}
	return told.id
}

func (c *Parts) queryServerID() {
	defer c.serverIdentity.querying.Store(false)
	if c.Begin(context.Background()) != nil {
		return
	}
	defer c.Done()
	ctx, cancel := context.WithTimeout(context.Background(), identityPatience)
	defer cancel()
	told := toldIdentity{generation: c.Topology.Generation(), at: time.Now()}
	_, reply := c.Sender.QueryAnyNode(ctx, func(ctx context.Context, client rueidis.Client) rueidis.RedisResult {
		return client.Do(ctx, client.B().Info().Section("server").Build())
	})
	info, err := reply.ToString()
	if err != nil && !outcome.Declined(err) {
		return
	}
	_, told.id, _ = strings.Cut(info, "run_id:")
	told.id, _, _ = strings.Cut(told.id, "\r")
	c.serverIdentity.told.Store(&told)
}
