package latchkey

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/testredis"
)

// newTestClient returns a client of the server that LATCHKEY_TEST_REDIS names, or of an embedded
// server. Black-box tests against real servers are in tests/.
func newTestClient(t *testing.T, options Options) *Client {
	t.Helper()
	c, err := Connect(context.Background(), testredis.URL(t), options)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(t, c.Close(ctx))
	})
	return c
}
