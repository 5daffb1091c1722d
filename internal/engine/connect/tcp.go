package connect

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync/atomic"

	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// dialFunc opens connections for rueidis; nil means the default.
type dialFunc = func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error)

// mappedDial returns dial with mapped addresses. Certificates are checked against the servers' own
// addresses, not against the mapped ones.
func mappedDial(dial dialFunc, mapped func(string) string) dialFunc {
	return func(ctx context.Context, address string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
		return dial(ctx, mapped(address), dialer, withServerName(config, address))
	}
}

// withServerName returns the configuration with the name of the server, if it has none.
func withServerName(config *tls.Config, address string) *tls.Config {
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

// dialOrTCP returns dial, or if that is nil a function that opens TCP connections, with TLS if
// config is set.
func dialOrTCP(dial dialFunc) dialFunc {
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
	secure := tls.Client(conn, withServerName(config, address))
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

// dialProgress is how far the first connection of a client has come, for a caller that stops
// waiting.
type dialProgress struct{ stage atomic.Pointer[string] }

// watched returns dial such that it records its progress.
func (p *dialProgress) watched(dial dialFunc) dialFunc {
	return func(ctx context.Context, address string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
		p.reach("no connection to " + address + " so far")
		if config != nil {
			p.reach("no TLS handshake with " + address + " so far")
		}
		conn, err := dial(ctx, address, dialer, config)
		if err == nil {
			p.reach("connected to " + address + ", which has not answered so far")
		}
		return conn, err
	}
}

func (p *dialProgress) reach(stage string) { p.stage.Store(&stage) }

// reached returns how far the last connection came, as an error, or nil if nothing was dialed.
func (p *dialProgress) reached() error {
	if stage := p.stage.Load(); stage != nil {
		return errors.New(*stage)
	}
	return nil
}
