//go:build unix

package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeytest"
)

// All commands that read show the label and the note of a command that runs.
func TestLabelsAndNotes(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	inside := script(t, server, "echo in; sleep 60", "--label", "web-1", "--note", "order 42")
	require.Equal(t, "in", inside.line())
	shows := func(want string, args ...string) {
		t.Helper()
		eventually(t, want, func() bool { return strings.Contains(latchkeyCLI(t, server, args...).stdout, want) })
	}
	shows(`, "order 42"`, "inspect", "orders")
	assert.Regexp(t, `held by  web-1 \([0-9a-f-]{36}:\d+\), "order 42"`, latchkeyCLI(t, server, "inspect", "orders").stdout)
	shows(`"note": "order 42"`, "inspect", "--json", "orders")
	shows(`web-1 "order 42"`, "ls")
	waiting := invoke(t, server, "run", "--lock", "orders", "--label", "web-2", "--", "true")
	shows("web-2 (", "waiters", "orders")
	shows(`"label": "web-2"`, "waiters", "--json", "orders")
	for _, busy := range [][]string{{"run", "--lock", "orders", "--no-wait", "--", "true"}, {"lock", "orders", "--wait", "2s"}} {
		got := latchkeyCLI(t, server, busy...)
		assert.Equal(t, exitNotAcquired, got.code)
		assert.Regexp(t, `^latchkey: "orders" is held by web-1, \d+s left(, waited [2-9]s)?\n$`, got.stderr)
	}
	cron := latchkeyCLI(t, server, "cron", "--verbose", "orders", "--", "true")
	assert.Regexp(t, `ago: web-1, \d+s left\n$`, cron.stderr)
	require.NoError(t, inside.Process.Signal(syscall.SIGTERM))
	inside.end()
	assert.Zero(t, waiting.end().code)

	leader := server.Client(latchkey.Options{Label: "node-1"})
	_, err := leader.NewElection("scheduler").Campaign(t.Context(), "host:80")
	require.NoError(t, err)
	shows("held by  node-1 (", "leader", "scheduler")
	shows(`"label": "node-1"`, "leader", "--json", "scheduler")
	assert.Regexp(t, `"scheduler" is led by node-1, \d+s left\n$`, latchkeyCLI(t, server, "elect", "scheduler", "-n", "--", "true").stderr)
	pool := leader.NewPermitSemaphore("pool")
	require.NoError(t, pool.SetPermits(t.Context(), 2))
	_, err = pool.AcquireN(t.Context(), 2)
	require.NoError(t, err)
	got := latchkeyCLI(t, server, "sem", "run", "--name", "pool", "--permits", "2", "-n", "--", "true")
	assert.Regexp(t, `all permits of "pool" are held by node-1 and 1 more, \d+s left\n$`, got.stderr)

	got = latchkeyCLI(t, server, "run", "--lock", "x", "--note", "a\nb", "--", "true")
	assert.Equal(t, exitUsage, got.code, got.stderr)
	got = latchkeyCLI(t, server, "run", "--lock", "x", "--label", "a\nb", "--", "true")
	assert.Equal(t, exitUsage, got.code, got.stderr)
}

// The message for a lock that is kept after its release does not say that somebody is at work.
func TestBusyTextOfALockThatIsKept(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	held, err := unnamed(server).NewLock("orders").TryLock(t.Context(), latchkey.AtLeast(time.Minute))
	require.NoError(t, err)
	require.NoError(t, held.Unlock(t.Context()))
	assert.Regexp(t, `"orders" is held by `+held.Owner().String()+`, released, kept taken by its AtLeast, \d+s left\n$`,
		latchkeyCLI(t, server, "lock", "orders", "-n").stderr)
}
