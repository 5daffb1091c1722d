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

const poolChannel = "redisson_sc:{pool}"

// pooled runs a shell script under one of the permits of "pool".
func pooled(t *testing.T, server *latchkeytest.Server, permits int, text string, flags ...string) *invocation {
	t.Helper()
	args := append([]string{"sem", "run", "pool", "--permits", strconv.Itoa(permits)}, flags...)
	return invoke(t, server, append(args, "--", "sh", "-c", text)...)
}

func pool(server *latchkeytest.Server) *latchkey.PermitSemaphore {
	return unnamed(server).NewPermitSemaphore("pool")
}

func poolState(t *testing.T, server *latchkeytest.Server) latchkey.Object {
	t.Helper()
	state, err := pool(server).Inspect(t.Context())
	require.NoError(t, err)
	require.Equal(t, latchkey.KindSemaphore, state.Kind)
	return state
}

func acquired(t *testing.T, server *latchkeytest.Server) int {
	t.Helper()
	return poolState(t, server).HolderCount
}

func permits(t *testing.T, server *latchkeytest.Server) int {
	t.Helper()
	return poolState(t, server).Total
}

func TestSemRunPassesExitCodeAndReleases(t *testing.T) {
	t.Parallel()
	for text, code := range map[string]int{"true": 0, "exit 7": 7, "kill -9 $$": 128 + 9} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			server := latchkeytest.NewServer(t)
			assert.Equal(t, result{code: code}, pooled(t, server, 2, text).end())
			assert.Equal(t, 2, permits(t, server))
			assert.Zero(t, acquired(t, server))
		})
	}
}

func TestSemRunOfWhatCannotRun(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	garbage := filepath.Join(t.TempDir(), "garbage")
	require.NoError(t, os.WriteFile(garbage, []byte("\x00\x01"), 0o700))
	got := latchkeyCLI(t, server, "sem", "run", "--name", "pool", "--permits", "1", "--", garbage)
	assert.Equal(t, exitNotExecutable, got.code)
	assertOneLine(t, got.stderr)
	assert.Zero(t, acquired(t, server))
}

func TestSemRunTellsTheIDOfThePermit(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	run := pooled(t, server, 2, "echo $LATCHKEY_PERMIT; cat")
	left, err := pool(server).RemainingLease(t.Context(), run.line())
	require.NoError(t, err)
	assert.Positive(t, left)
	assert.Zero(t, run.end().code)
}

func TestSemRunLetsInAsManyAsThereArePermits(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	first, second := pooled(t, server, 2, "echo in; cat"), pooled(t, server, 2, "echo in; cat")
	require.Equal(t, "in", first.line())
	require.Equal(t, "in", second.line())
	third := pooled(t, server, 2, "echo in; cat")
	awaitListener(t, server, poolChannel, 1)
	assert.Equal(t, 2, acquired(t, server))
	assert.Equal(t, result{}, first.end())
	assert.Equal(t, "in", third.line())
	assert.Equal(t, 2, acquired(t, server))
	assert.Equal(t, result{}, second.end())
	assert.Equal(t, result{}, third.end())
	assert.Zero(t, acquired(t, server))
}

// The commands themselves count how many of them run at once.
func TestSemRunNeverLetsInMore(t *testing.T) {
	t.Parallel()
	const permits, commands = 3, 12
	server, dir := latchkeytest.NewServer(t), t.TempDir()
	var all []*invocation
	for range commands {
		all = append(all, pooled(t, server, permits,
			`mkdir "`+dir+`/$LATCHKEY_PERMIT"; sleep 0.05; ls "`+dir+`" | wc -l; rmdir "`+dir+`/$LATCHKEY_PERMIT"`))
	}
	for _, run := range all {
		got := run.end()
		assert.Zero(t, got.code, got.stderr)
		inside, err := strconv.Atoi(strings.TrimSpace(got.stdout))
		require.NoError(t, err)
		assert.LessOrEqual(t, inside, permits)
	}
}

func TestSemRunForwardsSignals(t *testing.T) {
	t.Parallel()
	for name, sig := range map[string]syscall.Signal{
		"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "USR1": syscall.SIGUSR1,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := latchkeytest.NewServer(t)
			run := pooled(t, server, 1, `trap 'echo caught; exit 3' `+name+`; echo ready; `+untilSignal)
			require.Equal(t, "ready", run.line())
			require.NoError(t, run.Process.Signal(sig))
			assert.Equal(t, "caught", run.line())
			assert.Equal(t, result{code: 3}, run.end())
			assert.Zero(t, acquired(t, server))
		})
	}
}

func TestSemRunGivesUp(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	holder := pooled(t, server, 1, "echo in; cat")
	require.Equal(t, "in", holder.line())
	for _, wait := range []string{"0s", "2s"} {
		got := pooled(t, server, 1, "echo ran", "--wait", wait).end()
		assert.Equal(t, exitNotAcquired, got.code)
		assert.Empty(t, got.stdout)
		assertOneLine(t, got.stderr)
	}
	assert.Equal(t, 1, acquired(t, server))
	assert.Zero(t, holder.end().code)
}

func TestSignalEndsTheWaitForAPermit(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	holder := pooled(t, server, 1, "echo in; cat")
	require.Equal(t, "in", holder.line())
	run := pooled(t, server, 1, "echo ran")
	awaitListener(t, server, poolChannel, 1)
	require.NoError(t, run.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, result{code: 128 + 15}, run.end())
	assert.Zero(t, holder.end().code)
	assert.Zero(t, acquired(t, server))
}

func TestSemRunGoesOnWithTheTotalThatIsSet(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	require.NoError(t, pool(server).SetPermits(t.Context(), 5))

	got := pooled(t, server, 2, "echo ran").end()
	assert.Zero(t, got.code)
	assert.Equal(t, "ran\n", got.stdout)
	assertOneLine(t, got.stderr)
	assert.Contains(t, got.stderr, `"pool" has 5 permits, not 2: continuing; --set changes the number`)
	assert.Equal(t, 5, permits(t, server))

	assert.Equal(t, result{stdout: "ran\n"}, pooled(t, server, 5, "echo ran").end())
	assert.Equal(t, result{stdout: "ran\n"}, pooled(t, server, 2, "echo ran", "--set").end())
	assert.Equal(t, 2, permits(t, server))
}

// A semaphore that is set needs no --permits, and keeps its number.
func TestSemRunOfASemaphoreThatIsSet(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	for _, flags := range [][]string{nil, {"--fair"}} {
		args := append([]string{"sem", "run", "pool"}, flags...)
		got := latchkeyCLI(t, server, append(args, "--", "echo", "ran")...)
		assert.Equal(t, result{code: exitSoftware, stderr: "latchkey: \"pool\" is not set; --permits N sets it\n"}, got)
	}
	require.NoError(t, pool(server).SetPermits(t.Context(), 5))
	assert.Equal(t, result{stdout: "ran\n"}, latchkeyCLI(t, server, "sem", "run", "pool", "--", "echo", "ran"))
	assert.Equal(t, 5, permits(t, server))
}

func TestLostPermitEndsTheCommand(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	run := pooled(t, server, 1, `trap 'echo told; exit 0' TERM; echo $LATCHKEY_PERMIT; `+untilSignal,
		"--lease", "5s")
	takeAway(t, server, run.line())
	assert.Equal(t, "told", run.line())
	got := run.end()
	assert.Equal(t, exitLost, got.code)
	assertOneLine(t, got.stderr)
}

func TestLostPermitKillsWhoDoesNotListen(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	run := pooled(t, server, 1, `trap '' TERM; sleep 600 & echo $LATCHKEY_PERMIT; echo $!; wait; wait`,
		"--lease", "5s", "--grace", "50ms")
	id, child := run.line(), run.line()
	takeAway(t, server, id)
	assert.Equal(t, exitLost, run.end().code)
	assertGone(t, child)
}

func TestKilledSemRunLeavesThePermitToItsLease(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	run := pooled(t, server, 1, `trap 'echo told; exit 0' TERM; echo ready; `+untilSignal, "--lease", "2s")
	require.Equal(t, "ready", run.line())
	require.NoError(t, run.Process.Kill())
	if runtime.GOOS == "linux" {
		assert.Equal(t, "told", run.line(), "a command does not outlive the one that holds its permit")
	}
	permit, err := pool(server).Acquire(t.Context(), latchkey.Wait(testPatience))
	require.NoError(t, err)
	require.NoError(t, permit.Release(t.Context()))
	assert.Zero(t, acquired(t, server))
}

func TestSemRunOfASemaphoreThatIsDeleted(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	holder := pooled(t, server, 1, "echo in; cat")
	require.Equal(t, "in", holder.line())
	run := pooled(t, server, 1, "echo ran")
	awaitListener(t, server, poolChannel, 1)
	deleted, err := pool(server).Delete(t.Context())
	require.NoError(t, err)
	require.True(t, deleted)
	got := run.end()
	assert.Equal(t, exitSoftware, got.code)
	assertOneLine(t, got.stderr)
	assert.Equal(t, exitLost, holder.end().code)
}

// takeAway releases a permit that another program holds.
func takeAway(t *testing.T, server *latchkeytest.Server, id string) {
	t.Helper()
	states, err := pool(server).Release(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, []latchkey.PermitState{latchkey.PermitReleased}, states)
}

func TestSemInspect(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	assert.Equal(t, result{stdout: "pool is not set\n"}, latchkeyCLI(t, server, "sem", "inspect", "pool"))
	got := latchkeyCLI(t, server, "sem", "inspect", "pool", "--json")
	assert.Zero(t, got.code, "it is an answer, not an error")
	assert.JSONEq(t, `{"name": "pool", "set": false, "permits": 0, "acquired": 0, "available": 0, "ttl_ms": 0}`, got.stdout)

	require.NoError(t, pool(server).SetPermits(t.Context(), 5))
	pool := server.Client(latchkey.Options{Label: "worker-1"}).NewPermitSemaphore("pool")
	held, err := pool.Acquire(t.Context(), latchkey.Note("job 7"), latchkey.Lease(latchkey.NoExpiry))
	require.NoError(t, err)
	eventually(t, "who holds the permit", func() bool {
		got = latchkeyCLI(t, server, "sem", "inspect", "pool")
		return got == result{stdout: "pool has permits: 5, acquired: 1, available: 4\n" +
			"  held by  worker-1 (" + held.ID() + "), \"job 7\", never expires\n"}
	})
	got = latchkeyCLI(t, server, "sem", "inspect", "--json", "pool")
	assert.Zero(t, got.code)
	assert.JSONEq(t, `{"name": "pool", "set": true, "permits": 5, "acquired": 1, "available": 4, "ttl_ms": -1,
		"holders": [{"id": "`+held.ID()+`", "label": "worker-1", "note": "job 7", "lease_ms": -1}]}`, got.stdout)
}

func TestSemSet(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	got := latchkeyCLI(t, server, "sem", "set", "pool", "3")
	assert.Equal(t, result{stdout: "pool has permits: 3, acquired: 0, available: 3\n"}, got)
	_, err := pool(server).AcquireN(t.Context(), 2)
	require.NoError(t, err)
	got = latchkeyCLI(t, server, "sem", "set", "pool", "0")
	assert.Equal(t, result{stdout: "pool has permits: 0, acquired: 2, available: -2\n"}, got)
	got = latchkeyCLI(t, server, "sem", "set", "pool", "4", "--json")
	assert.JSONEq(t, `{"name": "pool", "set": true, "permits": 4, "acquired": 2, "available": 2, "ttl_ms": -1}`, got.stdout)
}

// A semaphore of NewSemaphore has no leases. Its total is in a separate key.
func TestSemOfAPlainSemaphore(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	plain := unnamed(server).NewSemaphore("pool")
	_, err := plain.TrySetPermits(t.Context(), 5)
	require.NoError(t, err)
	require.NoError(t, plain.TryAcquireN(t.Context(), 2))

	got := latchkeyCLI(t, server, "sem", "inspect", "pool")
	assert.Equal(t, result{stdout: "pool has permits: 5, acquired: 2, available: 3\n"}, got)
	got = latchkeyCLI(t, server, "sem", "inspect", "pool", "--json")
	assert.JSONEq(t, `{"name": "pool", "set": true, "permits": 5, "acquired": 2, "available": 3, "ttl_ms": -1}`, got.stdout)
	for permits, text := range map[string]string{
		"5": "permits: 5, acquired: 2, available: 3", "1": "permits: 1, acquired: 2, available: -1",
	} {
		got = latchkeyCLI(t, server, "sem", "set", "pool", permits)
		assert.Equal(t, result{stdout: "pool has " + text + "\n"}, got)
	}
	for _, flags := range [][]string{nil, {"--fair"}, {"--set"}} {
		args := append([]string{"sem", "run", "--name", "pool", "--permits", "2"}, flags...)
		got = latchkeyCLI(t, server, append(args, "--", "echo", "ran")...)
		assert.Equal(t, exitSoftware, got.code, flags)
		assert.Empty(t, got.stdout)
		assertOneLine(t, got.stderr)
		assert.Contains(t, got.stderr, "NewSemaphore")
		assert.Contains(t, got.stderr, "NewPermitSemaphore")
	}
	require.NoError(t, plain.SetPermits(t.Context(), 5))
	require.NoError(t, plain.ReleaseN(t.Context(), 2))
	left, err := plain.Inspect(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 5, left.Available, "no permit was forgotten")

	assert.Equal(t, result{stdout: "pool was deleted\n"}, latchkeyCLI(t, server, "sem", "delete", "pool"))
	for range 2 { // its total is gone too
		assert.Equal(t, result{}, pooled(t, server, 2, "true").end())
	}
}

func TestSemOfSomethingElse(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	hold(t, unnamed(server).NewLock("pool"))
	for _, args := range [][]string{
		{"sem", "inspect", "pool"},
		{"sem", "set", "pool", "2"},
		{"sem", "run", "--name", "pool", "--permits", "2", "--", "true"},
	} {
		got := latchkeyCLI(t, server, args...)
		assert.Equal(t, exitSoftware, got.code, args)
		assertOneLine(t, got.stderr)
	}
}

// With --fair the waiters are in a queue, which the command waiters lists.
func TestSemRunFair(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	fair := func() *invocation {
		return invoke(t, server, "sem", "run", "--name", "pool", "--permits", "1", "--fair", "--", "sh", "-c", "echo in; cat")
	}
	first := fair()
	require.Equal(t, "in", first.line())
	var all []*invocation
	for n := range 2 {
		all = append(all, fair())
		require.Eventually(t, func() bool {
			waiting, err := server.Client().Waiters(t.Context(), "pool")
			return err == nil && len(waiting) == n+1
		}, 10*time.Second, time.Millisecond)
	}
	got := latchkeyCLI(t, server, "waiters", "pool")
	assert.Equal(t, 2, strings.Count(got.stdout, "permits: 1"), got.stdout)
	assert.True(t, strings.HasSuffix(got.stdout, "\npool: 2 in queues\n"), "they listen as well, and count once: %s", got.stdout)
	assert.Equal(t, result{}, first.end())
	for _, next := range all {
		require.Equal(t, "in", next.line())
		assert.Equal(t, 1, acquired(t, server))
		assert.Equal(t, result{}, next.end())
	}
}
