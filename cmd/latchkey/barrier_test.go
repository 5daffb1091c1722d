//go:build unix

package main

import (
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/latchkeytest"
)

const phaseChannel = "latchkey_barrier:{phase}"

func TestBarrierWaitsForAll(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	assert.Equal(t, result{stdout: "phase: nobody waits\n"}, latchkeyCLI(t, server, "barrier", "inspect", "phase"))
	for range 2 {
		first := invoke(t, server, "barrier", "wait", "phase", "--parties", "2", "--json")
		awaitListener(t, server, phaseChannel, 1)
		got := latchkeyCLI(t, server, "barrier", "inspect", "phase")
		assert.Regexp(t, `^phase: 1 of 2 wait\n  \S.*\), expires in [0-9]+(\.[0-9])?s unless renewed\n$`, got.stdout)
		var shown barrierReply
		require.NoError(t, json.Unmarshal([]byte(latchkeyCLI(t, server, "barrier", "inspect", "phase", "--json").stdout), &shown))
		assert.Equal(t, 1, shown.Waiting)
		assert.Len(t, shown.Who, 1)
		assert.Equal(t, result{}, latchkeyCLI(t, server, "barrier", "wait", "phase", "--parties", "2"))
		got = first.end()
		assert.Zero(t, got.code, got.stderr)
		var reply arrivalReply
		require.NoError(t, json.Unmarshal([]byte(got.stdout), &reply))
		assert.Equal(t, arrivalReply{Name: "phase", Generation: shown.Generation, Index: 0, Parties: 2}, reply)
	}
}

// The parties at a barrier are listed like the waiters for a lock.
func TestWaitersAtABarrier(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	waiting := invoke(t, server, "barrier", "wait", "phase", "--parties", "2")
	awaitListener(t, server, phaseChannel, 1)
	state, err := unnamed(server).NewBarrier("phase", 2).State(t.Context())
	require.NoError(t, err)
	require.Len(t, state.Who, 1)
	owner := state.Who[0].Owner.String()
	host, _ := os.Hostname()
	eventually(t, "the party and its label", func() bool {
		text := latchkeyCLI(t, server, "waiters", "phase").stdout
		return strings.HasPrefix(text, host+":") && strings.HasSuffix(text, " ("+owner+")\nphase: 1 of 2 at the barrier, 1 listening\n")
	})
	assert.Contains(t, latchkeyCLI(t, server, "waiters", "--json", "phase").stdout, owner)
	o, err := unnamed(server).Inspect(t.Context(), "phase")
	require.NoError(t, err)
	assert.Equal(t, "parties: 2, arrived: 1, waiters: 1", changeText(o))
	assert.Equal(t, result{}, latchkeyCLI(t, server, "barrier", "wait", "phase", "--parties", "2"))
	assert.Zero(t, waiting.end().code)
}

func TestBarrierWaitGivesUp(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	other := invoke(t, server, "barrier", "wait", "phase", "--parties", "3")
	awaitListener(t, server, phaseChannel, 1)
	got := latchkeyCLI(t, server, "barrier", "wait", "phase", "--parties", "3", "--timeout", "100ms")
	assert.Equal(t, exitNotAcquired, got.code)
	assertOneLine(t, got.stderr)
	assertGate(t, other, exitLost)
}

func TestBarrierReset(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	waiting := invoke(t, server, "barrier", "wait", "phase", "--parties", "3")
	awaitListener(t, server, phaseChannel, 1)
	assert.Equal(t, exitUsage, latchkeyCLI(t, server, "barrier", "wait", "phase", "--parties", "2").code)
	assert.Equal(t, result{}, latchkeyCLI(t, server, "barrier", "reset", "phase"))
	assertGate(t, waiting, exitLost)
	assert.Equal(t, result{}, latchkeyCLI(t, server, "barrier", "reset", "phase"))
	assert.Equal(t, result{}, latchkeyCLI(t, server, "barrier", "wait", "phase", "--parties", "1"))
}

func TestSignalEndsTheWaitAtABarrier(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	waiting := invoke(t, server, "barrier", "wait", "phase", "--parties", "2")
	awaitListener(t, server, phaseChannel, 1)
	require.NoError(t, waiting.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, result{code: 128 + int(syscall.SIGTERM)}, waiting.end())
	rest := latchkeyCLI(t, server, "barrier", "wait", "phase", "--parties", "2", "--wait", "2s")
	assert.Equal(t, exitNotAcquired, rest.code, "it has left")
}

func TestBarrierBadInput(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	for _, args := range [][]string{
		{"wait", "phase"}, {"wait", "--parties", "2"}, {"wait", "phase", "--parties", "0"}, {"wait", "phase", "--parties", "2", "--wait", "-1s"},
		{"wait", "phase", "--parties", "2", "--wait", "0s"}, {"inspect"}, {"reset"}, {"open"},
	} {
		got := latchkeyCLI(t, server, append([]string{"barrier"}, args...)...)
		assert.Equal(t, exitUsage, got.code, args)
	}
}
