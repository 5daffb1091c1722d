//go:build unix

package main

import (
	"encoding/json"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/latchkeytest"
)

func TestLockUntilInputEnds(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	run := invoke(t, server, "lock", "orders", "-n")
	assert.Equal(t, "holding orders", run.line())
	assert.True(t, isLocked(t, server, "orders"))

	second := latchkeyCLI(t, server, "lock", "orders", "-n")
	assert.Equal(t, exitNotAcquired, second.code)
	assert.Empty(t, second.stdout)
	assertOneLine(t, second.stderr)

	assert.Equal(t, result{}, run.end())
	assert.False(t, isLocked(t, server, "orders"))
}

func TestLockUntilASignal(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	run := invoke(t, server, "lock", "orders", "--fenced")
	assert.Equal(t, "holding orders, token 1", run.line())
	require.NoError(t, run.Process.Signal(syscall.SIGTERM))
	require.Error(t, run.Wait()) // its input is open
	assert.Equal(t, exitSignalled+15, run.ProcessState.ExitCode())
	assert.False(t, isLocked(t, server, "orders"))
}

func TestLockIsRenewedAndItsLossTold(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	run := invoke(t, server, "lock", "orders", "--lease", "5s", "--json")
	var reply lockReply
	require.NoError(t, json.NewDecoder(run.out).Decode(&reply))
	assert.Equal(t, "orders", reply.Name)
	orders, before := server.Client().NewLock("orders"), time.Duration(0)
	for renewals := 0; renewals < 2; {
		seen, err := orders.Inspect(t.Context())
		require.NoError(t, err)
		if before > 0 && seen.TTL > before {
			renewals++
		}
		before = seen.TTL
		time.Sleep(10 * time.Millisecond) // the lease reports no changes
	}
	found, err := server.Client().Inspect(t.Context(), "orders")
	require.NoError(t, err)
	require.Len(t, found.Holders, 1)
	assert.Equal(t, reply.Owner, found.Holders[0].Owner)

	forceUnlock(t, server)
	require.Error(t, run.Wait()) // its input is open
	assert.Equal(t, exitLost, run.ProcessState.ExitCode())
	assertOneLine(t, run.stderr.String())
}

func TestLockOfReaders(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	first, second := invoke(t, server, "lock", "orders", "--read"), invoke(t, server, "lock", "orders", "--read")
	first.line()
	second.line()
	assert.Equal(t, exitNotAcquired, latchkeyCLI(t, server, "lock", "orders", "--write", "-n").code)
	assert.Zero(t, first.end().code)
	assert.Zero(t, second.end().code)
}

// Empty input, like that of a program in the background, does not end the lock command.
func TestLockWithoutInput(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	run := invoke(t, server, "run", "--lock", "outer", "--", "sh", "-c",
		`"$LATCHKEY" lock orders </dev/null & read x; kill $!; wait $!; echo "code $?"`)
	run.line()
	assert.True(t, isLocked(t, server, "orders"))
	_, err := run.in.Write([]byte("\n"))
	require.NoError(t, err)
	assert.Equal(t, "code 143", run.line())
	assert.Zero(t, run.end().code)
}

// The example of the help text.
func TestLockInAScript(t *testing.T) {
	t.Parallel()
	if !inPath("bash") {
		t.Skip("bash is not in PATH: the script uses its coproc")
	}
	server := latchkeytest.NewServer(t)
	const text = `latchkey() { "$LATCHKEY" "$@"; }
		coproc latchkey lock deploy -n
		read -ru "${COPROC[0]}" held || { echo busy; exit 75; }
		exec 9>&"${COPROC[1]}"-
		echo deploying; read x
		exec 9>&-`
	run := invoke(t, server, "run", "--lock", "outer", "--", "bash", "-c", text)
	require.Equal(t, "deploying", run.line())
	assert.True(t, isLocked(t, server, "deploy"))
	busy := latchkeyCLI(t, server, "run", "--lock", "other", "--", "bash", "-c", text)
	assert.Equal(t, exitNotAcquired, busy.code, busy.stderr)
	assert.Equal(t, "busy\n", busy.stdout)
	assert.Zero(t, run.end().code)
	eventually(t, "the lock is released", func() bool { return !isLocked(t, server, "deploy") })
}

func TestSemDelete(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	pool := server.Client().NewPermitSemaphore("pool")
	_, err := pool.TrySetPermits(t.Context(), 1)
	require.NoError(t, err)
	holder := invoke(t, server, "sem", "run", "--name", "pool", "--permits", "1", "--lease", "5s", "--", "sh", "-c", "echo ready; exec sleep 600")
	holder.line()
	waiter := invoke(t, server, "sem", "run", "--name", "pool", "--permits", "1", "--", "echo", "ran")
	awaitListener(t, server, "redisson_sc:{pool}", 1)
	assert.Equal(t, result{stdout: "pool was deleted\n"}, latchkeyCLI(t, server, "sem", "delete", "pool"))
	assert.Equal(t, exitLost, holder.end().code)
	assert.Equal(t, exitSoftware, waiter.end().code)
	assert.Equal(t, result{stdout: "pool did not exist\n"}, latchkeyCLI(t, server, "sem", "delete", "pool"))
}

func TestLsByPrefixFlag(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	hold(t, server.Client().NewLock("orders:1"))
	hold(t, server.Client().NewLock("invoices:1"))
	byFlag := latchkeyCLI(t, server, "ls", "--prefix", "orders:", "--json")
	assert.Contains(t, byFlag.stdout, "orders:1")
	assert.NotContains(t, byFlag.stdout, "invoices")
}
