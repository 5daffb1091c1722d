package core_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/testredis"
)

func TestBorrowed_client_stays_open(t *testing.T) {
	engine := testredis.NewEngine(t)
	mine := (*latchkey.Client)(engine.Handle)
	c, err := latchkey.New(engine.Rueidis, latchkey.Options{})
	require.NoError(t, err)
	h, err := c.NewLock(testredis.UniqueName(t, engine)).Lock(context.Background())
	require.NoError(t, err)
	require.NoError(t, c.Close(context.Background()))
	require.ErrorIs(t, h.Err(), latchkey.ErrClosed)
	require.NoError(t, testredis.Do(engine, "PING").Error())
	seen, err := mine.NewLock(h.Name()).Inspect(context.Background())
	require.NoError(t, err)
	require.False(t, seen.Locked(), "Close releases holds")
	_, err = c.NewLock("x").Lock(context.Background())
	require.ErrorIs(t, err, latchkey.ErrClosed)
	_, err = latchkey.New(nil, latchkey.Options{})
	require.ErrorIs(t, err, latchkey.ErrInvalid)
}
