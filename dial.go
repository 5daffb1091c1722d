package latchkey

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"

	"github.com/redis/rueidis"
)

// dialing knows when rueidis may make callers wait without looking at their contexts:
// while a connection is being opened, and as soon as one is broken, because the next
// caller then opens another and the rest wait for that.
type dialing struct {
	opening atomic.Int32 // from the dial to the first answer
	breaks  atomic.Int64 // connections that ended and commands that failed, ever
	heard   atomic.Int64 // what breaks was when a command was sent that has been answered
}

// look reports whether a command that is sent now finds a connection, and returns
// what answered has to know about it. An answer from before a break proves nothing.
func (d *dialing) look() (era int64, steady bool) {
	era = d.breaks.Load()
	return era, d.heard.Load() == era && d.opening.Load() == 0
}

// answered notes the answer to a command that was sent in an era.
func (d *dialing) answered(era int64) {
	if d.heard.Load() < era {
		d.heard.Store(era)
	}
}

// broke notes that there may be no connection.
func (d *dialing) broke() { d.breaks.Add(1) }

// dialFunc is how rueidis opens a connection; it is nil where nothing is special.
type dialFunc = func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error)

// mappedDial dials addresses as they are to be reached from here.
func mappedDial(dial dialFunc, mapped func(string) string) dialFunc {
	dial = orTCP(dial)
	return func(ctx context.Context, address string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
		return dial(ctx, mapped(address), dialer, config)
	}
}

func orTCP(dial dialFunc) dialFunc {
	if dial == nil {
		return dialTCP
	}
	return dial
}

// watch has the connections of a client noticed.
func (d *dialing) watch(settings *rueidis.ClientOption) {
	dial := orTCP(settings.DialCtxFn)
	settings.DialCtxFn = func(ctx context.Context, address string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
		d.opening.Add(1)
		conn, err := dial(ctx, address, dialer, config)
		if err != nil {
			d.opening.Add(-1)
			return nil, err
		}
		return &watchedConn{
			Conn:   conn,
			opened: sync.OnceFunc(func() { d.opening.Add(-1) }),
			broke:  sync.OnceFunc(d.broke),
		}, nil
	}
}

func dialTCP(ctx context.Context, address string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
	if config == nil {
		return dialer.DialContext(ctx, "tcp", address)
	}
	return (&tls.Dialer{NetDialer: dialer, Config: config}).DialContext(ctx, "tcp", address)
}

// watchedConn is a connection that is open when the server has said something, or it
// has ended. Its end is noted before rueidis learns of it.
type watchedConn struct {
	net.Conn
	opened, broke func()
	heard         bool // only the reader looks at it
}

// Read is part of [net.Conn].
func (c *watchedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		c.broke()
	}
	if !c.heard {
		c.heard = true
		c.opened()
	}
	return n, err
}

// Write is part of [net.Conn].
func (c *watchedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err != nil {
		c.broke()
	}
	return n, err
}

// Close is part of [net.Conn].
func (c *watchedConn) Close() error {
	c.broke()
	c.opened()
	return c.Conn.Close()
}
