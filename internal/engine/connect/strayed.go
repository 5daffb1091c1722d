package connect

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// strayPause is how long the shared connection of a borrowed client is avoided after it has led to
// a server that does not accept what is sent.
const strayPause = 10 * time.Second

// otherPause is how far apart other connections are opened at least. The pool may have several that
// lead to the wrong server.
const otherPause = 100 * time.Millisecond

// strayingClient is a borrowed client of a single server. Its shared connection is not ours to
// close, even if only a new one would lead to the master. Then commands go over a connection of its
// pool for a while, which is replaced if it leads to the wrong server too.
type strayingClient struct {
	rueidis.Client

	mu       sync.Mutex
	other    *otherConn // used in place of the shared connection, or nil
	opening  bool
	openedAt time.Time
	over     bool // no connection is used any more
}

// otherConn is a connection of the pool that many commands share. It is closed, never given back:
// that would send PING, which must not be refused (see docs/explain/rueidis.md).
type otherConn struct {
	rueidis.DedicatedClient

	users   sync.WaitGroup
	giveUp  func() // closes it
	expires *time.Timer
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
	other := c.use()
	if other == nil {
		result := c.Client.Do(ctx, cmd)
		c.heed(nil, result)
		return result
	}
	defer other.users.Done()
	result := other.Do(ctx, cmd)
	c.heed(other, result)
	return result
}

// DoMulti sends several commands.
func (c *strayingClient) DoMulti(ctx context.Context, multi ...rueidis.Completed) []rueidis.RedisResult {
	other := c.use()
	if other == nil {
		results := c.Client.DoMulti(ctx, multi...)
		c.heed(nil, results...)
		return results
	}
	if slices.ContainsFunc(multi, func(cmd rueidis.Completed) bool { return cmd.IsBlock() }) {
		other.users.Done()
		return c.doAlone(ctx, multi)
	}
	defer other.users.Done()
	results := other.DoMulti(ctx, multi...)
	c.heed(other, results...)
	return results
}

// doAlone sends commands that block over a connection of their own, as rueidis does: others would
// wait for them. It is not kept, because it may lead to the wrong server.
func (c *strayingClient) doAlone(ctx context.Context, multi []rueidis.Completed) []rueidis.RedisResult {
	conn, release := c.Dedicate()
	defer release()
	defer conn.Close()
	return conn.DoMulti(ctx, multi...)
}

// use returns the connection to use in place of the shared one, or nil.
func (c *strayingClient) use() *otherConn {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.other != nil {
		c.other.users.Add(1)
	}
	return c.other
}

// heed looks at replies. If they came over the shared connection and only another can help,
// commands use another one from then on, as soon as the pool has one. If they came over that one,
// it is given up, and the shared one may be right again.
func (c *strayingClient) heed(from *otherConn, results ...rueidis.RedisResult) {
	broken := from != nil && slices.ContainsFunc(results, func(r rueidis.RedisResult) bool {
		return !outcome.Classify(r.Error()).Heard() && !fault.IsContextEnd(r.Error())
	})
	switch {
	case !broken && !slices.ContainsFunc(results, isAway):
	case from != nil:
		c.drop(from)
	case c.mayOpen():
		go c.open()
	}
}

func (c *strayingClient) mayOpen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || c.other != nil || c.opening || time.Since(c.openedAt) < otherPause {
		return false
	}
	c.opening = true
	return true
}

// open waits for a connection of the pool, and uses it for a while.
func (c *strayingClient) open() {
	conn, release := c.Dedicate()
	other := &otherConn{DedicatedClient: conn, giveUp: func() { conn.Close(); release() }}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		go other.giveUp()
		return
	}
	other.expires = time.AfterFunc(strayPause, func() { c.drop(other) })
	c.other, c.opening, c.openedAt = other, false, time.Now()
}

// drop stops using the connection, and closes it when its last command has ended.
func (c *strayingClient) drop(other *otherConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.other != other {
		return
	}
	c.other = nil
	go other.end()
}

// end gives the connection up when its last command has ended.
func (o *otherConn) end() {
	o.expires.Stop()
	o.users.Wait()
	o.giveUp()
}

// StopStraying gives back the connection that a client of [NotStraying] uses in place of the shared
// one.
func StopStraying(client rueidis.Client) {
	c, is := client.(*strayingClient)
	if !is {
		return
	}
	c.mu.Lock()
	other := c.other
	c.over, c.other = true, nil
	c.mu.Unlock()
	if other != nil {
		other.end()
	}
}

func isAway(result rueidis.RedisResult) bool { return outcome.IsAway(result.Error()) }
