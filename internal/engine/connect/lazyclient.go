package connect

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// lazyClient is the rueidis client of a server that may be down. The first command opens the real
// client, or fails if that fails; then the next command tries again. A command is sent only after
// the server has said what it is.
type lazyClient struct {
	// Client never has a connection. It builds commands, and answers those that arrive while the
	// server cannot be reached.
	rueidis.Client

	open func() (rueidis.Client, error)
	mode rueidis.ClientMode
	real atomic.Pointer[rueidis.Client]
	why  atomic.Pointer[error] // of the last attempt

	mu      sync.Mutex
	attempt func() // opens the client; concurrent callers share one attempt
	closed  bool
}

// newLazyClient returns a client with these settings that calls open at the first command, and
// again at a later one if open fails. Until then it dials nothing.
func newLazyClient(settings rueidis.ClientOption, open func() (rueidis.Client, error)) (*lazyClient, error) {
	l := &lazyClient{open: open, mode: rueidis.ClientModeStandalone}
	if settings.Sentinel.MasterSet != "" {
		l.mode = rueidis.ClientModeSentinel
	}
	l.unopened(errors.New("not connected yet"))
	l.attempt = sync.OnceFunc(l.try)
	never := rueidis.ClientOption{
		InitAddress: settings.InitAddress[:1], ForceSingleClient: true, DisableRetry: true, DisableCache: true,
		DialCtxFn: func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
			return nil, *l.why.Load()
		},
	}
	var err error
	if l.Client, err = rueidis.NewClient(never); l.Client == nil {
		return nil, err
	}
	return l, nil
}

// unopened notes why there is no connection.
func (l *lazyClient) unopened(why error) {
	err := outcome.Unopened(why)
	l.why.Store(&err)
}

// client returns the client for commands: the real one, once there is one. It blocks while that is
// being opened.
func (l *lazyClient) client() rueidis.Client {
	if c := l.real.Load(); c != nil {
		return *c
	}
	l.mu.Lock()
	attempt := l.attempt
	l.mu.Unlock()
	attempt()
	if c := l.real.Load(); c != nil {
		return *c
	}
	return l.Client
}

// try makes one attempt to open the client.
func (l *lazyClient) try() {
	client, err := l.open()
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil:
		l.unopened(err)
		l.attempt = sync.OnceFunc(l.try)
	case l.closed:
		client.Close()
	default:
		l.real.Store(&client)
	}
}

// Do sends a command with the real client, which it opens first if needed.
func (l *lazyClient) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	return l.client().Do(ctx, cmd)
}

// DoMulti sends several commands with the real client, which it opens first if needed.
func (l *lazyClient) DoMulti(ctx context.Context, multi ...rueidis.Completed) []rueidis.RedisResult {
	return l.client().DoMulti(ctx, multi...)
}

// Dedicate takes a connection out of the pool of the real client, which it opens first if needed.
func (l *lazyClient) Dedicate() (client rueidis.DedicatedClient, cancel func()) {
	return l.client().Dedicate()
}

// Nodes returns the clients of the nodes of the real client, which it opens first if needed.
func (l *lazyClient) Nodes() map[string]rueidis.Client { return l.client().Nodes() }

// Mode returns the mode in the settings, without a request to the server.
func (l *lazyClient) Mode() rueidis.ClientMode { return l.mode }

// Close closes the real client, and one that is opened later.
func (l *lazyClient) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	if c := l.real.Load(); c != nil {
		(*c).Close()
	}
	l.Client.Close()
}
