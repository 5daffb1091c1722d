package latchkey

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/testredis"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// newTestClient returns a client of the server that LATCHKEY_TEST_REDIS names, or of an embedded server. Black-box
// tests against real servers are in tests/.
func newTestClient(t *testing.T, options Options) *Client {
	t.Helper()
	url := os.Getenv("LATCHKEY_TEST_REDIS")
	if url == "" {
		url = testredis.Run(t).URL()
	}
	return newClientOf(t, url, options)
}

// newClientOf returns a client of the server at a URL.
func newClientOf(t *testing.T, url string, options Options) *Client {
	t.Helper()
	c, err := Connect(context.Background(), url, options)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(t, c.Close(ctx))
	})
	return c
}

// uniqueName keeps tests that share a server apart.
func uniqueName(t *testing.T, c *Client) string {
	t.Helper()
	return t.Name() + ":" + c.ID()
}

// runScript runs a script once and returns the reply as a Go value: nil, an int64, a
// string, or an error.
func runScript(c *ownership.Engine, cmd transport.Command, keys []string, args ...string) any {
	reply := cmd.Send(context.Background(), c.Rueidis, keys, args)
	if err := reply.Error(); err != nil {
		if rueidis.IsRedisNil(err) {
			return nil
		}
		return err
	}
	value, err := reply.ToAny()
	if err != nil {
		return err
	}
	return value
}

// hashOf returns the fields of a lock.
func hashOf(c *ownership.Engine, t *testing.T, key string) map[string]string {
	t.Helper()
	m, err := c.Rueidis.Do(context.Background(), c.Rueidis.B().Hgetall().Key(key).Build()).AsStrMap()
	require.NoError(t, err)
	return m
}

func pttlOf(c *ownership.Engine, t *testing.T, key string) int64 {
	t.Helper()
	ms, err := c.Rueidis.Do(context.Background(), c.Rueidis.B().Pttl().Key(key).Build()).AsInt64()
	require.NoError(t, err)
	return ms
}
