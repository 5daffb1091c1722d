//go:build unix

package main

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeytest"
)

// elected runs a shell script as the leader of the election "orders".
func elected(t *testing.T, server *latchkeytest.Server, text string, flags ...string) *invocation {
	t.Helper()
	args := append([]string{"elect", "orders"}, flags...)
	return invoke(t, server, append(args, "--", "sh", "-c", text)...)
}

func leaderOf(t *testing.T, server *latchkeytest.Server) latchkey.Leader {
	t.Helper()
	found, err := unnamed(server).NewElection("orders").Leader(t.Context())
	require.NoError(t, err)
	return found
}

func TestElectPassesExitCodeAndResigns(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	for term, text := range []string{"echo $LATCHKEY_TOKEN; exit 7", "echo $LATCHKEY_TOKEN; kill -9 $$"} {
		got := elected(t, server, text).end()
		assert.Equal(t, []int{7, 128 + 9}[term], got.code)
		assert.Equal(t, []string{"1\n", "2\n"}[term], got.stdout)
		assert.True(t, leaderOf(t, server).IsZero())
	}
}

func TestElectAnnouncesItsValue(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	first := elected(t, server, "echo ready; cat", "--value", "first:80")
	require.Equal(t, "ready", first.line())
	assert.Equal(t, "first:80", leaderOf(t, server).Value)
	second := elected(t, server, "echo ready; cat", "--value", "second:80")
	awaitWaiter(t, server, "orders")
	assert.Zero(t, first.end().code)
	require.Equal(t, "ready", second.line())
	assert.Equal(t, "second:80", leaderOf(t, server).Value)
	assert.Equal(t, int64(2), leaderOf(t, server).Term)
	assert.Zero(t, second.end().code)
}

func TestElectCampaignsAgainAfterALoss(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	run := elected(t, server, `trap 'echo told; exit 0' TERM; echo term $LATCHKEY_TOKEN; `+untilSignal, "--lease", "5s")
	require.Equal(t, "term 1", run.line())
	forceUnlock(t, server)
	assert.Equal(t, "told", run.line())
	assert.Equal(t, "term 2", run.line())
	require.NoError(t, run.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, "told", run.line())
	got := run.end()
	assert.Zero(t, got.code)
	assertOneLine(t, got.stderr)
	assert.True(t, leaderOf(t, server).IsZero())
}

func TestElectOnceEndsWithALoss(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	run := elected(t, server, "echo ready; exec sleep 600", "--lease", "5s", "--once")
	require.Equal(t, "ready", run.line())
	forceUnlock(t, server)
	got := run.end()
	assert.Equal(t, exitLost, got.code)
	assertOneLine(t, got.stderr)
}

// A signal that ends the command also ends the campaigns, even if the leadership is lost.
func TestSignalAfterALossEndsElect(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	run := elected(t, server, `trap 'echo told' TERM; trap 'exit 0' INT; echo ready; `+untilSignal, "--lease", "5s", "--grace", "20s")
	require.Equal(t, "ready", run.line())
	forceUnlock(t, server)
	require.Equal(t, "told", run.line())
	require.NoError(t, run.Process.Signal(syscall.SIGINT))
	assert.Equal(t, exitLost, run.end().code)
}

func TestElectGivesUp(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	l, err := unnamed(server).NewElection("orders").TryCampaign(t.Context(), "")
	require.NoError(t, err)
	for _, wait := range []string{"0s", "2s"} {
		got := elected(t, server, "echo ran", "--wait", wait).end()
		assert.Equal(t, exitNotAcquired, got.code)
		assert.Empty(t, got.stdout)
		assertOneLine(t, got.stderr)
	}
	require.NoError(t, l.Resign(t.Context()))
}

func TestSignalEndsTheCampaign(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	l, err := unnamed(server).NewElection("orders").TryCampaign(t.Context(), "")
	require.NoError(t, err)
	run := elected(t, server, "echo ran")
	awaitWaiter(t, server, "orders")
	require.NoError(t, run.Process.Signal(syscall.SIGINT))
	assert.Equal(t, result{code: 128 + 2}, run.end())
	require.NoError(t, l.Resign(t.Context()))
}

func TestLeader(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	got := latchkeyCLI(t, server, "leader", "orders")
	assert.Equal(t, result{code: exitNotAcquired, stdout: "orders has no leader\n"}, got)
	l, err := unnamed(server).NewElection("orders").TryCampaign(t.Context(), "host:80")
	require.NoError(t, err)
	got = latchkeyCLI(t, server, "leader", "orders")
	assert.Zero(t, got.code)
	assert.Regexp(t, `^orders is led by host:80\n  term     1\n  since    \S+, for \d+s\n  expires  in \S+ unless renewed\n  held by  \S+\n$`, got.stdout)
	assert.Equal(t, result{stdout: "host:80\n"}, latchkeyCLI(t, server, "leader", "orders", "--value"))

	got = latchkeyCLI(t, server, "leader", "orders", "--json")
	var reply leaderReply
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &reply))
	assert.Equal(t, "orders host:80 1", strings.Join([]string{reply.Name, reply.Value, "1"}, " "))
	assert.True(t, reply.Led)
	assert.Positive(t, reply.Lease)
	require.NoError(t, l.Resign(t.Context()))
	got = latchkeyCLI(t, server, "leader", "orders", "--json")
	assert.Equal(t, exitNotAcquired, got.code)
	assert.Contains(t, got.stdout, `"led": false`)
}

func TestLeaderWatch(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	watch := invoke(t, server, "leader", "orders", "--watch")
	assert.Equal(t, "orders has no leader", watch.line())
	e := unnamed(server).NewElection("orders")
	l, err := e.TryCampaign(t.Context(), "with blanks and\x1b")
	require.NoError(t, err)
	assert.Contains(t, watch.line(), `orders is led by "with blanks and\x1b", term 1 since `)
	require.NoError(t, l.Proclaim(t.Context(), "two"))
	assert.Contains(t, watch.line(), "orders is led by two, term 1 since ")
	require.NoError(t, l.Resign(t.Context()))
	assert.Equal(t, "orders has no leader", watch.line())
	require.NoError(t, watch.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, result{code: 128 + 15}, watch.end())
}
