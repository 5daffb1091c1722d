package main

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"
)

// trips counts round trips: how often something is sent after a reply. Commands that are sent
// together count once.
type trips struct {
	n       atomic.Int64
	replied atomic.Bool
}

func (t *trips) dial(ctx context.Context, addr string, dialer *net.Dialer, _ *tls.Config) (net.Conn, error) {
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	return &tripConn{conn, t}, err
}

func (t *trips) reset() {
	t.n.Store(0)
	t.replied.Store(true)
}

type tripConn struct {
	net.Conn

	trips *trips
}

func (c *tripConn) Write(b []byte) (int, error) {
	if c.trips.replied.Swap(false) {
		c.trips.n.Add(1)
	}
	return c.Conn.Write(b)
}

func (c *tripConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.trips.replied.Store(true)
	return n, err
}
