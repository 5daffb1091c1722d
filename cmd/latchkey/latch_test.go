//go:build unix

package main

import (
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeytest"
)

const readyChannel = "redisson_countdownlatch__channel__{ready}"

func ready(server *latchkeytest.Server) *latchkey.CountDownLatch {
	return server.Client().NewCountDownLatch("ready")
}

// setReady closes the latch "ready" for n counts.
func setReady(t *testing.T, server *latchkeytest.Server, n int, options ...latchkey.SetOption) *latchkey.CountDownLatch {
	t.Helper()
	l := ready(server)
	done, err := l.TrySetCount(t.Context(), n, options...)
	require.NoError(t, err)
	require.True(t, done)
	return l
}

func closedFor(left int) result {
	return result{stdout: "ready is closed, remaining count: " + strconv.Itoa(left) + "\n"}
}

var isOpen = result{stdout: "ready is open\n"}

func TestLatchFromSetToOpen(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	assert.Equal(t, closedFor(4), latchkeyCLI(t, server, "latch", "set", "ready", "4"))
	assert.Equal(t, closedFor(3), latchkeyCLI(t, server, "latch", "down", "ready"))
	assert.Equal(t, closedFor(1), latchkeyCLI(t, server, "latch", "down", "ready", "--n", "2"))
	assert.Equal(t, closedFor(1), latchkeyCLI(t, server, "latch", "inspect", "ready"))
	assert.Equal(t, isOpen, latchkeyCLI(t, server, "latch", "down", "--n", "5", "ready"))
	assert.Equal(t, isOpen, latchkeyCLI(t, server, "latch", "inspect", "ready"))
	assert.Equal(t, isOpen, latchkeyCLI(t, server, "latch", "down", "ready"), "it does nothing")
	assert.Equal(t, result{}, latchkeyCLI(t, server, "latch", "wait", "ready"))
}

func TestLatchDownAsAParticipantCountsOnce(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	setReady(t, server, 2)
	for range 2 {
		assert.Equal(t, closedFor(1), latchkeyCLI(t, server, "latch", "down", "ready", "--as", "one"))
	}
	assert.Equal(t, isOpen, latchkeyCLI(t, server, "latch", "down", "ready", "--as", "two"))
}

func TestLatchSetLeavesAClosedOneAlone(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	setReady(t, server, 2)
	got := latchkeyCLI(t, server, "latch", "set", "ready", "7")
	assert.Zero(t, got.code, "each of several programs may begin with it")
	assert.Equal(t, closedFor(2).stdout, got.stdout)
	assertOneLine(t, got.stderr)
}

func TestLatchAsJSON(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	show := func(want string, args ...string) {
		t.Helper()
		got := latchkeyCLI(t, server, append(append([]string{"latch"}, args...), "--json")...)
		assert.Zero(t, got.code, got.stderr)
		assert.JSONEq(t, want, got.stdout)
	}
	show(`{"name": "ready", "state": "unset", "left": 0}`, "inspect", "ready")
	show(`{"name": "ready", "state": "closed", "left": 2}`, "set", "ready", "2")
	show(`{"name": "ready", "state": "closed", "left": 2}`, "inspect", "ready")
	show(`{"name": "ready", "state": "open", "left": 0}`, "down", "ready", "--n", "2")
	show(`{"name": "ready", "was_there": true}`, "delete", "ready")
	show(`{"name": "ready", "was_there": false}`, "delete", "ready")
}

func TestLatchDelete(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	l := setReady(t, server, 2)
	assert.Equal(t, result{stdout: "ready was deleted\n"}, latchkeyCLI(t, server, "latch", "delete", "ready"))
	_, err := l.Count(t.Context())
	require.ErrorIs(t, err, latchkey.ErrNotSet)
	assert.Equal(t, result{stdout: "ready did not exist\n"}, latchkeyCLI(t, server, "latch", "delete", "ready"))
}

func TestLatchDownOfNone(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	got := latchkeyCLI(t, server, "latch", "down", "ready")
	assert.Equal(t, exitSoftware, got.code)
	assertOneLine(t, got.stderr)
}

func TestLatchWithATimeToLive(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t, latchkeytest.ManualTime())
	assert.Equal(t, closedFor(1), latchkeyCLI(t, server, "latch", "set", "ready", "1", "--ttl", "1h"))
	server.Advance(time.Hour + time.Second)
	assert.Equal(t, result{stdout: "ready has expired\n"}, latchkeyCLI(t, server, "latch", "inspect", "ready"))
	got := latchkeyCLI(t, server, "latch", "down", "ready")
	assert.Equal(t, exitLost, got.code)
	assertOneLine(t, got.stderr)
}

func TestLatchWaitIsAGate(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	l := setReady(t, server, 2)
	gated := []*invocation{
		invoke(t, server, "latch", "wait", "ready"),
		invoke(t, server, "latch", "wait", "ready", "--wait", testPatience.String()),
	}
	awaitListener(t, server, readyChannel, int64(len(gated)))
	_, err := l.CountDownN(t.Context(), 2)
	require.NoError(t, err)
	for _, gate := range gated {
		assert.Equal(t, result{}, gate.end())
	}
}

func TestLatchWaitWaitsUntilItIsSet(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	gate := invoke(t, server, "latch", "wait", "ready")
	awaitListener(t, server, readyChannel, 1)
	_, err := setReady(t, server, 1).CountDown(t.Context())
	require.NoError(t, err)
	assert.Equal(t, result{}, gate.end())
}

func TestLatchWaitGivesUp(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	givesUp := func(saying string) {
		t.Helper()
		for _, wait := range []string{"0s", "2s"} {
			got := latchkeyCLI(t, server, "latch", "wait", "ready", "--wait", wait)
			assert.Equal(t, exitNotAcquired, got.code)
			assert.Empty(t, got.stdout)
			assertOneLine(t, got.stderr)
			assert.Contains(t, got.stderr, saying)
		}
	}
	givesUp(`"ready" is not set`)
	setReady(t, server, 1)
	givesUp(`"ready" is closed`)
	_, err := ready(server).Delete(t.Context())
	require.NoError(t, err)
	givesUp(`"ready" is not set`)
}

func TestLatchWaitOfOneThatGoes(t *testing.T) {
	t.Parallel()
	t.Run("deleted", func(t *testing.T) {
		server := latchkeytest.NewServer(t)
		l := setReady(t, server, 1)
		gate := invoke(t, server, "latch", "wait", "ready")
		awaitListener(t, server, readyChannel, 1)
		_, err := l.Delete(t.Context())
		require.NoError(t, err)
		assertGate(t, gate, exitLost)
	})
	t.Run("expired", func(t *testing.T) {
		server := latchkeytest.NewServer(t)
		gate := invoke(t, server, "latch", "wait", "ready")
		awaitListener(t, server, readyChannel, 1)
		setReady(t, server, 1, latchkey.TTL(200*time.Millisecond))
		assertGate(t, gate, exitLost)
	})
}

func assertGate(t *testing.T, gate *invocation, code int) {
	t.Helper()
	got := gate.end()
	assert.Equal(t, code, got.code)
	assertOneLine(t, got.stderr)
}

func TestSignalEndsTheWaitForALatch(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		server := latchkeytest.NewServer(t)
		setReady(t, server, 1)
		gate := invoke(t, server, "latch", "wait", "ready")
		awaitListener(t, server, readyChannel, 1)
		require.NoError(t, gate.Process.Signal(sig))
		assert.Equal(t, result{code: 128 + int(sig)}, gate.end())
	}
}

func TestLatchOfSomethingElse(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	hold(t, server.Client().NewLock("ready"))
	for _, args := range [][]string{
		{"latch", "inspect", "ready"},
		{"latch", "set", "ready", "2"},
		{"latch", "down", "ready"},
		{"latch", "wait", "ready"},
		{"latch", "delete", "ready"},
	} {
		got := latchkeyCLI(t, server, args...)
		assert.Equal(t, exitSoftware, got.code, args)
		assertOneLine(t, got.stderr)
	}
}
