package rig

import (
	"net"
	"sync"
	"testing"
)

// Tap is a proxy in front of a server that understands the protocol. It records the commands of all
// connections in the order of arrival, and treats single commands, their replies, messages and
// subscription connections as a test requires (see [Treatment]). The test fails if a script of the
// library gets other keys or arguments than its header has. It passes on commands that only set
// up or probe a connection, and neither records nor counts them.
//
// In front of a topology it is one tap for the connections to all data nodes; clients reach it
// through [Server.Route].
type Tap struct {
	tb        testing.TB
	server    *Server
	listeners []net.Listener // one for each end of the server
	running   sync.WaitGroup
	done      chan struct{} // closed by Stop

	mu       sync.Mutex
	ends     []string // of the server behind it
	conns    map[*tapConn]struct{}
	accepted int
	commands []Command
	executed []Command
	rules    []*rule
	dropping bool // messages are dropped
	dropped  int
}

// NewTap puts a tap in front of the server, stopped at the end of the test.
func NewTap(tb testing.TB, server *Server) *Tap {
	tb.Helper()
	t := &Tap{tb: tb, server: server, done: make(chan struct{}), ends: server.ends(), conns: make(map[*tapConn]struct{})}
	if err := t.listen(); err != nil {
		tb.Fatalf("rig: tap: %v", err)
	}
	for i := range t.ends {
		t.running.Go(func() { t.accept(i) })
	}
	tb.Cleanup(t.Stop)
	return t
}

func (t *Tap) listen() (err error) {
	for range startTries {
		if err = t.tryListen(); err == nil {
			return nil
		}
		t.closeListeners()
	}
	return err
}

func (t *Tap) tryListen() error {
	addrs, err := t.server.proxyAddrs()
	if err != nil {
		return err
	}
	for _, addr := range addrs {
		listener, err := net.Listen("tcp", addr)
		if err != nil {
			return err
		}
		t.listeners = append(t.listeners, listener)
	}
	return nil
}

func (t *Tap) closeListeners() {
	for _, listener := range t.listeners {
		_ = listener.Close()
	}
	t.listeners = nil
}

// Addr returns the address at which clients connect through the tap.
func (t *Tap) Addr() string { return t.listeners[0].Addr().String() }

// Stop closes the tap and all its connections, and returns when none of its goroutines runs.
func (t *Tap) Stop() {
	t.mu.Lock()
	if !t.stopped() {
		close(t.done)
	}
	t.mu.Unlock()
	for _, listener := range t.listeners {
		_ = listener.Close()
	}
	t.Cut()
	t.running.Wait()
}

func (t *Tap) stopped() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

func (t *Tap) accept(i int) {
	for {
		client, err := t.listeners[i].Accept()
		if err != nil {
			return
		}
		t.open(client, i)
	}
}

// Redirect puts the tap in front of another server with the same number of ends, like a fixed
// address in a failover. It closes all connections.
func (t *Tap) Redirect(server *Server) {
	t.mu.Lock()
	t.ends = server.ends()
	t.mu.Unlock()
	t.Cut()
}

// RedirectNew is Redirect for new connections only: those that are open stay with the previous
// server, as behind the fixed address of a managed service.
func (t *Tap) RedirectNew(server *Server) {
	t.mu.Lock()
	t.ends = server.ends()
	t.mu.Unlock()
}

// RedirectCommands is Redirect for all connections except those that have subscribed, which stay
// with the previous server.
func (t *Tap) RedirectCommands(server *Server) {
	t.mu.Lock()
	t.ends = server.ends()
	t.mu.Unlock()
	closeAll(t.each(func(c *tapConn) bool { return !subscribers(c) }))
}

func (t *Tap) end(i int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ends[i]
}

// open connects to the server and moves data in both directions. If the server is down, the
// client's connection ends at once.
func (t *Tap) open(client net.Conn, i int) {
	end := t.end(i)
	upstream, err := net.Dial("tcp", end)
	if err != nil {
		_ = client.Close()
		return
	}
	c := newTapConn(t, client, upstream)
	if !t.add(c) || t.end(i) != end {
		c.close()
		return
	}
	t.running.Go(c.moveCommands)
	t.running.Go(c.moveReplies)
}

func (t *Tap) add(c *tapConn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped() {
		return false
	}
	t.accepted++
	c.id = t.accepted
	t.conns[c] = struct{}{}
	return true
}

func (t *Tap) remove(c *tapConn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.conns, c)
}

// each returns the open connections for which want is true.
func (t *Tap) each(want func(*tapConn) bool) []*tapConn {
	t.mu.Lock()
	defer t.mu.Unlock()
	var found []*tapConn
	for c := range t.conns {
		if want(c) {
			found = append(found, c)
		}
	}
	return found
}

func everyConn(*tapConn) bool { return true }

func subscribers(c *tapConn) bool { return c.subscriber.Load() }

// Connections returns the number of connections that are open now.
func (t *Tap) Connections() int { return len(t.each(everyConn)) }

// Subscribers returns the number of open connections that have subscribed.
func (t *Tap) Subscribers() int { return len(t.each(subscribers)) }

// Accepted returns the number of connections that were ever opened.
func (t *Tap) Accepted() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.accepted
}

// Cut closes every connection, and accepts new ones.
func (t *Tap) Cut() { closeAll(t.each(everyConn)) }

// CutSubscribers closes every connection that has subscribed, and returns their number.
func (t *Tap) CutSubscribers() int { return closeAll(t.each(subscribers)) }

func closeAll(conns []*tapConn) int {
	for _, c := range conns {
		c.close()
	}
	return len(conns)
}

// FreezeSubscribers keeps every connection that has subscribed open, but moves nothing over it any
// more, and returns their number. New connections work.
func (t *Tap) FreezeSubscribers() int {
	conns := t.each(subscribers)
	for _, c := range conns {
		c.frozen.Store(true)
	}
	return len(conns)
}

// DropMessages sets whether the messages of pub/sub are dropped from now on. Confirmations of
// subscriptions are always delivered.
func (t *Tap) DropMessages(drop bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dropping = drop
}

// DroppedMessages returns how many messages were dropped so far.
func (t *Tap) DroppedMessages() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.dropped
}

// drops reports whether a message is dropped, and counts it.
func (t *Tap) drops() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dropping {
		t.dropped++
	}
	return t.dropping
}
