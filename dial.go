package latchkey

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"

	"github.com/redis/rueidis"
)

// dialing counts the connections that are being opened: from the dial to the first
// answer. While there is one, rueidis may make callers wait for it without looking
// at their contexts.
type dialing struct{ atomic.Int32 }

// watch has the connections of a client counted.
func (d *dialing) watch(settings *rueidis.ClientOption) {
	dial := settings.DialCtxFn
	if dial == nil {
		dial = dialTCP
	}
	settings.DialCtxFn = func(ctx context.Context, address string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
		d.Add(1)
		conn, err := dial(ctx, address, dialer, config)
		if err != nil {
			d.Add(-1)
			return nil, err
		}
		return &openingConn{Conn: conn, opened: sync.OnceFunc(func() { d.Add(-1) })}, nil
	}
}

func dialTCP(ctx context.Context, address string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
	if config == nil {
		return dialer.DialContext(ctx, "tcp", address)
	}
	return (&tls.Dialer{NetDialer: dialer, Config: config}).DialContext(ctx, "tcp", address)
}

// openingConn is a connection that is open when the server has said something, or
// is closed.
type openingConn struct {
	net.Conn
	opened func()
	heard  bool // only the reader looks at it
}

// Read is part of [net.Conn].
func (c *openingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if !c.heard {
		c.heard = true
		c.opened()
	}
	return n, err
}

// Close is part of [net.Conn].
func (c *openingConn) Close() error {
	c.opened()
	return c.Conn.Close()
}
