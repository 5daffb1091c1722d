package latchkey

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// identityAge is for how long a borrowed client, whose connections are not seen, relies on
// what its server has called itself.
const identityAge = 10 * time.Second

// serverPatience is how long a server has to say what it calls itself before nobody waits for it.
const serverPatience = 50 * time.Millisecond

// serverIdentity is what the server of a client calls itself while it runs. It is asked once, and
// again when a connection has broken: another server may have taken its place.
type serverIdentity struct {
	turn transport.FIFOMutex // of the goroutine that asks

	mu         sync.Mutex
	told       bool
	id         string // "" if it does not want to tell
	generation transport.Generation
	at         time.Time
	since      time.Time // since when it has not answered, or zero
}

// knownServerID is what the server has called itself, if that can still be relied on.
func (c *Client) knownServerID() (id string, known bool) {
	if c.cluster {
		return "", true
	}
	i := &c.serverIdentity
	i.mu.Lock()
	defer i.mu.Unlock()
	fresh := i.told && c.topology.IsStill(i.generation) && (c.owned || time.Since(i.at) < identityAge)
	return i.id, fresh
}

// serverID is what the server calls itself, "" if it does not want to tell. It reports false
// if it may yet tell.
func (c *Client) serverID(ctx context.Context) (id string, told bool) {
	if !c.begin() {
		return "", true
	}
	defer c.working.Done()
	if c.serverIdentity.turn.Lock(ctx) != nil {
		return "", false
	}
	defer c.serverIdentity.turn.Unlock()
	if id, known := c.knownServerID(); known {
		return id, true
	}
	return c.askServerID(ctx)
}

// askServerID is serverID with the turn held.
func (c *Client) askServerID(ctx context.Context) (id string, told bool) {
	i := &c.serverIdentity
	generation := c.topology.Generation()
	i.mu.Lock()
	if i.since.IsZero() {
		i.since = time.Now()
	}
	i.mu.Unlock()
	_, reply := c.sender.AskAnyNode(ctx, func(ctx context.Context, client rueidis.Client) rueidis.RedisResult {
		return client.Do(ctx, client.B().Info().Section("server").Build())
	})
	info, err := reply.ToString()
	if err != nil && transport.Classify(err) != transport.Refused {
		return "", false
	}
	_, id, _ = strings.Cut(info, "run_id:")
	id, _, _ = strings.Cut(id, "\r")
	i.mu.Lock()
	defer i.mu.Unlock()
	i.told, i.id, i.generation, i.at, i.since = true, id, generation, time.Now(), time.Time{}
	return id, true
}

// overdue reports whether the server has had its time to tell, and has not.
func (i *serverIdentity) overdue() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return !i.since.IsZero() && time.Since(i.since) >= serverPatience
}
