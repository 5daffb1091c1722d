package latchkeytest

import (
	"net"
	"sync"
	"syscall"

	"github.com/alicebob/miniredis/v2"
)

// network has all ways to reach the server: pipes in memory, and a port after
// listen. It tracks all connections, so that it can cut them.
type network struct {
	redis *miniredis.Miniredis

	mu       sync.Mutex
	down     bool
	address  string // of the port, even while the server is stopped; "" before listen
	listener net.Listener
	conns    map[*conn]struct{}
	accepts  sync.WaitGroup
}

func newNetwork(redis *miniredis.Miniredis) *network {
	return &network{redis: redis, conns: map[*conn]struct{}{}}
}

// open starts miniredis without a port of its own: the first connection in
// memory starts it.
func (n *network) open() error {
	first, err := n.redis.Dial()
	if err != nil {
		return err
	}
	return first.Close()
}

// line identifies the connections of one client to the server.
type line struct{ dead bool } // guarded by network.mu

// dial returns a new connection in memory. While the server is stopped, dial
// fails like a closed port, from which clients conclude that nothing was sent.
func (n *network) dial(l *line) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down || l.dead {
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: syscall.ECONNREFUSED}
	}
	pipe, err := n.redis.Dial()
	if err != nil {
		return nil, err
	}
	return n.track(pipe, l), nil
}

// listen opens the port on its first call, and returns its address.
func (n *network) listen() (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.address != "" {
		return n.address, nil
	}
	if err := n.bind("127.0.0.1:0"); err != nil {
		return "", err
	}
	if n.down {
		n.hangUp()
	}
	return n.address, nil
}

// bind opens the port at address. The caller holds n.mu.
func (n *network) bind(address string) error {
	listener, err := net.Listen("tcp", address) //nolint:noctx // listening on the loopback interface does not block
	if err != nil {
		return err
	}
	n.listener, n.address = listener, listener.Addr().String()
	n.accepts.Go(func() { n.serve(listener) })
	return nil
}

func (n *network) serve(listener net.Listener) {
	for {
		accepted, err := listener.Accept()
		if err != nil {
			return
		}
		n.welcome(accepted)
	}
}

// welcome hands a connection to the server, unless the server was stopped
// between its arrival and now.
func (n *network) welcome(accepted net.Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down {
		_ = accepted.Close()
		return
	}
	n.redis.Server().ServeConn(n.track(accepted, nil))
}

// cut closes every connection and refuses new ones.
func (n *network) cut() {
	n.mu.Lock()
	n.down = true
	n.hangUp()
	n.mu.Unlock()
	n.drop(func(*conn) bool { return true })
}

// kill closes the connections of one line and refuses new ones.
func (n *network) kill(l *line) {
	n.mu.Lock()
	l.dead = true
	n.mu.Unlock()
	n.drop(func(c *conn) bool { return c.line == l })
}

// drop closes the chosen connections. It does so without n.mu, because Close
// locks it.
func (n *network) drop(chosen func(*conn) bool) {
	n.mu.Lock()
	var doomed []*conn
	for c := range n.conns {
		if chosen(c) {
			doomed = append(doomed, c)
		}
	}
	n.mu.Unlock()
	for _, c := range doomed {
		_ = c.Close()
	}
}

// hangUp closes the port and keeps its address. The caller holds n.mu.
func (n *network) hangUp() {
	if n.listener != nil {
		_ = n.listener.Close()
		n.listener = nil
	}
}

// reopen accepts connections again, at the same address.
func (n *network) reopen() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = false
	if n.address == "" || n.listener != nil {
		return nil
	}
	return n.bind(n.address)
}

// admit accepts connections in memory again, even if the port fails, including
// those of lines that were killed.
func (n *network) admit(lines []*line) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = false
	for _, l := range lines {
		l.dead = false
	}
}

// close cuts all connections for good and waits for the port's goroutine.
func (n *network) close() {
	n.cut()
	n.accepts.Wait()
}

// track remembers c until it is closed. The caller holds n.mu.
func (n *network) track(c net.Conn, l *line) net.Conn {
	tracked := &conn{Conn: c, network: n, line: l}
	n.conns[tracked] = struct{}{}
	return tracked
}

// conn is a connection that the network can cut.
type conn struct {
	net.Conn
	network *network
	line    *line // nil on the port
}

// Close is part of net.Conn.
func (c *conn) Close() error {
	c.network.mu.Lock()
	delete(c.network.conns, c)
	c.network.mu.Unlock()
	return c.Conn.Close()
}
