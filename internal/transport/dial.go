package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// Settings of the connections that this package opens, unless the caller sets them.
const (
	DialTimeout     = 2 * time.Second
	KeepAlive       = 2 * time.Second // idle time of a connection before rueidis pings it
	SilenceTimeout  = 2 * time.Second // time for the answer to the ping, before the connection counts as broken
	TopologyRefresh = 2 * time.Second // how often the client queries Sentinel for the master
	MaxRedirections = 8               // of one command: nodes that disagree could redirect it forever
)

// DialFunc opens connections for rueidis; nil means the default.
type DialFunc = func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error)

// MappedDial returns dial with mapped addresses. Certificates are checked against the servers' own
// addresses, not against the mapped ones.
func MappedDial(dial DialFunc, mapped func(string) string) DialFunc {
	return func(ctx context.Context, address string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
		return dial(ctx, mapped(address), dialer, named(config, address))
	}
}

// named returns the configuration with the name of the server, if it has none.
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

// DialOrTCP returns dial, or if that is nil a function that opens TCP connections, with TLS if
// config is set.
func DialOrTCP(dial DialFunc) DialFunc {
	if dial == nil {
		return dialTCP
	}
	return dial
}

// dialTCP opens a connection. The dialer's timeout and ctx bound it.
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

// handshakeError is why the TLS handshake failed on a connection that the server has accepted.
type handshakeError struct {
	address string
	err     error
}

func (e *handshakeError) Error() string {
	text := "no TLS handshake with " + e.address + ": "
	if plain := (tls.RecordHeaderError{}); errors.As(e.err, &plain) {
		return text + "the server answers without TLS; is this the port for TLS (rediss)?"
	}
	if outcome.IsContextError(e.err) || errors.Is(e.err, os.ErrDeadlineExceeded) {
		return text + "no answer in time; is this the port for TLS (rediss)?"
	}
	return text + e.err.Error()
}

func (e *handshakeError) Unwrap() error { return e.err }

// CredentialsFunc gives rueidis the credentials for a connection.
type CredentialsFunc = func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error)

// WrapCredentials returns auth with its errors marked to say that nothing has been sent.
func WrapCredentials(auth CredentialsFunc) CredentialsFunc {
	if auth == nil {
		return nil
	}
	return func(where rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
		credentials, err := auth(where)
		if err != nil {
			err = outcome.Unopened(fmt.Errorf("AuthCredentialsFn: %w", err))
		}
		return credentials, err
	}
}

// DialProgress is how far the first connection of a client has come, for a caller that stops
// waiting.
type DialProgress struct{ stage atomic.Pointer[string] }

// Watched returns dial such that it records its progress.
func (p *DialProgress) Watched(dial DialFunc) DialFunc {
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

func (p *DialProgress) note(stage string) { p.stage.Store(&stage) }

// Reached returns how far the last connection came, as an error, or nil if nothing was dialed.
func (p *DialProgress) Reached() error {
	if stage := p.stage.Load(); stage != nil {
		return errors.New(*stage)
	}
	return nil
}
