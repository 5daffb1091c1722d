//go:build unix

package main

import (
	"os"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/latchkeytest"
)

// cronOf runs a shell script as the job "nightly".
func cronOf(t *testing.T, server *latchkeytest.Server, text string, flags ...string) *invocation {
	t.Helper()
	args := append([]string{"cron"}, flags...)
	return invoke(t, server, append(args, "nightly", "--", "sh", "-c", text)...)
}

func TestCronRunsOnce(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	var runs sync.WaitGroup
	results := make([]result, 3)
	for i := range results {
		run := cronOf(t, server, "echo ran")
		runs.Go(func() { results[i] = run.end() })
	}
	runs.Wait()
	ran := 0
	for _, each := range results {
		assert.Zero(t, each.code)
		assert.Empty(t, each.stderr, "cron would send mail")
		if each.stdout == "ran\n" {
			ran++
			continue
		}
		assert.Empty(t, each.stdout)
	}
	assert.Equal(t, 1, ran)
	for _, flag := range []string{"--verbose", "--conflict-exit-code=3"} {
		assert.Contains(t, cronOf(t, server, "echo ran", flag).end().stderr, "elsewhere", flag)
	}
	assert.True(t, isLocked(t, server, "nightly"), "for a minute")
	got := latchkeyCLI(t, server, "inspect", "nightly")
	assert.Contains(t, got.stdout, "released, kept taken by its AtLeast")
}

func TestCronRunsAgain(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	for range 2 {
		assert.Equal(t, result{stdout: "ran\n"}, cronOf(t, server, "echo ran", "--at-least", "1ms").end())
		eventually(t, "the time is over", func() bool { return !isLocked(t, server, "nightly") })
	}
}

func TestCronPassesExitCodes(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	assert.Equal(t, 7, cronOf(t, server, "exit 7").end().code)
	assert.Equal(t, 75, cronOf(t, server, "exit 7", "--conflict-exit-code", "75").end().code)
	assert.Equal(t, 0, cronOf(t, server, "exit 7").end().code)
	got := latchkeyCLI(t, server, "cron", "weekly", "--", "echo", "-x", "--", "help", "--at-least")
	assert.Equal(t, result{stdout: "-x -- help --at-least\n"}, got)
}

// The job is killed together with its machine: no other machine repeats it.
func TestCronIsKilled(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	run := cronOf(t, server, "echo ready; cat", "--lease", "5s")
	require.Equal(t, "ready", run.line())
	require.NoError(t, run.Process.Signal(os.Kill))
	_ = run.end()
	seen, err := server.Client().NewLock("nightly").Inspect(t.Context())
	require.NoError(t, err)
	assert.Greater(t, seen.TTL, 30*time.Second, "although the lease is short")
}

func TestRunTriesOnce(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	held := hold(t, server.Client().NewLock("orders"))
	got := script(t, server, "echo ran", "--no-wait").end()
	assert.Equal(t, exitNotAcquired, got.code)
	assert.Empty(t, got.stdout)
	assertOneLine(t, got.stderr)
	require.NoError(t, held.Unlock(t.Context()))
	assert.Equal(t, result{stdout: "ran\n"}, script(t, server, "echo ran", "--no-wait").end())
}

func TestRunReadsAndWrites(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	first := script(t, server, "echo ready; cat", "--read")
	require.Equal(t, "ready", first.line())
	assert.Equal(t, result{stdout: "ran\n"}, script(t, server, "echo ran", "--read", "--no-wait").end())
	assert.Equal(t, exitNotAcquired, script(t, server, "echo ran", "--write", "--no-wait").end().code)
	assert.Zero(t, first.end().code)
	assert.Equal(t, result{stdout: "ran\n"}, script(t, server, "echo ran", "--write", "--no-wait").end())
}

func TestRunFair(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	fair := server.Client().NewFairLock("orders")
	held, err := fair.TryLock(t.Context())
	require.NoError(t, err)
	run := script(t, server, "echo $LATCHKEY_TOKEN", "--fair", "--fenced")
	eventually(t, "it stands in the queue", func() bool {
		waiters, err := fair.Waiters(t.Context())
		return err == nil && len(waiters) == 1
	})
	require.NoError(t, held.Unlock(t.Context()))
	assert.Equal(t, result{stdout: "1\n"}, run.end())
}

// The hand-written lines of the help texts are no wider than a terminal.
func TestHelpIsNarrow(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"run"}, {"cron"}, {"sem", "run"}} {
		got := latchkeyCLI(t, nil, append(args, "--help")...)
		_, text, _ := strings.Cut(got.stdout, "DESCRIPTION:")
		text, _, _ = strings.Cut(text, "OPTIONS:")
		for line := range strings.Lines(text) {
			assert.LessOrEqual(t, utf8.RuneCountInString(strings.TrimPrefix(line, "   "))-1, 80, line)
		}
	}
}
