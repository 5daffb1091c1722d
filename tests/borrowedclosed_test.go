package tests

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// waits returns the ways to wait without a deadline. Each lets the client other take something and
// returns a call of the client here that waits for it.
func waits() map[string]func(t *testing.T, other, here *latchkey.Client, name string) func(context.Context) error {
	ways := map[string]func(t *testing.T, other, here *latchkey.Client, name string) func(context.Context) error{
		"Semaphore": func(t *testing.T, other, here *latchkey.Client, name string) func(context.Context) error {
			_, err := other.NewSemaphore(name).TrySetPermits(t.Context(), 1)
			require.NoError(t, err)
			require.NoError(t, other.NewSemaphore(name).Acquire(t.Context()))
			return func(ctx context.Context) error { return here.NewSemaphore(name).Acquire(ctx) }
		},
		"PermitSemaphore": func(t *testing.T, other, here *latchkey.Client, name string) func(context.Context) error {
			_, err := other.NewPermitSemaphore(name).TrySetPermits(t.Context(), 1)
			require.NoError(t, err)
			_, err = other.NewPermitSemaphore(name).Acquire(t.Context())
			require.NoError(t, err)
			return func(ctx context.Context) error { _, err := here.NewPermitSemaphore(name).Acquire(ctx); return err }
		},
		"CountDownLatch": func(t *testing.T, other, here *latchkey.Client, name string) func(context.Context) error {
			_, err := other.NewCountDownLatch(name).TrySetCount(t.Context(), 1)
			require.NoError(t, err)
			return func(ctx context.Context) error { return here.NewCountDownLatch(name).Await(ctx) }
		},
		"MultiLock": func(t *testing.T, other, here *latchkey.Client, name string) func(context.Context) error {
			mustLock(t, other.NewLock(name+" b"))
			multi := latchkey.NewMultiLock(here.NewLock(name+" a"), here.NewLock(name+" b"))
			return func(ctx context.Context) error { _, err := multi.Lock(ctx); return err }
		},
		"RedLock": func(t *testing.T, other, here *latchkey.Client, name string) func(context.Context) error {
			mustLock(t, other.NewLock(name))
			red := latchkey.NewRedLock(latchkey.RedLockOptions{}, here.NewLock(name))
			return func(ctx context.Context) error { _, err := red.Lock(ctx); return err }
		},
	}
	for _, k := range append(kinds, readKind) {
		ways[k.name] = func(t *testing.T, other, here *latchkey.Client, name string) func(context.Context) error {
			taken := k
			if k.name == readKind.name {
				taken = writeKind
			}
			mustLock(t, taken.open(other, name))
			return func(ctx context.Context) error { _, err := k.open(here, name).Lock(ctx); return err }
		}
	}
	return ways
}

// A call that waits without a deadline ends with an error when the application closes the rueidis
// client that it lent.
func TestClosedBorrowedClient_ends_every_wait(t *testing.T) {
	for name, wait := range waits() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := singleServer(t)
			redis, err := rueidis.NewClient(likeOurs(server.Options(server.Addr())))
			require.NoError(t, err)
			t.Cleanup(redis.Close)
			var lines atomic.Int32
			client, err := latchkey.New(redis, latchkey.Options{Logger: slog.New(lineCounter{slog.DiscardHandler, &lines})})
			require.NoError(t, err)
			t.Cleanup(func() { _ = client.Close(within(t, soon)) })
			call := wait(t, connect(t, server), client, rig.Name(t))
			const waiters = 3
			ended := make(chan error, waiters)
			for range waiters {
				go func() { ended <- call(context.Background()) }()
			}
			rest(300 * time.Millisecond) // they wait, or have not begun yet
			redis.Close()
			for range waiters {
				err := rig.Await(t, soon, "the end of a wait", ended)
				require.ErrorIs(t, err, rueidis.ErrClosing)
				assert.ErrorContains(t, err, "the rueidis client is closed")
			}
			assert.Less(t, lines.Load(), int32(8*waiters), "lines in the log")
		})
	}
}

// lineCounter counts log lines.
type lineCounter struct {
	slog.Handler
	lines *atomic.Int32
}

func (c lineCounter) Enabled(context.Context, slog.Level) bool  { return true }
func (c lineCounter) Handle(context.Context, slog.Record) error { c.lines.Add(1); return nil }
func (c lineCounter) WithAttrs([]slog.Attr) slog.Handler        { return c }
func (c lineCounter) WithGroup(string) slog.Handler             { return c }
