//go:build unix

package main

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeytest"
)

// Commands start when their turns come, and end with their own codes.
func TestRateRunsInTurn(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	began := time.Now()
	for range 4 {
		got := latchkeyCLI(t, server, "rate", "api", "10/s", "--burst", "1", "--", "sh", "-c", "echo done; exit 3")
		require.Equal(t, result{stdout: "done\n", code: 3}, got)
	}
	assert.GreaterOrEqual(t, time.Since(began), 290*time.Millisecond)
	assert.Equal(t, exitNotFound, latchkeyCLI(t, server, "rate", "api", "10/s", "--", "no-such-command").code)
}

// A command whose turn does not come in time does not start.
func TestRateGivesUp(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	run := func(flags ...string) result {
		return latchkeyCLI(t, server, append(append([]string{"rate", "api", "2/h"}, flags...), "--", "echo", "runs")...)
	}
	require.Equal(t, result{stdout: "runs\n"}, run())
	require.Equal(t, result{stdout: "runs\n"}, run("-n"))
	for _, wait := range []string{"--no-wait", "--wait=0s", "--wait=100ms", "--wait=1m"} {
		got := run(wait)
		assert.Equal(t, exitNotAcquired, got.code)
		assert.Regexp(t, `^latchkey: "api": too many requests: its turn is in (30m|29m[0-9.]+s)\n$`, got.stderr)
	}

	waiting := invoke(t, server, "rate", "api", "2/h", "--", "echo", "runs")
	reserved := func(n int) func() bool {
		return func() bool {
			o, err := server.Client().Inspect(t.Context(), "api")
			return err == nil && o.Available == -n
		}
	}
	eventually(t, "it waits", reserved(1))
	require.NoError(t, waiting.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, result{code: exitSignalled + int(syscall.SIGTERM)}, waiting.end())
	eventually(t, "its turn is given back", reserved(0))
}

// A limiter is shown by the commands that show objects, and --set changes the rate of all.
func TestRateIsShown(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	require.Zero(t, latchkeyCLI(t, server, "rate", "api", "3/h", "--burst", "2", "--", "true").code)
	assert.Contains(t, latchkeyCLI(t, server, "inspect", "api").stdout,
		"api is a rate limiter\n  rate     3/1h burst 2\n  now      0 reserved, 1 of 2 available\n  kind     rate\n  expires  in ")
	var shown objectReply
	require.NoError(t, json.Unmarshal([]byte(latchkeyCLI(t, server, "inspect", "--json", "api").stdout), &shown))
	assert.Equal(t, []any{"rate", "3/1h burst 2", 1, 2}, []any{shown.Kind, shown.Rate, *shown.Available, *shown.Burst})
	table := strings.Split(latchkeyCLI(t, server, "ls").stdout, "\n")
	assert.Regexp(t, `^api +rate +1/2 +- +\S+ +3/1h burst 2$`, table[1])
	got := latchkeyCLI(t, server, "waiters", "api")
	assert.Equal(t, exitSoftware, got.code)
	assert.Contains(t, got.stderr, `"api" is a rate limiter, and the server does not know who waits; `+
		"for the number of reserved requests: latchkey inspect api\n")

	assert.Zero(t, latchkeyCLI(t, server, "inspect", "--exit-code", "api").code, "there is something under the name")
	require.Equal(t, result{stdout: "api: 100/30s for all programs\n"}, latchkeyCLI(t, server, "rate", "api", "100/30s", "--set"))
	o, err := server.Client().Inspect(t.Context(), "api")
	require.NoError(t, err)
	assert.Equal(t, latchkey.Rate{N: 100, Per: 30 * time.Second, Burst: 100}, o.Rate)
	assert.Equal(t, "rate: 100/30s, 0 reserved, 99 of 100 available", changeText(o))
}

// After own, each program brings its own rate. Until then, what was let through drains at the rate
// that was in force, which is also the one that is shown.
func TestRateOfEachProgram(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	own := func() {
		t.Helper()
		require.Equal(t, result{stdout: "api: own rate of each program\n"}, latchkeyCLI(t, server, "rate", "api", "own", "--set"))
	}
	own()
	require.Equal(t, "api is free\n", latchkeyCLI(t, server, "inspect", "api").stdout, "there was nothing to remove")
	require.Zero(t, latchkeyCLI(t, server, "rate", "api", "3/h", "--burst", "2", "--", "true").code)
	require.Zero(t, latchkeyCLI(t, server, "rate", "api", "5/h", "--set").code)
	own()
	assert.Contains(t, latchkeyCLI(t, server, "inspect", "api").stdout, "  rate     5/1h\n")

	require.Zero(t, latchkeyCLI(t, server, "rate", "api", "3/h", "--burst", "2", "--", "true").code)
	assert.Equal(t, exitNotAcquired, latchkeyCLI(t, server, "rate", "api", "3/h", "--burst", "2", "-n", "--", "true").code)
	assert.Contains(t, latchkeyCLI(t, server, "inspect", "api").stdout, "  rate     3/1h burst 2\n")

	hold(t, server.Client().NewLock("a lock"))
	got := latchkeyCLI(t, server, "rate", "a lock", "own", "--set")
	assert.Equal(t, exitSoftware, got.code)
	assert.Contains(t, got.stderr, `"a lock": the key is a lock, not a rate limiter`)
}

func TestRateUsage(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	hold(t, server.Client().NewLock("a lock"))
	for want, args := range map[string][]string{
		"rate needs a NAME and a rate such as 10/s before --": {"api", "--", "true"},
		"rate needs a command, or --set":                      {"api", "10/s"},
		`"ten/s" is not a rate`:                               {"api", "ten/s", "--", "true"},
		`"10/fortnight" is not a rate`:                        {"api", "10/fortnight", "--", "true"},
		`"own" is not a rate`:                                 {"api", "own", "--", "true"},
		"the period 9600h of a rate is not between":           {"api", "1/400d", "--", "true"},
		"a rate of 0 requests, want at least 1":               {"api", "0/s", "--", "true"},
		"--burst 0: must be 1 to 2147483647":                  {"api", "1/s", "--burst", "0", "--", "true"},
		`"a lock": the key is a lock, not a rate limiter`:     {"a lock", "1/s", "--", "true"},
	} {
		got := latchkeyCLI(t, server, append([]string{"rate"}, args...)...)
		assert.NotZero(t, got.code, args)
		assert.Contains(t, got.stderr, want)
		assertOneLine(t, got.stderr)
	}
}
