//go:build unix

package main

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeytest"
)

// onceOf runs a shell script that is to succeed once as "migration".
func onceOf(t *testing.T, server *latchkeytest.Server, text string, flags ...string) *invocation {
	t.Helper()
	args := append([]string{"once", "migration", "--ttl", "1h"}, flags...)
	return invoke(t, server, append(args, "--", "sh", "-c", text)...)
}

func TestOncePrintsTheOutputOfTheSuccess(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	var runs sync.WaitGroup
	for i := range 3 {
		run := onceOf(t, server, "sleep 0.1; echo ran "+strconv.Itoa(i)+"; echo no error >&2")
		runs.Go(func() {
			got := run.end()
			assert.Zero(t, got.code)
			assert.Regexp(t, `^ran \d\n$`, got.stdout)
		})
	}
	runs.Wait()
	first := onceOf(t, server, "echo again").end()
	require.Regexp(t, `^ran \d\n$`, first.stdout)
	require.Equal(t, first, onceOf(t, server, "echo again").end())
	result, done, err := server.Client().NewOnce("migration", time.Hour).Result(t.Context())
	require.NoError(t, err)
	require.True(t, done)
	require.Equal(t, first.stdout, string(result))
	for command, want := range map[string]string{
		"inspect": "migration is done\n  kind     once\n", "ls": "done", "watch": "done, waiters: 0",
	} {
		args := []string{command, "migration"}
		if command == "watch" {
			run := invoke(t, server, args...)
			require.Contains(t, run.line(), want)
			require.NoError(t, run.Process.Signal(syscall.SIGTERM))
			run.end()
			continue
		}
		assert.Contains(t, latchkeyCLI(t, server, args...).stdout, want, command)
	}
}

func TestOnceRunsAgainAfterAFailure(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	assert.Equal(t, result{code: 7, stdout: "no\n"}, onceOf(t, server, "echo no; exit 7").end())
	assert.Equal(t, 128+9, onceOf(t, server, "kill -9 $$").end().code)
	assert.Equal(t, exitNotFound, latchkeyCLI(t, server, "once", "migration", "--ttl", "1h", "--", "latchkey-test-no-such-command").code)
	assert.Equal(t, result{stdout: "yes\n"}, onceOf(t, server, "echo yes").end())
	assert.Equal(t, result{stdout: "yes\n"}, onceOf(t, server, "echo no; exit 7").end())
}

func TestOnceOfAnotherMachine(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	run := onceOf(t, server, "echo $LATCHKEY_TOKEN; cat", "--label", "web-1", "--note", "release 7")
	token, err := strconv.ParseInt(run.line(), 10, 64)
	require.NoError(t, err)
	seen, err := server.Client().Inspect(t.Context(), "migration")
	require.NoError(t, err)
	require.Equal(t, seen.Token, token)
	got := onceOf(t, server, "echo mine", "--wait", "300ms").end()
	assert.Equal(t, exitNotAcquired, got.code)
	assert.Contains(t, got.stderr, `"migration" is run by web-1`)
	text := latchkeyCLI(t, server, "inspect", "migration").stdout
	assert.Contains(t, text, "migration is running\n")
	assert.Contains(t, text, "unless renewed\n")
	waiting := onceOf(t, server, "echo mine")
	eventually(t, "it waits", func() bool {
		seen, err := server.Client().Inspect(t.Context(), "migration")
		return err == nil && seen.Listeners == 1
	})
	_, err = run.in.Write([]byte("input\n"))
	require.NoError(t, err)
	require.Zero(t, run.end().code)
	assert.Equal(t, strconv.FormatInt(token, 10)+"\ninput\n", waiting.end().stdout)
}

func TestOnceEndsTheCommandWhenTheRunIsLost(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	run := onceOf(t, server, "echo ready; "+untilSignal, "--lease", "1s")
	require.Equal(t, "ready", run.line())
	raw := rawTo(t, server)
	require.NoError(t, raw.Do(t.Context(), raw.B().Del().Key("migration").Build()).Error())
	got := run.end()
	assert.Equal(t, exitLost, got.code)
	assert.Contains(t, got.stderr, `the run of "migration" is lost`)
	_, done, err := server.Client().NewOnce("migration", time.Hour).Result(t.Context())
	require.NoError(t, err)
	assert.False(t, done)
}

func TestOnceKeepsTheBeginningOfALongOutput(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	text := "head -c 100000 /dev/zero | tr '\\0' x"
	require.Len(t, onceOf(t, server, text).end().stdout, 100000)
	require.Equal(t, strings.Repeat("x", mostOutput), onceOf(t, server, "echo no").end().stdout)
}

func TestOnceNeedsATime(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	for text, args := range map[string][]string{
		"--ttl is missing":                           {},
		"--ttl soon: must be a time such as 10m":     {"--ttl", "soon"},
		"--ttl 0s: must be 1ms to 10 years (87600h)": {"--ttl", "0s"},
	} {
		got := latchkeyCLI(t, server, append(append([]string{"once", "migration"}, args...), "--", "true")...)
		assert.Equal(t, exitUsage, got.code)
		assert.Contains(t, got.stderr, text)
	}
	require.Zero(t, latchkeyCLI(t, server, "once", "migration", "--ttl", "forever", "--", "true").code)
	seen, err := server.Client().Inspect(context.Background(), "migration")
	require.NoError(t, err)
	require.Equal(t, latchkey.NoExpiry, seen.TTL)
	got := latchkeyCLI(t, server, "unlock", "--force", "migration")
	assert.Equal(t, exitSoftware, got.code)
	assert.Contains(t, got.stderr, "a Once that is done, not a lock; to forget its success: latchkey once migration --forget\n")
}

func TestOnceForgets(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	forget := func(args ...string) result {
		return latchkeyCLI(t, server, append([]string{"once", "migration", "--forget"}, args...)...)
	}
	nothing := result{stdout: "migration had not succeeded: there was nothing to forget\n"}
	assert.Equal(t, nothing, forget())
	require.Equal(t, result{stdout: "first\n"}, onceOf(t, server, "echo first").end())
	assert.Equal(t, result{stdout: "migration is forgotten\n"}, forget())
	assert.Equal(t, nothing, forget())
	run := onceOf(t, server, "echo second; cat")
	require.Equal(t, "second", run.line())
	assert.Equal(t, nothing, forget(), "it is running")
	got := latchkeyCLI(t, server, "unlock", "--force", "migration")
	assert.Equal(t, exitSoftware, got.code)
	assert.Contains(t, got.stderr, "a Once, not a lock; to stop it, end its process\n")
	require.Zero(t, run.end().code)
	require.Equal(t, result{stdout: "second\n"}, onceOf(t, server, "echo third").end())

	for text, args := range map[string][]string{
		"--forget takes one NAME and no command":       {"--", "true"},
		"--forget and --ttl cannot be used together":   {"--ttl", "1h"},
		"--forget takes one NAME and no command: latc": {"another"},
	} {
		got := forget(args...)
		assert.Equal(t, exitUsage, got.code)
		assert.Contains(t, got.stderr, text)
	}
	hold(t, server.Client().NewLock("a lock"))
	got = latchkeyCLI(t, server, "once", "a lock", "--forget")
	assert.Equal(t, exitSoftware, got.code)
	assert.Contains(t, got.stderr, "a lock, not a Once")
}

// A success can be remembered for days. The line that a mistake suggests works.
func TestOnceForDays(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	for args, want := range map[string]string{
		"":            "once needs a command: latchkey once migration --ttl 1d -- CMD [ARGS…]\n",
		"true":        "put -- in front of the command: latchkey once migration --ttl 1d -- true …\n",
		"--note text": "once needs a command: latchkey once migration --ttl 1d -- CMD [ARGS…]\n",
	} {
		got := latchkeyCLI(t, server, append([]string{"once", "migration", "--ttl", "1d"}, strings.Fields(args)...)...)
		assert.Equal(t, result{code: exitUsage, stderr: "latchkey: " + want}, got)
	}
	require.Zero(t, latchkeyCLI(t, server, "once", "migration", "--ttl", "1d", "--", "true").code)
	seen, err := server.Client().Inspect(t.Context(), "migration")
	require.NoError(t, err)
	require.Greater(t, seen.TTL, 23*time.Hour)
}

func TestTimesInDays(t *testing.T) {
	for text, want := range map[string]time.Duration{"1d": day, "30d": 30 * day, "90m": 90 * time.Minute, "0d": 0} {
		got, err := timeOrDays(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got)
	}
	for _, text := range []string{"d", "-1d", "1.5d", "1d2h", "5", "99999999999999999999d"} {
		_, err := timeOrDays(text)
		assert.Error(t, err, text)
	}
	_, err := rememberedFor("4000000000d")
	assert.ErrorContains(t, err, "10 years")
}
