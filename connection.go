package latchkey

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// Settings of the connections that this package opens, unless the caller sets them.
const (
	dialTimeout     = 2 * time.Second
	keepAlive       = time.Second
	silenceTimeout  = 2 * time.Second // after which a connection counts as broken
	topologyRefresh = 2 * time.Second // how often Sentinel is asked for the master
	maxRedirections = 8               // of one command: nodes that disagree send it round for ever
)

// errLazyCluster is an ErrInvalid that comes out only when the server can be asked.
var errLazyCluster = fmt.Errorf("%w: Options.LazyConnect is for single servers and Sentinel; "+
	"this server belongs to a cluster, so make its client without it", ErrInvalid)

// connTracker knows of one node when rueidis may make callers wait without looking at their
// contexts: while a connection is being opened, and as soon as one is broken, because the
// next caller then opens another and the rest wait for that.
type connTracker struct {
	opening atomic.Int32  // from the dial to the first answer
	breaks  atomic.Int64  // connections that ended and commands that failed, ever
	heard   atomic.Int64  // what breaks was when a command was sent that has been answered
	all     *atomic.Int64 // the breaks of all nodes
}

// generation is a time in which no connection broke: to a node, and to any node, of which rueidis
// may have chosen another than we think. A client of our own has one connection for all
// commands to a node. So if one command is answered in the generation in which another was sent
// before, that has been executed already, or never will be.
type generation struct{ here, anywhere int64 }

// noGeneration is the generation of a command of which nothing like that can be said.
var noGeneration = generation{-1, -1}

// common is the generation of two commands.
func (e generation) common(other generation) generation {
	if e != other {
		return noGeneration
	}
	return e
}

// isStill reports whether it is that generation now.
func (t *topology) isStill(e generation) bool { return e.anywhere == t.breaks.Load() }

// look reports whether a command that is sent now finds a connection, and returns
// what answered has to know about it. An answer from before a break proves nothing.
func (d *connTracker) look() (now generation, steady bool) {
	now = generation{anywhere: d.all.Load(), here: d.breaks.Load()}
	return now, d.heard.Load() == now.here && d.opening.Load() == 0
}

// answered notes the answer to a command that was sent in a generation.
func (d *connTracker) answered(sentIn generation) {
	if d.heard.Load() < sentIn.here {
		d.heard.Store(sentIn.here)
	}
}

// broke notes that there may be no connection.
func (d *connTracker) broke() {
	d.breaks.Add(1)
	d.all.Add(1)
}

// dialFunc is how rueidis opens a connection; it is nil where nothing is special.
type dialFunc = func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error)

// mappedDial dials addresses as they are to be reached from here. Certificates are checked
// against what the servers are called, not against where they are reached.
func mappedDial(dial dialFunc, mapped func(string) string) dialFunc {
	return func(ctx context.Context, address string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
		return dial(ctx, mapped(address), dialer, named(config, address))
	}
}

// named is the configuration with the name of the server, if it has none.
func named(config *tls.Config, address string) *tls.Config {
	if config == nil || config.ServerName != "" {
		return config
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	config = config.Clone()
	config.ServerName = host
	return config
}

func orTCP(dial dialFunc) dialFunc {
	if dial == nil {
		return dialTCP
	}
	return dial
}

// watch has the connections of a client noticed.
func (t *topology) watch(settings *rueidis.ClientOption) {
	dial := orTCP(settings.DialCtxFn)
	settings.DialCtxFn = func(ctx context.Context, address string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
		d := &t.node(address).connections
		d.opening.Add(1)
		conn, err := dial(ctx, address, dialer, config)
		if err != nil {
			d.opening.Add(-1)
			return nil, &unopenedError{err}
		}
		return &watchedConn{
			Conn:   conn,
			opened: sync.OnceFunc(func() { d.opening.Add(-1) }),
			broke:  sync.OnceFunc(d.broke),
		}, nil
	}
}

// dialTCP opens a connection, which takes the timeout of the dialer at most, and ctx.
func dialTCP(ctx context.Context, address string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
	if dialer.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, dialer.Timeout)
		defer cancel()
	}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil || config == nil {
		return conn, err
	}
	secure := tls.Client(conn, named(config, address))
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, &handshakeError{address, err}
	}
	return secure, nil
}

// handshakeError is why there is no TLS on a connection that the server has accepted.
type handshakeError struct {
	address string
	err     error
}

func (e *handshakeError) Error() string {
	text := "no TLS handshake with " + e.address + ": "
	if plain := (tls.RecordHeaderError{}); errors.As(e.err, &plain) {
		return text + "the server answers without TLS; is this the port for TLS (rediss)?"
	}
	if isContextError(e.err) || errors.Is(e.err, os.ErrDeadlineExceeded) {
		return text + "no answer in time; is this the port for TLS (rediss)?"
	}
	return text + e.err.Error()
}

func (e *handshakeError) Unwrap() error { return e.err }

// authFunc is where rueidis gets the credentials for a connection.
type authFunc = func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error)

// beforehand has an error of the function count as what it is: nothing has been sent.
func beforehand(auth authFunc) authFunc {
	if auth == nil {
		return nil
	}
	return func(where rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
		credentials, err := auth(where)
		if err != nil {
			err = &unopenedError{fmt.Errorf("AuthCredentialsFn: %w", err)}
		}
		return credentials, err
	}
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
	if !c.heard && n == 0 && err != nil {
		err = &unopenedError{err}
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

// unopenedError is why a connection was not opened: it failed before the server had said
// anything. rueidis gives that error to all commands that wait for the connection, none
// of which was sent.
type unopenedError struct{ err error }

func (e *unopenedError) Error() string { return e.err.Error() }

// Is finds errUnsent, and the cause. That the server was too slow is not for rueidis to
// find, which would take it for the end of a caller's context.
func (e *unopenedError) Is(target error) bool {
	if target == os.ErrDeadlineExceeded || isContextError(target) {
		return false
	}
	return target == errUnsent || errors.Is(e.err, target)
}

// As finds what the network said.
func (e *unopenedError) As(target any) bool { return errors.As(e.err, target) }

// progress is how far the first connection of a client has come, for a caller who does not
// wait any longer.
type progress struct{ stage atomic.Pointer[string] }

// noted has the dialer leave word of where it is.
func (p *progress) noted(dial dialFunc) dialFunc {
	return func(ctx context.Context, address string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
		p.note("no connection to " + address + " so far")
		if config != nil {
			p.note("no TLS handshake with " + address + " so far")
		}
		conn, err := dial(ctx, address, dialer, config)
		if err == nil {
			p.note("connected to " + address + ", which has not answered so far")
		}
		return conn, err
	}
}

func (p *progress) note(stage string) { p.stage.Store(&stage) }

// reached is the stage as an error, or nil if nothing was dialed.
func (p *progress) reached() error {
	if stage := p.stage.Load(); stage != nil {
		return errors.New(*stage)
	}
	return nil
}
