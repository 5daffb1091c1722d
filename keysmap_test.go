package latchkey

import (
	"context"
	"fmt"
	"hash/fnv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
)

// Unlock does not call the name mapper: a program may hold a mutex that its mapper needs.
func TestNameMapperIsNotCalledByUnlock(t *testing.T) {
	var mapped atomic.Int32
	c := newTestClient(t, Options{NameMapper: func(name string) string { mapped.Add(1); return "app:" + name }})
	for _, lock := range []Locker{c.NewLock("a"), c.NewFairLock("b"), c.NewMutex("c"), c.NewRWLock("d").Writer()} {
		hold, err := lock.TryLock(t.Context())
		require.NoError(t, err)
		for i := range 5000 { // more names than the client keeps
			c.NewLock(fmt.Sprint("other", i))
		}
		before := mapped.Load()
		require.NoError(t, hold.Unlock(t.Context()))
		require.Equal(t, before, mapped.Load())
	}
}

// A NameMapper makes keys of names that could not be keys themselves. Names for which it makes no
// key are refused, and nothing is sent.
func TestNameMapperMakesKeysOfAnyName(t *testing.T) {
	hashed := newTestClient(t, Options{NameMapper: func(name string) string {
		h := fnv.New64()
		_, _ = h.Write([]byte(name))
		return fmt.Sprintf("app:%x", h.Sum64())
	}})
	same := newTestClient(t, Options{NameMapper: func(name string) string { return name }})
	odd := []string{"", strings.Repeat("x", 512+1), "a{b", "}", "{}", "{{a}}", "\xff"}
	ctx := t.Context()
	for kind, use := range map[string]func(c *Client, name string) error{
		"mutex":     func(c *Client, name string) error { return c.NewMutex(name).Do(ctx, nothing) },
		"lock":      func(c *Client, name string) error { return c.NewLock(name).Do(ctx, nothing) },
		"fair lock": func(c *Client, name string) error { return c.NewFairLock(name).Do(ctx, nothing) },
		"spin lock": func(c *Client, name string) error { return c.NewSpinLock(name, Backoff{}).Do(ctx, nothing) },
		"reader":    func(c *Client, name string) error { return c.NewRWLock(name).Reader().Do(ctx, nothing) },
		"writer":    func(c *Client, name string) error { return c.NewRWLock(name).Writer().Do(ctx, nothing) },
		"several":   func(c *Client, name string) error { return NewMultiLock(c.NewLock(name)).Do(ctx, nothing) },
		"semaphore": func(c *Client, name string) error { _, err := c.NewSemaphore(name).Delete(ctx); return err },
		"permits":   func(c *Client, name string) error { _, err := c.NewPermitSemaphore(name).Delete(ctx); return err },
		"latch":     func(c *Client, name string) error { _, err := c.NewCountDownLatch(name).Delete(ctx); return err },
		"barrier":   func(c *Client, name string) error { _, err := c.NewBarrier(name, 1).State(ctx); return err },
		"election":  func(c *Client, name string) error { _, err := c.NewElection(name).Leader(ctx); return err },
		"limiter": func(c *Client, name string) error {
			_, err := c.NewRateLimiter(name, Rate{N: 1, Per: time.Second}).Inspect(ctx)
			return err
		},
		"inspect": func(c *Client, name string) error { _, err := c.Inspect(ctx, name); return err },
		"waiters": func(c *Client, name string) error { _, err := c.Waiters(ctx, name); return err },
		"force":   func(c *Client, name string) error { _, err := c.ForceUnlock(ctx, name); return err },
	} {
		for _, name := range odd {
			require.NoError(t, use(hashed, name), "%s %q", kind, name)
			require.ErrorIs(t, use(same, name), ErrInvalid, "%s %q", kind, name)
			require.ErrorContains(t, use(same, name), "NameMapper", "%s %q", kind, name)
		}
	}
	require.NoError(t, hashed.Check(ctx))
}

func nothing(context.Context) error { return nil }

// A prefix with which every name would be refused is refused itself, before anything is dialed.
// With any other, Check has a name.
func TestKeyPrefixIsChecked(t *testing.T) {
	for _, prefix := range []string{"{a", "a}", "{}", "{{a}}:", "\xff", strings.Repeat("x", keyspace.MaxPrefixLength+1), strings.Repeat("x", 512)} {
		_, err := Connect(t.Context(), "redis://127.0.0.1:1", Options{KeyPrefix: prefix})
		require.ErrorIs(t, err, ErrInvalid, prefix)
		require.ErrorContains(t, err, "Options.KeyPrefix", prefix)
	}
	for _, prefix := range []string{"app:", "{app}", "{app}:", strings.Repeat("x", keyspace.MaxPrefixLength)} {
		c := newTestClient(t, Options{KeyPrefix: prefix})
		require.NoError(t, c.Check(t.Context()), prefix)
		require.ErrorContains(t, c.NewLock(strings.Repeat("x", 512)).Do(t.Context(), nothing), "Options.KeyPrefix", prefix)
	}
}
