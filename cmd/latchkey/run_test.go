//go:build unix

package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeytest"
)

// script runs a shell script under the lock "orders".
func script(t *testing.T, server *latchkeytest.Server, text string, flags ...string) *invocation {
	t.Helper()
	args := append([]string{"run", "orders"}, flags...)
	return invoke(t, server, append(args, "--", "sh", "-c", text)...)
}

// untilSignal ends a script that waits for a signal. It does not use read: the shell would trap a
// signal that comes just before the system call only after some input. Some shells report the
// signal that ended a sleep, so it drops stderr.
const untilSignal = `exec 2>/dev/null; while :; do sleep 0.01; done`

func TestRunPassesExitCodeAndReleases(t *testing.T) {
	t.Parallel()
	for text, code := range map[string]int{
		"true":          0,
		"exit 7":        7,
		"exit 255":      255,
		"kill -9 $$":    128 + 9,
		"kill -TERM $$": 128 + 15,
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			server := latchkeytest.NewServer(t)
			assert.Equal(t, result{code: code}, script(t, server, text).end())
			assert.False(t, isLocked(t, server, "orders"))
		})
	}
}

// The name may also be that of a flag, and stand after other flags.
func TestRunNamesItsLock(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	for _, args := range [][]string{
		{"run", "orders", "--wait", "1h"}, {"run", "--wait", "1h", "orders"}, {"run", "--lock", "orders"},
		{"sem", "run", "orders", "--permits", "1"}, {"sem", "run", "--permits", "1", "orders"}, {"sem", "run", "--name", "orders", "--permits", "1"},
	} {
		got := latchkeyCLI(t, server, append(args, "--", "sh", "-c", `"$LATCHKEY" ls | grep -c ^orders; echo "$@"`, "sh", "-x", "--", "y")...)
		assert.Equal(t, result{stdout: "1\n-x -- y\n"}, got, args)
	}
}

func TestRunOfWhatCannotRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plain, garbage := filepath.Join(dir, "plain"), filepath.Join(dir, "garbage")
	require.NoError(t, os.WriteFile(plain, nil, 0o600))
	require.NoError(t, os.WriteFile(garbage, []byte("\x00\x01"), 0o700))
	for command, code := range map[string]int{
		"latchkey-test-no-such-command": exitNotFound,
		filepath.Join(dir, "missing"):   exitNotFound,
		plain:                           exitNotExecutable,
		garbage:                         exitNotExecutable,
	} {
		server := latchkeytest.NewServer(t)
		got := latchkeyCLI(t, server, "run", "--lock", "orders", "--", command)
		assert.Equal(t, code, got.code, command)
		assertOneLine(t, got.stderr)
		assert.False(t, isLocked(t, server, "orders"))
	}
}

func TestRunPassesFilesAndArguments(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	run := invoke(t, server, "run", "--lock", "orders", "--",
		"sh", "-c", `cat; echo "$@" >&2`, "sh", "--json", "--", "-x", "", "help")
	_, err := run.in.Write([]byte("input\n"))
	require.NoError(t, err)
	assert.Equal(t, result{stdout: "input\n", stderr: "--json -- -x  help\n"}, run.end())
}

func TestRunHoldsWhileTheCommandRuns(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	run := script(t, server, "echo ready; cat")
	require.Equal(t, "ready", run.line())
	assert.True(t, isLocked(t, server, "orders"))
	assert.Zero(t, run.end().code)
}

func TestRunRenewsItsLease(t *testing.T) {
	t.Parallel()
	const lease = 5 * time.Second
	server := latchkeytest.NewServer(t)
	orders := server.Client().NewLock("orders")
	run := script(t, server, "echo ready; cat", "--lease", lease.String())
	require.Equal(t, "ready", run.line())

	seen, err := orders.Inspect(t.Context())
	require.NoError(t, err)
	assert.LessOrEqual(t, seen.TTL, lease)
	before := seen.TTL
	eventually(t, "the lease grows again", func() bool {
		now, err := orders.Inspect(t.Context())
		grown := now.TTL > before
		before = now.TTL
		return err == nil && grown
	})
	assert.Zero(t, run.end().code)
}

func TestRunForwardsSignals(t *testing.T) {
	t.Parallel()
	for name, sig := range map[string]syscall.Signal{
		"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP,
		"QUIT": syscall.SIGQUIT, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := latchkeytest.NewServer(t)
			run := script(t, server, `trap 'echo caught; exit 3' `+name+`; echo ready; `+untilSignal)
			require.Equal(t, "ready", run.line())
			require.NoError(t, run.Process.Signal(sig))
			assert.Equal(t, "caught", run.line())
			assert.Equal(t, result{code: 3}, run.end())
			assert.False(t, isLocked(t, server, "orders"))
		})
	}
}

func TestRunEndsBySignal(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	run := script(t, server, "sleep 600 & echo ready; wait; true") // a process that is just being started may miss the signal
	require.Equal(t, "ready", run.line())
	require.NoError(t, run.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, result{code: 128 + 15}, run.end(), "the shell and its sleep are both gone")
	assert.False(t, isLocked(t, server, "orders"))
}

func TestRunUnderNohup(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	run := invoke(t, server, "run", "--lock", "orders", "--",
		"sh", "-c", `trap '' HUP; "$LATCHKEY" run --lock invoices -- sh -c 'echo $PPID; cat'`)
	inner, err := strconv.Atoi(run.line())
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(inner, syscall.SIGHUP))
	assert.Equal(t, result{}, run.end(), "what the caller ignores is not switched on again")
}

func TestRunFenced(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	for _, token := range []string{"1", "2"} {
		got := script(t, server, "echo $LATCHKEY_TOKEN", "--fenced").end()
		assert.Equal(t, result{stdout: token + "\n"}, got)
	}
	assert.Equal(t, "\n", script(t, server, "echo $LATCHKEY_TOKEN").end().stdout)
}

func TestRunGivesUp(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	held := hold(t, server.Client().NewLock("orders"))
	for _, wait := range []string{"0s", "2s"} {
		got := script(t, server, "echo ran", "--wait", wait).end()
		assert.Equal(t, exitNotAcquired, got.code)
		assert.Empty(t, got.stdout)
		assertOneLine(t, got.stderr)
	}
	require.NoError(t, held.Unlock(t.Context()), "its lock was left alone")
}

func TestRunWaits(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	held := hold(t, server.Client().NewLock("orders"))
	run := script(t, server, "echo ran")
	awaitWaiter(t, server, "orders")
	require.NoError(t, held.Unlock(t.Context()))
	assert.Equal(t, result{stdout: "ran\n"}, run.end())
}

func TestSignalEndsTheWait(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	held := hold(t, server.Client().NewLock("orders"))
	run := script(t, server, "echo ran")
	awaitWaiter(t, server, "orders")
	require.NoError(t, run.Process.Signal(syscall.SIGINT))
	assert.Equal(t, result{code: 128 + 2}, run.end())
	require.NoError(t, held.Unlock(t.Context()))
}

// awaitWaiter returns when a process waits for a lock, that is, when its owner is in the queue.
func awaitWaiter(t *testing.T, server *latchkeytest.Server, name string) {
	t.Helper()
	client := rawTo(t, server)
	eventually(t, "a waiter waits", func() bool {
		waiting, err := client.Do(t.Context(), client.B().Zcard().Key("latchkey_queue:{"+name+"}").Build()).AsInt64()
		return err == nil && waiting > 0
	})
}

// awaitListener returns when that many processes subscribe to a channel.
func awaitListener(t *testing.T, server *latchkeytest.Server, channel string, processes int64) {
	t.Helper()
	client := rawTo(t, server)
	eventually(t, "a waiter listens", func() bool {
		counts, err := client.Do(t.Context(), client.B().PubsubNumsub().Channel(channel).Build()).AsIntMap()
		return err == nil && counts[channel] >= processes
	})
}

func TestLossEndsTheCommand(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	run := script(t, server, `trap 'echo told; exit 0' TERM; echo ready; `+untilSignal, "--lease", "5s")
	require.Equal(t, "ready", run.line())
	forceUnlock(t, server)
	assert.Equal(t, "told", run.line())
	got := run.end()
	assert.Equal(t, exitLost, got.code)
	assertOneLine(t, got.stderr)
}

func TestLossKillsWhoDoesNotListen(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	run := script(t, server, `trap '' TERM; sleep 600 & echo $!; wait; wait`, "--lease", "5s", "--grace", "50ms")
	child := run.line()
	forceUnlock(t, server)
	assert.Equal(t, exitLost, run.end().code)
	assertGone(t, child)
}

func TestLossKillsChildrenThatOutliveTheCommand(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	run := script(t, server, `(trap '' TERM; echo ready; exec sleep 600) & wait`, "--lease", "5s", "--grace", "50ms")
	require.Equal(t, "ready", run.line())
	forceUnlock(t, server)
	got := run.end() // also waits for all processes that have its output open
	assert.Equal(t, exitLost, got.code)
}

func TestSilentServerEndsTheCommand(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	run := script(t, server, "echo ready; exec sleep 600", "--lease", "2s")
	require.Equal(t, "ready", run.line())
	server.Stop()
	assert.Equal(t, exitLost, run.end().code)
}

func TestLossThatTheCommandDidNotLiveToSee(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	got := script(t, server, `"$LATCHKEY" unlock --force orders >/dev/null`).end()
	assert.Equal(t, exitLost, got.code, "part of the work was done without the lock")
	assertOneLine(t, got.stderr)
}

func TestKilledRunLeavesTheLockToItsLease(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	run := script(t, server, `trap 'echo told; exit 0' TERM; echo ready; `+untilSignal, "--lease", "2s")
	require.Equal(t, "ready", run.line())
	require.NoError(t, run.Process.Kill())
	if runtime.GOOS == "linux" {
		assert.Equal(t, "told", run.line(), "a command does not outlive the one that holds its lock")
	}
	_, err := server.Client().NewLock("orders").Lock(t.Context(), latchkey.Wait(testPatience))
	require.NoError(t, err)
}

func forceUnlock(t *testing.T, server *latchkeytest.Server) {
	t.Helper()
	held, err := server.Client().ForceUnlock(t.Context(), "orders")
	require.NoError(t, err)
	require.True(t, held)
}

func assertGone(t *testing.T, pid string) {
	t.Helper()
	number, err := strconv.Atoi(pid)
	require.NoError(t, err)
	// A killed process keeps its number until its parent collects it.
	eventually(t, "the process is gone", func() bool {
		state, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
		return syscall.Kill(number, 0) != nil || err == nil && isZombie(string(state))
	})
}

// isZombie reads the third field of /proc/PID/stat, which follows the name of the
// command in brackets.
func isZombie(stat string) bool {
	_, rest, _ := strings.Cut(stat, ") ")
	return strings.HasPrefix(rest, "Z")
}
