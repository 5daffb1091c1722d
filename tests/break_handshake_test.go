package tests

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// proxied is a proxy that has lost its server: it accepts connections, and answers the first command with a text.
type proxied struct {
	text atomic.Pointer[string]

	mu   sync.Mutex
	open []net.Conn
}

func (p *proxied) dial(ctx context.Context, address string, dialer *net.Dialer, _ *tls.Config) (net.Conn, error) {
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = append(p.open, conn)
	return &proxiedConn{Conn: conn, of: p, written: make(chan int, 1000)}, nil
}

func (p *proxied) lose(text string) {
	p.text.Store(&text)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.open {
		_ = c.Close()
	}
}

type proxiedConn struct {
	net.Conn
	of      *proxied
	written chan int
	rest    []byte
}

func (c *proxiedConn) Write(b []byte) (int, error) {
	if c.of.text.Load() == nil {
		return c.Conn.Write(b)
	}
	select {
	case c.written <- bytes.Count(b, []byte("*")):
	default:
	}
	return len(b), nil
}

func (c *proxiedConn) Read(b []byte) (int, error) {
	text := c.of.text.Load()
	if text == nil {
		return c.Conn.Read(b)
	}
	if len(c.rest) == 0 {
		n := <-c.written
		c.rest = bytes.Repeat([]byte("-"+*text+"\r\n"), n)
	}
	n := copy(b, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// A connection whose greeting gets an error from a proxy has sent no command: its outcome is known.
func TestBreakHandshake(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	for _, text := range []string{"ERR Connection timed out", "upstream failure", "LOADING Redis is loading", "MISCONF cannot", "ERR max number of clients reached"} {
		for _, lazy := range []bool{false, true} {
			t.Run(text+map[bool]string{true: ", lazy"}[lazy], func(t *testing.T) {
				t.Parallel()
				p := &proxied{}
				settings := server.Options(server.Addr())
				settings.ForceSingleClient, settings.DialCtxFn = false, p.dial
				if lazy {
					p.lose(text)
				}
				client, err := latchkey.Open(within(t, soon), settings, latchkey.Options{RetryBudget: 300 * time.Millisecond, LazyConnect: lazy, Label: latchkey.NoLabel})
				require.NoError(t, err)
				t.Cleanup(func() { _ = client.Close(within(t, time.Second)) })
				p.lose(text)
				time.Sleep(300 * time.Millisecond)
				for range 3 {
					_, err = client.NewLock(rig.Name(t)).TryLock(within(t, soon))
					require.ErrorIs(t, err, latchkey.ErrUnavailable)
					assert.NotErrorIs(t, err, latchkey.ErrUnknownOutcome, "%v", err)
				}
				_, err = client.NewPermitSemaphore(rig.Name(t)).TrySetPermits(within(t, soon), 1)
				require.ErrorIs(t, err, latchkey.ErrUnavailable)
				assert.NotErrorIs(t, err, latchkey.ErrUnknownOutcome, "%v", err)
			})
		}
	}
}

var _ = rueidis.ErrClosing
