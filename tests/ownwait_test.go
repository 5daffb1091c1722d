package tests

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// shortLease is after how long a wait is logged.
const shortLease = 500 * time.Millisecond

// selfWaits returns a logger that passes on the lines about calls that wait for themselves.
func selfWaits() (lines chan slog.Record, logger *slog.Logger) {
	lines = make(chan slog.Record, 100)
	return lines, slog.New(logFunc(func(r slog.Record) {
		if strings.HasPrefix(r.Message, "latchkey: a call waits without a limit for a lock that a call of this client holds") {
			lines <- r
		}
	}))
}

// A call that locks a lock inside its own Do, with the outer context and without a limit, is logged
// once, by the name of the lock, if the server refuses it. (In line behind a hold of its client it
// asks nothing.)
func TestWaitForItselfIsLogged(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	for name, open := range map[string]func(*latchkey.Client, string) (outer, inner latchkey.Locker){
		"FairLock": same(func(c *latchkey.Client, name string) latchkey.Locker { return c.NewFairLock(name) }),
		"read, then write": func(c *latchkey.Client, name string) (outer, inner latchkey.Locker) {
			return c.NewRWLock(name).Reader(), c.NewRWLock(name).Writer()
		},
		"write, then read": func(c *latchkey.Client, name string) (outer, inner latchkey.Locker) {
			return c.NewRWLock(name).Writer(), c.NewRWLock(name).Reader()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lines, logger := selfWaits()
			client := connect(t, server, latchkey.Options{Lease: shortLease, Logger: logger})
			lock, again := open(client, rig.Name(t))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			hold := mustLock(t, lock, latchkey.Lease(time.Minute)) // which a slow machine does not lose
			waiter := lockInBackground(ctx, again)
			line := rig.Await(t, soon, "the line", lines)
			line.Attrs(func(a slog.Attr) bool {
				assert.Equal(t, slog.String("lock", again.Name()), a)
				return true
			})
			cancel()
			rig.Await(t, soon, "the waiter", waiter)
			unlockInTheEnd(t, hold)
			require.NoError(t, client.Close(within(t, soon)))
			assert.Empty(t, lines, "one line, and none was left out")
		})
	}
}

func same(open func(*latchkey.Client, string) latchkey.Locker) func(*latchkey.Client, string) (outer, inner latchkey.Locker) {
	return func(c *latchkey.Client, name string) (outer, inner latchkey.Locker) {
		lock := open(c, name)
		return lock, lock
	}
}

// Nothing is logged for a call that waits for another client, or that has a limit.
func TestOrdinaryWaitsAreNotLogged(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		lines, logger := selfWaits()
		options := latchkey.Options{Lease: shortLease, Logger: logger}
		client, other, name := connect(t, server, options), connect(t, server, options), rig.Name(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		hold := mustLock(t, k.open(client, name), latchkey.Lease(time.Minute))
		elsewhere := lockInBackground(ctx, k.open(other, name))
		_, _ = refusedFrom(t, 2*shortLease, func(wait time.Duration) error {
			_, err := k.open(client, name).Lock(ctx, latchkey.Wait(wait))
			return err
		})
		_, _ = refusedFrom(t, 2*shortLease, func(wait time.Duration) error {
			_, err := k.open(client, name).Lock(within(t, wait))
			return err
		})
		cancel()
		rig.Await(t, soon, "the other client", elsewhere)
		unlockInTheEnd(t, hold)
		require.NoError(t, client.Close(within(t, soon)))
		require.NoError(t, other.Close(within(t, soon)))
		assert.Empty(t, lines)
	})
}
