package nodes

import (
	"context"
	"crypto/tls"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// DialTimeout and SilenceTimeout are the settings of connections, unless the caller sets them.
const (
	DialTimeout    = 2 * time.Second
	SilenceTimeout = 2 * time.Second // time for the answer to a ping, before the connection counts as broken
)

// connTracker knows when rueidis may block callers of one node regardless of their contexts: while
// a connection is being opened, and after one has broken, because the next caller then opens
// another and the rest wait for it.
type connTracker struct {
	opening atomic.Int32  // from the dial to the first answer
	dials   atomic.Int64  // total
	breaks  atomic.Int64  // total of connections that ended and commands that failed
	heard   atomic.Int64  // value of breaks when the last answered command was sent
	all     *atomic.Int64 // the breaks of all nodes

	mu         sync.Mutex
	open       map[*watchedConn]struct{}
	replacedAt time.Time
}

// replacePause is how far apart replacements of connections are at least, so that a server that is
// really a replica is not flooded with new ones.
const replacePause = time.Second

// replace closes all connections, so that rueidis opens others.
func (t *connTracker) replace(why error) {
	for _, c := range t.toReplace() {
		c.replaced.Store(&replacedError{why})
		_ = c.Conn.Close()
	}
}

// toReplace returns the open connections, unless that was done a moment ago.
func (t *connTracker) toReplace() []*watchedConn {
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Since(t.replacedAt) < replacePause {
		return nil
	}
	t.replacedAt = time.Now()
	return slices.Collect(maps.Keys(t.open))
}

// replacedError is why a connection was closed by replace.
type replacedError struct{ reply error }

func (e *replacedError) Error() string {
	return "the client has left a server that answers: " + e.reply.Error()
}

// watch notes a connection that was opened.
func (t *connTracker) watch(conn net.Conn) *watchedConn {
	c := &watchedConn{
		Conn:    conn,
		tracker: t,
		opened:  sync.OnceFunc(func() { t.opening.Add(-1) }),
		broke:   sync.OnceFunc(t.broke),
		silence: newSilence(conn),
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		t.open = map[*watchedConn]struct{}{}
	}
	t.open[c] = struct{}{}
	return c
}

func (t *connTracker) forget(c *watchedConn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, c)
}

// look reports whether a command that is sent now finds a connection, and returns the current
// generation. The answer is noted with it, because an answer from before a break proves nothing.
func (t *connTracker) look() (now Generation, steady bool) {
	now = Generation{Anywhere: t.all.Load(), Here: t.breaks.Load()}
	return now, t.heard.Load() == now.Here && t.opening.Load() == 0
}

// answered notes the answer to a command that was sent in that generation.
func (t *connTracker) answered(sentIn Generation) {
	if t.heard.Load() < sentIn.Here {
		t.heard.Store(sentIn.Here)
	}
}

// broke notes that there may be no connection.
func (t *connTracker) broke() {
	t.breaks.Add(1)
	t.all.Add(1)
}

// WatchConnections changes the settings of a client that is about to be opened, so that the
// topology sees its connections. They already have a function that dials.
func (t *Topology) WatchConnections(settings *rueidis.ClientOption) {
	t.fixed.Store(!t.Cluster && settings.Sentinel.MasterSet == "")
	dial := settings.DialCtxFn
	settings.DialCtxFn = func(
		ctx context.Context, address string, dialer *net.Dialer, config *tls.Config,
	) (net.Conn, error) {
		tracker := &t.node(address).connections
		tracker.opening.Add(1)
		tracker.dials.Add(1)
		conn, err := dial(ctx, address, dialer, config)
		if err != nil {
			tracker.opening.Add(-1)
			return nil, outcome.Unopened(err)
		}
		return tracker.watch(conn), nil
	}
}

// watchedConn counts as open once the server has sent something, or once it has ended. Its end is
// noted before rueidis learns of it.
type watchedConn struct {
	net.Conn
	tracker       *connTracker
	replaced      atomic.Pointer[replacedError] // set by replace
	opened, broke func()
	heard         bool // used by the reader only
	last          lastWords
	silence       *silence
}

// Read implements [net.Conn].
func (c *watchedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.silence.read()
	if err != nil {
		c.broke()
	}
	if n > 0 {
		c.last.read(b[:n])
	}
	if err != nil {
		err = c.ended(err, n)
	}
	if !c.heard {
		c.heard = true
		c.opened()
	}
	return n, err
}

// ended returns the error of a read as rueidis gets it.
func (c *watchedConn) ended(err error, n int) error {
	if why := c.replaced.Load(); why != nil {
		return why
	}
	unopened := n == 0 && (!c.heard || c.last.refused())
	if err = c.last.explain(err); unopened {
		return outcome.Unopened(err)
	}
	return err
}

// Write implements [net.Conn].
func (c *watchedConn) Write(b []byte) (int, error) {
	c.last.write(b)
	c.silence.write()
	n, err := c.Conn.Write(b)
	if err != nil {
		c.broke()
	}
	return n, err
}

// Close implements [net.Conn].
func (c *watchedConn) Close() error {
	c.broke()
	c.opened()
	c.silence.stop()
	c.tracker.forget(c)
	return c.Conn.Close()
}
