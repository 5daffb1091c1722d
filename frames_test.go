package latchkey

import (
	"context"
	"crypto/tls"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/testredis"
)

// Few functions of this module are between a call of Lock and the command that rueidis gets, so
// that a reader can follow them and a profile stays clear.
func TestUncontendedLockIsFewFramesDeep(t *testing.T) {
	var answers sync.RWMutex // held for writing, no answer arrives
	c, err := Open(t.Context(), rueidis.ClientOption{
		InitAddress: []string{testredis.Run(t).Addr()},
		DialCtxFn: func(ctx context.Context, address string, dialer *net.Dialer, _ *tls.Config) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, "tcp", address)
			return &heldUpConn{conn, &answers}, err
		},
	}, Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	lock := c.NewLock("lock")
	require.NoError(t, pair(lock)(t.Context()), "the server is to know the scripts")

	answers.Lock()
	done := make(chan error, 1)
	go func() { done <- pair(lock)(t.Context()) }()
	var frames []string
	require.Eventually(t, func() bool {
		frames = ownFrames("latchkey.(*Lock).Lock(", "rueidis.(*")
		return frames != nil
	}, time.Minute, time.Millisecond)
	answers.Unlock()
	require.NoError(t, <-done)
	require.LessOrEqual(t, len(frames), 11, "%s", strings.Join(frames, "\n"))
}

// heldUpConn holds back what it has read while answers is locked.
type heldUpConn struct {
	net.Conn

	answers *sync.RWMutex
}

func (c *heldUpConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.answers.RLock()
	defer c.answers.RUnlock()
	return n, err
}

// ownFrames returns the functions of this module on the stack of the goroutine that is in both
// outer and inner, the innermost first, up to outer.
func ownFrames(outer, inner string) (own []string) {
	stacks := make([]byte, 1<<20)
	for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		if !strings.Contains(stack, outer) || !strings.Contains(stack, inner) {
			continue
		}
		for line := range strings.Lines(stack) {
			if !strings.HasPrefix(line, "github.com/latchkey-go/latchkey") {
				continue
			}
			own = append(own, strings.TrimSpace(line))
			if strings.Contains(line, outer) {
				return own
			}
		}
	}
	return nil
}
