package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeytest"
)

func TestInspectAsJSON(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t, latchkeytest.ManualTime())
	held := hold(t, unnamed(server).NewFencedLock("orders"))

	got := latchkeyCLI(t, server, "inspect", "orders", "--json")
	assert.Zero(t, got.code)
	assert.Empty(t, got.stderr)
	assert.JSONEq(t, `{
		"name": "orders", "key": "orders", "kind": "lock", "locked": true, "ttl_ms": 30000,
		"holders": [{"owner": "`+held.Owner().String()+`", "count": 1}], "token": 1
	}`, got.stdout)
}

func TestInspectFree(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)

	got := latchkeyCLI(t, server, "inspect", "orders")
	assert.Zero(t, got.code, "a free lock is an answer, not an error")
	assert.Equal(t, "orders is free\n", got.stdout)

	got = latchkeyCLI(t, server, "inspect", "--json", "orders")
	assert.JSONEq(t, `{"name": "orders", "key": "orders", "kind": "none", "locked": false, "ttl_ms": 0,
		"holders": [], "token": 0}`, got.stdout)
}

// inspect shows any object.
func TestInspectOfAnyObject(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	client, raw := server.Client(latchkey.Options{Label: "web-1"}), rawTo(t, server)
	pool := client.NewPermitSemaphore("pool")
	require.NoError(t, pool.SetPermits(t.Context(), 5))
	held, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	_, err = client.NewCountDownLatch("ready").TrySetCount(t.Context(), 2)
	require.NoError(t, err)
	go func() { _, _ = client.NewBarrier("phase", 3).Await(t.Context()) }()
	require.NoError(t, raw.Do(t.Context(), raw.B().Set().Key("number").Value("7").Build()).Error())
	eventually(t, "a party waits", func() bool {
		return strings.Contains(latchkeyCLI(t, server, "inspect", "phase").stdout, "1 of 3 wait\n")
	})

	for _, object := range [][2]string{{"sem", "pool"}, {"latch", "ready"}, {"barrier", "phase"}} {
		first, _, _ := strings.Cut(latchkeyCLI(t, server, object[0], "inspect", object[1]).stdout, ", expires")
		got := latchkeyCLI(t, server, "inspect", object[1])
		assert.Zero(t, got.code)
		assert.True(t, strings.HasPrefix(got.stdout, first), "%s, not %s", got.stdout, first)
	}
	assert.Contains(t, latchkeyCLI(t, server, "inspect", "pool").stdout, "\n  held by  web-1 ("+held.ID()+")")
	assert.Contains(t, latchkeyCLI(t, server, "inspect", "number").stdout, "a counter), value 7\n")
	for name, want := range map[string]string{
		"pool": `"permits": 5`, "ready": `"left": 2`, "phase": `"parties": 3`, "number": `"value": 7`,
	} {
		got := latchkeyCLI(t, server, "inspect", "--json", name)
		assert.Zero(t, got.code)
		assert.Contains(t, got.stdout, want)
	}
}

// With --exit-code, a script need not read the output.
func TestInspectByExitCode(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	hold(t, server.Client().NewLock("orders"))
	require.NoError(t, server.Client().NewPermitSemaphore("pool").SetPermits(t.Context(), 1))
	for code, calls := range map[int][][]string{
		0:               {{"inspect", "orders"}, {"inspect", "pool"}, {"inspect", "orders", "--json"}, {"sem", "inspect", "pool"}},
		exitNotAcquired: {{"inspect", "free"}, {"inspect", "free", "--json"}, {"sem", "inspect", "free"}, {"sem", "inspect", "free", "--json"}},
	} {
		for _, args := range calls {
			plainly := latchkeyCLI(t, server, args...)
			assert.Zero(t, plainly.code, args)
			got := latchkeyCLI(t, server, append(args, "--exit-code")...)
			assert.Equal(t, code, got.code, args)
			assert.Empty(t, got.stderr, args)
			assert.NotEmpty(t, got.stdout, args)
		}
	}
}

func TestInspectForPeople(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t, latchkeytest.ManualTime())
	orders := unnamed(server).NewLock("orders")
	held := hold(t, orders)
	_, err := orders.TryLock(held.Context(t.Context()))
	require.NoError(t, err)

	got := latchkeyCLI(t, server, "inspect", "orders")
	assert.Equal(t, "orders is locked\n"+
		"  kind     lock\n"+
		"  expires  in 30s unless renewed\n"+
		"  held by  "+held.Owner().String()+", 2 times\n", got.stdout)
}

func TestInspectReadersAndWriters(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t, latchkeytest.ManualTime())
	orders := unnamed(server).NewRWLock("orders")
	held := hold(t, orders.Writer())
	_, err := orders.Reader().TryLock(held.Context(t.Context()))
	require.NoError(t, err)
	owner := held.Owner()

	got := latchkeyCLI(t, server, "inspect", "orders")
	assert.Contains(t, got.stdout, "  held by  "+owner.String()+", writing\n")
	assert.Contains(t, got.stdout, "  held by  "+owner.String()+", reading\n")

	got = latchkeyCLI(t, server, "inspect", "orders", "--json")
	var reply inspectionReply
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &reply))
	assert.ElementsMatch(t, []holderReply{{Owner: owner, Count: 1, Write: true}, {Owner: owner, Count: 1}}, reply.Holders)
}

func TestInspectOfSomethingElse(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	client := rawTo(t, server)
	require.NoError(t, client.Do(t.Context(), client.B().Rpush().Key("list").Element("a").Build()).Error())

	got := latchkeyCLI(t, server, "inspect", "list")
	assert.Zero(t, got.code)
	assert.Contains(t, got.stdout, "list is not a lock\n")

	got = latchkeyCLI(t, server, "inspect", "list", "--json")
	var reply struct {
		Kind string `json:"kind"`
		TTL  int    `json:"ttl_ms"`
	}
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &reply))
	assert.Equal(t, "unknown", reply.Kind)
	assert.Equal(t, -1, reply.TTL, "-1 stands for no expiry, as in Redis")
}

func TestUnlock(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	held := hold(t, server.Client(latchkey.Options{Lease: 200 * time.Millisecond}).NewLock("orders"))

	got := latchkeyCLI(t, server, "unlock", "orders")
	assert.Equal(t, exitUsage, got.code)
	assert.Contains(t, got.stderr, "latchkey unlock --force orders", "the refusal says what to do")
	require.NoError(t, held.Err())
	assert.True(t, isLocked(t, server, "orders"))

	got = latchkeyCLI(t, server, "unlock", "--force", "orders")
	assert.Equal(t, result{stdout: "orders is unlocked\n"}, got)
	assert.False(t, isLocked(t, server, "orders"))
	<-held.Lost()

	got = latchkeyCLI(t, server, "unlock", "--force", "orders")
	assert.Equal(t, result{stdout: "orders was already free\n"}, got)
}

func TestUnlockAsJSON(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	hold(t, unnamed(server).NewMutex("orders"))

	got := latchkeyCLI(t, server, "unlock", "--force", "--kind", "mutex", "--json", "orders")
	assert.Zero(t, got.code)
	assert.JSONEq(t, `{"name": "orders", "was_held": true}`, got.stdout)
	got = latchkeyCLI(t, server, "unlock", "orders", "--force", "--json")
	assert.JSONEq(t, `{"name": "orders", "was_held": false}`, got.stdout)
}

func TestUnlockLeavesOtherThingsAlone(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	client := rawTo(t, server)
	require.NoError(t, client.Do(t.Context(), client.B().Rpush().Key("list").Element("a").Build()).Error())

	got := latchkeyCLI(t, server, "unlock", "--force", "list")
	assert.Equal(t, exitSoftware, got.code)
	assertOneLine(t, got.stderr)
	exists, err := client.Do(t.Context(), client.B().Exists().Key("list").Build()).AsBool()
	require.NoError(t, err)
	assert.True(t, exists)
}

// unlock removes a string only with --kind mutex, because data of an application can
// look the same.
func TestUnlockOfAMutexAsksForItsKind(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	mutex := unnamed(server).NewMutex("orders")
	hold(t, mutex)
	assertLocked := func(want bool) {
		seen, err := mutex.Inspect(t.Context())
		require.NoError(t, err)
		assert.Equal(t, want, seen.Locked())
	}

	got := latchkeyCLI(t, server, "unlock", "--force", "orders")
	assert.Equal(t, exitSoftware, got.code)
	assertOneLine(t, got.stderr)
	assert.Contains(t, got.stderr, "latchkey unlock --force --kind mutex orders", "the refusal says what to do")
	assertLocked(true)

	got = latchkeyCLI(t, server, "unlock", "--force", "--kind", "lock", "orders")
	assert.Equal(t, exitSoftware, got.code)
	assert.Contains(t, got.stderr, "a mutex, not a lock")
	assertLocked(true)

	got = latchkeyCLI(t, server, "unlock", "--force", "--kind", "mutex", "orders")
	assert.Equal(t, result{stdout: "orders is unlocked\n"}, got)
	assertLocked(false)

	got = latchkeyCLI(t, server, "unlock", "--force", "--kind", "semaphore", "orders")
	assert.Equal(t, exitUsage, got.code)
}

func TestUnlockByKind(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	client := unnamed(server)
	for kind, lock := range map[string]latchkey.Locker{
		"lock": client.NewFencedLock("l"), "rwlock": client.NewRWLock("r").Reader(), "mutex": client.NewMutex("m"),
	} {
		hold(t, lock)
		got := latchkeyCLI(t, server, "unlock", "--force", "--kind", kind, lock.Name())
		assert.Equal(t, result{stdout: lock.Name() + " is unlocked\n"}, got)
		got = latchkeyCLI(t, server, "unlock", "--force", "--kind", kind, lock.Name())
		assert.Equal(t, result{stdout: lock.Name() + " was already free\n"}, got)
	}
}

// For data of an application, a semaphore and a latch, inspect shows the kind, and
// unlock changes nothing. No value is taken for a holder.
func TestInspectAndUnlockOfForeignData(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	client, raw := unnamed(server), rawTo(t, server)
	for name, words := range map[string][]string{
		"text":    {"SET", "text", "hello world", "EX", "100"},
		"number":  {"SET", "number", "3", "EX", "100"},
		"record":  {"HSET", "record", "name", "Ann"},
		"phase":   {"HSET", "phase", "generation", "7", "arrived", "0"},
		"session": {"SET", "session", "alice@example.com", "EX", "100"},
	} {
		require.NoError(t, raw.Do(t.Context(), raw.B().Arbitrary(words...).Build()).Error(), name)
	}
	_, err := client.NewSemaphore("pool").TrySetPermits(t.Context(), 3, latchkey.TTL(time.Minute))
	require.NoError(t, err)
	_, err = client.NewCountDownLatch("ready").TrySetCount(t.Context(), 2, latchkey.TTL(time.Minute))
	require.NoError(t, err)

	states := map[string]string{"pool": "pool has permits: 3, acquired: 0, available: 3\n",
		"ready": "ready is closed, remaining count: 2\n", "phase": "phase: nobody waits\n"}
	for name, what := range map[string]string{
		"text": "a string of an application", "number": "a number (a semaphore, a latch or a counter)",
		"record": "a hash without any lock owner", "pool": "a semaphore", "ready": "a latch", "phase": "a barrier",
	} {
		got := latchkeyCLI(t, server, "inspect", name)
		assert.Zero(t, got.code)
		if state := states[name]; state != "" {
			assert.Equal(t, state, got.stdout)
		} else {
			assert.Contains(t, got.stdout, name+" is not a lock\n")
			assert.Contains(t, got.stdout, "  what     "+what)
		}
		assert.NotContains(t, got.stdout, "held by")
		for _, flags := range [][]string{{}, {"--kind", "mutex"}, {"--kind", "lock"}, {"--kind", "rwlock"}} {
			got = latchkeyCLI(t, server, append(append([]string{"unlock", "--force"}, flags...), name)...)
			assert.Equal(t, exitSoftware, got.code, "%s %v", name, flags)
			assert.Contains(t, got.stderr, what)
		}
		exists, err := raw.Do(t.Context(), raw.B().Exists().Key(name).Build()).AsBool()
		require.NoError(t, err)
		assert.True(t, exists, name)
	}
	got := latchkeyCLI(t, server, "inspect", "session")
	assert.Contains(t, got.stdout, "or application data")
	got = latchkeyCLI(t, server, "unlock", "--force", "session")
	assert.Equal(t, exitSoftware, got.code)
	assert.Contains(t, got.stderr, "alice@example.com")
}

// Anybody with write access to the server may write an owner, which must not control the terminal.
func TestOwnersDoNotSteerTheTerminal(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	raw := rawTo(t, server)
	const id = "01234567-89ab-cdef-0123-456789abcdef:1:"
	for _, words := range [][]string{
		{"HSET", "orders", id + "\x1b[2J", "1"},
		{"PEXPIRE", "orders", "60000"},
		{"SET", "mutex", "0123456789abcdef0123456789\x1b[2J", "PX", "60000"},
		{"HSET", "phase", "generation", "7", "parties", "2", "arrived", "1"},
		{"ZADD", "latchkey_barrier_waiting:{phase}", "922337203685477", id + "\x1b[2J"},
	} {
		require.NoError(t, raw.Do(t.Context(), raw.B().Arbitrary(words...).Build()).Error(), words)
	}
	for _, args := range [][]string{
		{"inspect", "orders"}, {"ls"}, {"inspect", "mutex"}, {"barrier", "inspect", "phase"}, {"waiters", "phase"},
	} {
		got := latchkeyCLI(t, server, args...)
		assert.Zero(t, got.code, "%v: %s", args, got.stderr)
		assert.NotContains(t, got.stdout, "\x1b", args)
		assert.Contains(t, got.stdout, `\x1b[2J"`, args)
	}
	assert.Contains(t, latchkeyCLI(t, server, "inspect", "mutex").stdout,
		`held by  "0123456789abcdef0123456789\x1b[2J"; probably a mutex of another library`, "it is quoted once")
	assert.Equal(t, `"\x9b2J"`, printable("\x9b2J"), "that begins a sequence as well, and is not UTF-8")

	text := leaderText("e", latchkey.Leader{Value: "v", Label: "\x1b[2J", Term: 1}, true)
	assert.NotContains(t, text, "\x1b")
}
