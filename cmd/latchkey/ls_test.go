package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeytest"
)

func TestLs(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t, latchkeytest.ManualTime())
	client := unnamed(server)
	orders := hold(t, client.NewLock("orders:1"))
	hold(t, client.NewMutex("orders:2"))
	pool := client.NewSemaphore("orders:pool")
	_, err := pool.TrySetPermits(t.Context(), 3)
	require.NoError(t, err)
	hold(t, client.NewLock("other*"))

	got := latchkeyCLI(t, server, "ls", "orders:")
	assert.Zero(t, got.code)
	lines := strings.Split(got.stdout, "\n")
	assert.Equal(t, []string{"NAME", "KIND", "HOLDERS", "WAITERS", "TTL", "HELD", "BY"}, strings.Fields(lines[0]))
	assert.Equal(t, []string{"orders:1", "lock", "1", "0", "30s", orders.Owner().String()}, strings.Fields(lines[1]))
	assert.Equal(t, []string{"orders:2", "mutex", "1"}, strings.Fields(lines[2])[:3])
	assert.Equal(t, []string{"orders:pool", "semaphore", "0/3", "0", "never"}, strings.Fields(lines[3]))
	assert.Len(t, lines, 5)

	assert.Len(t, strings.Split(latchkeyCLI(t, server, "ls", "other*").stdout, "\n"), 3, "a prefix is no pattern")
	assert.Len(t, strings.Split(latchkeyCLI(t, server, "ls", "--match", "*[12]").stdout, "\n"), 4)
}

func TestLsAsJSON(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t, latchkeytest.ManualTime())
	client := unnamed(server)
	held := hold(t, client.NewFencedLock("orders"))
	_, err := client.NewCountDownLatch("ready").TrySetCount(t.Context(), 2)
	require.NoError(t, err)
	got := latchkeyCLI(t, server, "ls", "--json")
	assert.JSONEq(t, `[
		{"name": "orders", "key": "orders", "kind": "lock", "locked": true, "ttl_ms": 30000,
			"holders": [{"owner": "`+held.Owner().String()+`", "count": 1}], "token": 1,
			"holder_count": 1, "waiters": 0, "queued": 0, "listeners": 0},
		{"name": "ready", "key": "ready", "kind": "latch", "what": "a latch", "locked": false, "ttl_ms": -1,
			"holders": [], "token": 0, "holder_count": 0, "waiters": 0, "queued": 0, "listeners": 0, "left": 2}
	]`, got.stdout)
}

func TestWaiters(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	hold(t, unnamed(server).NewLock("orders"))
	other := unnamed(server)
	go func() { _, _ = other.NewLock("orders").Lock(t.Context()) }()
	require.Eventually(t, func() bool {
		return strings.Contains(latchkeyCLI(t, server, "waiters", "orders").stdout, "1 in queues")
	}, testPatience, 50*time.Millisecond)
	got := latchkeyCLI(t, server, "waiters", "orders")
	assert.True(t, strings.HasPrefix(got.stdout, other.ID()), got.stdout)
	assert.Contains(t, latchkeyCLI(t, server, "waiters", "--json", "orders").stdout, other.ID())

	assert.Equal(t, "free: 0 in queues, 0 listening\n", latchkeyCLI(t, server, "waiters", "free").stdout)
}

// watch prints the object, and then each change, until a signal ends it.
func TestWatch(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	lock := unnamed(server).NewLock("orders")
	i := invoke(t, server, "watch", "--every", "50ms", "orders")
	assert.Contains(t, i.line(), "free, waiters: 0")
	held := hold(t, lock)
	assert.Contains(t, i.line(), "held by "+held.Owner().String()+"; waiters: 0")
	require.NoError(t, held.Unlock(t.Context()))
	assert.Contains(t, i.line(), "free, waiters: 0")
}

func TestCheck(t *testing.T) {
	t.Parallel()
	got := latchkeyCLI(t, latchkeytest.NewServer(t), "check")
	assert.Zero(t, got.code)
	assert.Contains(t, got.stdout, ": ok")
}

// check prints each problem with advice, and reports it by the exit code.
func TestCheckFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	url := startRedis(t)
	raw, err := rawClient(url)
	require.NoError(t, err)
	defer raw.Close()
	do := func(words ...string) {
		require.NoError(t, raw.Do(t.Context(), raw.B().Arbitrary(words...).Build()).Error())
	}
	check := func() result { return invokeAt(t, url, "check").end() }
	assert.Zero(t, check().code)

	do("CONFIG", "SET", "maxmemory", "1gb")
	do("CONFIG", "SET", "maxmemory-policy", "volatile-lru")
	got := check()
	assert.Equal(t, exitUnavailable, got.code)
	assert.Contains(t, got.stdout, "set maxmemory-policy noeviction")
	do("CONFIG", "SET", "maxmemory", "0")

	do("ACL", "SETUSER", "default", "-scan")
	got = check()
	assert.Zero(t, got.code, "locks work without it")
	assert.Contains(t, got.stdout, "give the user +scan")

	do("ACL", "SETUSER", "default", "resetchannels")
	got = check()
	assert.Equal(t, exitUnavailable, got.code)
	assert.Contains(t, got.stdout, "docs/reference/keys.md")
}

// The walk ends early, and only a refusal is answered with the missing permission.
func TestCheckTriesToList(t *testing.T) {
	t.Parallel()
	client := latchkeytest.NewServer(t).Client()
	require.NoError(t, tryToList(t.Context(), client))
	over, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, tryToList(over, client), "nobody has refused")
	require.NoError(t, client.Close(t.Context()))
	failed := tryToList(t.Context(), client)
	require.ErrorIs(t, failed, latchkey.ErrClosed)
	assert.NotContains(t, listAdvice(failed), "+scan")
}

func TestFit(t *testing.T) {
	for text, want := range map[string]string{
		"": "    ", "abcd": "abcd", "abcde": "abc…", "äöüß": "äöüß", "😀😀": "😀😀", "a😀😀": "a😀…", "ab😀😀": "ab… ",
	} {
		assert.Equal(t, want, fit(text, 4), text)
	}
	assert.Empty(t, fit("abc", 0))
}

func TestWaitingTextLeavesOutWhatIsNone(t *testing.T) {
	o := latchkey.Object{Kind: latchkey.KindLock}
	assert.Equal(t, "0 in queues, 0 listening", waitingText(o, 0))
	assert.Equal(t, "3 in queues", waitingText(o, 3))
	o.Listeners = 2
	assert.Equal(t, "2 listening", waitingText(o, 0))
	assert.Equal(t, "3 in queues, 2 listening", waitingText(o, 3))
}

// Application data is not watched as if it were a lock.
func TestWatchOfForeignData(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	raw := rawTo(t, server)
	for name, words := range map[string][]string{"list": {"RPUSH", "list", "a"}, "text": {"SET", "text", "hello world"}} {
		require.NoError(t, raw.Do(t.Context(), raw.B().Arbitrary(words...).Build()).Error(), name)
		got := latchkeyCLI(t, server, "watch", name)
		assert.Equal(t, exitSoftware, got.code, name)
		assert.Contains(t, got.stderr, ", not a lock", name)
	}
}
