package transport

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// strayPause is how long the shared connection of a borrowed client is avoided after it has led to a
// server that does not accept what is sent.
const strayPause = 10 * time.Second

// strayingClient is a borrowed client of a single server. Its shared connection is not ours to close,
// even if only a new one would lead to the master. Then commands go over connections of its pool, of
// which those that lead to the wrong server are closed.
type strayingClient struct {
	rueidis.Client

	avoidUntil atomic.Pointer[time.Time]
}

// NotStraying returns a borrowed client such that commands do not stay with a server that is no
// longer the master. In a cluster and behind Sentinel, rueidis itself follows the master.
func NotStraying(client rueidis.Client) rueidis.Client {
	if client.Mode() != rueidis.ClientModeStandalone {
		return client
	}
	return &strayingClient{Client: client}
}

// Do sends a command.
func (c *strayingClient) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	if c.strays() {
		return c.overAnother(ctx, cmd)[0]
	}
	result := c.Client.Do(ctx, cmd)
	c.note(result)
	return result
}

// DoMulti sends several commands.
func (c *strayingClient) DoMulti(ctx context.Context, multi ...rueidis.Completed) []rueidis.RedisResult {
	if c.strays() {
		return c.overAnother(ctx, multi...)
	}
	results := c.Client.DoMulti(ctx, multi...)
	c.note(results...)
	return results
}

func (c *strayingClient) strays() bool {
	until := c.avoidUntil.Load()
	return until != nil && time.Now().Before(*until)
}

// note looks at replies from the shared connection.
func (c *strayingClient) note(results ...rueidis.RedisResult) {
	if slices.ContainsFunc(results, isAway) {
		until := time.Now().Add(strayPause)
		c.avoidUntil.Store(&until)
	}
}

// overAnother sends over a connection of the pool. After an error the connection is closed: it may lead to the wrong
// server, and to give it back would send PING, which must not be refused: see docs/explain/rueidis.md.
func (c *strayingClient) overAnother(ctx context.Context, multi ...rueidis.Completed) []rueidis.RedisResult {
	conn, release := c.Dedicate()
	defer release()
	results := conn.DoMulti(ctx, multi...)
	if slices.ContainsFunc(results, func(r rueidis.RedisResult) bool { return Classify(r.Error()) != Answered }) {
		conn.Close()
	}
	if slices.ContainsFunc(results, isAway) {
		c.avoidUntil.Store(nil) // the shared one may be right again
	}
	return results
}

// isAway reports whether only another connection can help.
func isAway(result rueidis.RedisResult) bool {
	return isReply(result.Error(), func(r errorReply) bool { return r.class() == awayReply })
}
