package lock_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/primitive/lock"
	"github.com/latchkey-go/latchkey/internal/testredis"
	"github.com/latchkey-go/latchkey/internal/transport"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

const (
	ownerA = testredis.OwnerA
	ownerB = testredis.OwnerB
	guest1 = testredis.Guest1
	guest2 = testredis.Guest2
)

// lockScripts drives one lock by its bare scripts. It sends every call twice, and both replies must
// be the same, as after a lost reply.
type lockScripts struct {
	t   *testing.T
	c   *core.Parts
	key string
}

func (s lockScripts) twice(cmd transport.Command, keys []string, args ...string) any {
	s.t.Helper()
	first := testredis.RunScript(s.c, cmd, keys, args...)
	state := testredis.HashOf(s.t, s.c, s.key)
	second := testredis.RunScript(s.c, cmd, keys, args...)
	if refused, is := first.([]any); is && cmd == script.LockAcquire {
		require.InDelta(s.t, refused[0], second.([]any)[0], 4000, "a refusal tells the remaining time")
		require.Equal(s.t, refused[1], second.([]any)[1], "and who holds the lock")
	} else if cmd == script.LockRelease && args[2] == "0" {
		require.Nil(s.t, second, "a release that has happened finds nothing")
	} else {
		require.Equal(s.t, first, second, "the same command, sent twice")
	}
	require.Equal(s.t, state, testredis.HashOf(s.t, s.c, s.key), "the second time changes nothing")
	return first
}

// keys returns the keys of the lock and its queue.
func (s lockScripts) keys() []string {
	k := keyspace.OfKey(s.key, s.key)
	return k.Fenced()[:2:2]
}

func (s lockScripts) acquire(owner string, count int, guest string) any {
	s.t.Helper()
	return s.twice(script.LockAcquire, s.keys(), owner, "30000", strconv.Itoa(count), guest, "", "", "", "")
}

func (s lockScripts) release(owner string, count int, guest string) any {
	s.t.Helper()
	return s.twice(script.LockRelease, s.keys(), owner, "channel:{"+s.key+"}", strconv.Itoa(count), guest, "0", "PUBLISH", "", "", "latchkey:{", "}", "1", "0")
}

func newLockScripts(t *testing.T) lockScripts {
	t.Helper()
	c := testredis.NewEngine(t)
	return lockScripts{t, c, testredis.UniqueName(t, c)}
}

func TestLockScripts_sent_twice_count_once(t *testing.T) {
	s := newLockScripts(t)
	require.Nil(t, s.acquire(ownerA, 1, ""))
	require.Nil(t, s.acquire(ownerA, 2, ""))
	require.Equal(t, map[string]string{ownerA: "2"}, testredis.HashOf(t, s.c, s.key))
	refused := s.acquire(ownerB, 1, "").([]any)
	require.InDelta(t, 30000, refused[0], 4000, "refused with what remains")
	require.Equal(t, ownerA, refused[1], "and who has it")
	require.Equal(t, "HELD", s.release(ownerA, 1, ""))
	require.Nil(t, s.release(ownerB, 0, ""), "not the holder")
	require.Equal(t, map[string]string{ownerA: "1"}, testredis.HashOf(t, s.c, s.key))
	require.Equal(t, int64(0), s.release(ownerA, 0, ""))
	require.Equal(t, int64(-2), testredis.PTTLOf(t, s.c, s.key))
}

// The defaults of the scripts are the arguments that the client omits.
func TestScripts_take_the_usual_for_granted(t *testing.T) {
	c := testredis.NewEngine(t)
	name := testredis.UniqueName(t, c)
	full, cut := keyspace.OfKey(name+" full", name+" full"), keyspace.OfKey(name+" cut", name+" cut")
	same := func(cmd transport.Command, keysOf func(*keyspace.Keys) []string, usual []string, args ...func(*keyspace.Keys) string) {
		t.Helper()
		run := func(k *keyspace.Keys, leftOut []string) any {
			var all []string
			for _, arg := range args {
				all = append(all, arg(k))
			}
			return testredis.RunScript(c, cmd, keysOf(k), lock.WithoutUsual(append(all, usual...), leftOut)...)
		}
		require.Equal(t, run(full, nil), run(cut, usual))
	}
	text := func(s string) func(*keyspace.Keys) string { return func(*keyspace.Keys) string { return s } }
	channel := func(k *keyspace.Keys) string { return k.Channel }
	for range 2 { // the second time it finds its own effect
		same(script.LockAcquire, (*keyspace.Keys).Queued, lock.UsualOfAcquire, text(ownerA), text("30000"))
		require.Equal(t, testredis.HashOf(t, c, full.Key), testredis.HashOf(t, c, cut.Key))
	}
	for range 2 {
		same(script.LockRelease, (*keyspace.Keys).Fenced, lock.UsualOfRelease, text(ownerA), channel)
		require.Equal(t, int64(-2), testredis.PTTLOf(t, c, cut.Key))
	}
	same(script.MutexSet, (*keyspace.Keys).Alone, nil, text(ownerA), text("30000"))
	for range 2 {
		same(script.MutexRelease, (*keyspace.Keys).Queued, lock.UsualOfMutexRelease, text(ownerA), channel)
		require.Equal(t, int64(-2), testredis.PTTLOf(t, c, cut.Key))
	}
}

func TestLockScripts_reentry_needs_the_hold(t *testing.T) {
	s := newLockScripts(t)
	gone := testredis.RunScript(s.c, script.LockAcquire, s.keys(), ownerA, "30000", "2", "", "", "", "", "")
	require.True(t, outcome.HasCode(gone.(error), "LATCHKEY_GONE"), "%v", gone)
	require.Nil(t, s.acquire(ownerB, 1, ""))
	gone = testredis.RunScript(s.c, script.LockAcquire, s.keys(), ownerA, "30000", "2", "", "", "", "", "")
	require.True(t, outcome.HasCode(gone.(error), "LATCHKEY_GONE"), "%v", gone)
	require.Equal(t, map[string]string{ownerB: "1"}, testredis.HashOf(t, s.c, s.key))
}

func TestLockScripts_late_copies_do_no_lasting_harm(t *testing.T) {
	s := newLockScripts(t)
	require.Nil(t, s.acquire(ownerA, 1, ""))
	require.Nil(t, s.acquire(ownerA, 2, ""))
	require.Equal(t, "HELD", s.release(ownerA, 1, ""))
	require.Nil(t, s.acquire(ownerA, 2, ""), "a late copy of the re-entry")
	require.Equal(t, int64(0), s.release(ownerA, 0, ""), "the last release frees it all the same")
	require.Nil(t, s.acquire(ownerB, 1, ""))
	require.Nil(t, s.release(ownerA, 0, ""), "a late copy of the release finds another holder")
	require.Equal(t, map[string]string{ownerB: "1"}, testredis.HashOf(t, s.c, s.key))
}

func TestLockScripts_guests_share_the_hold(t *testing.T) {
	s := newLockScripts(t)
	require.Nil(t, s.acquire(ownerA, 1, ""))
	require.Nil(t, s.acquire(ownerA, 1, guest1))
	require.Nil(t, s.acquire(ownerA, 2, guest1))
	require.Nil(t, s.acquire(ownerA, 1, guest2))
	require.Equal(t, "4", testredis.HashOf(t, s.c, s.key)[ownerA], "1 + 2 + 1")
	require.Equal(t, "HELD", s.release(ownerA, 0, ""), "the maker leaves, its guests stay")
	require.Equal(t, "HELD", s.release(ownerA, 0, guest1))
	require.Nil(t, s.release(ownerA, 0, guest1), "a late copy takes nothing from the others")
	require.Nil(t, s.release(ownerA, 0, ""), "nor does one of the maker")
	for _, part := range []string{"", guest1} {
		gone := testredis.RunScript(s.c, script.LockAcquire, s.keys(), ownerA, "30000", "2", part, "", "", "", "")
		require.True(t, outcome.HasCode(gone.(error), "LATCHKEY_GONE"), "who has left cannot enter again")
		require.Equal(t, []any{int64(0)}, testredis.RunScript(s.c, script.Renew, []string{s.key}, "hash", ownerA, part, "30000"), "nor renew")
	}
	require.Equal(t, map[string]string{ownerA: "1", ownerA + "@": "1", ownerA + "@" + guest2: "1"}, testredis.HashOf(t, s.c, s.key))
	require.Equal(t, int64(0), s.release(ownerA, 0, guest2))
	require.Equal(t, int64(-2), testredis.PTTLOf(t, s.c, s.key))
}

func TestLockScripts_guest_first(t *testing.T) {
	s := newLockScripts(t)
	require.Nil(t, s.acquire(ownerA, 1, guest1), "the owner's own client has let go before")
	require.Nil(t, s.acquire(ownerA, 1, ""))
	require.Equal(t, "2", testredis.HashOf(t, s.c, s.key)[ownerA])
	require.Equal(t, "HELD", s.release(ownerA, 0, guest1))
	require.Equal(t, map[string]string{ownerA: "1"}, testredis.HashOf(t, s.c, s.key), "without guests the hash is Redisson's")
	require.Equal(t, int64(0), s.release(ownerA, 0, ""))
}

func TestLockScripts_lease_is_never_shortened(t *testing.T) {
	s := newLockScripts(t)
	require.Nil(t, s.acquire(ownerA, 1, ""))
	require.Nil(t, testredis.RunScript(s.c, script.LockAcquire, s.keys(), ownerA, "1000", "2", "", "", "", "", ""))
	require.Greater(t, testredis.PTTLOf(t, s.c, s.key), int64(25000))
	require.Equal(t, "HELD", s.release(ownerA, 1, ""))
	require.Greater(t, testredis.PTTLOf(t, s.c, s.key), int64(25000))
	require.Equal(t, []any{int64(1)}, testredis.RunScript(s.c, script.Renew, []string{s.key}, "hash", ownerA, "", "1000"))
	require.Greater(t, testredis.PTTLOf(t, s.c, s.key), int64(25000))
	require.Equal(t, []any{int64(1)}, testredis.RunScript(s.c, script.Renew, []string{s.key}, "hash", ownerA, "", "60000"))
	require.Greater(t, testredis.PTTLOf(t, s.c, s.key), int64(55000))
}

func TestFencedScript_token_only_from_free_to_held(t *testing.T) {
	s := newLockScripts(t)
	keys := append(s.keys(), "token:{"+s.key+"}")
	for want := range 3 {
		for range 2 {
			require.Equal(t, strconv.Itoa(want+1), testredis.RunScript(s.c, script.LockAcquire, keys, ownerA, "30000", "1", "", "", "", "", ""))
		}
		require.Equal(t, strconv.Itoa(want+1), testredis.RunScript(s.c, script.LockAcquire, keys, ownerA, "30000", "2", "", "", "", "", ""))
		require.Equal(t, int64(0), s.release(ownerA, 0, ""))
	}
}

func TestFencedScript_tokens_follow_the_clock_on_request(t *testing.T) {
	s := newLockScripts(t)
	keys := append(s.keys(), "token:{"+s.key+"}")
	first := testredis.RunScript(s.c, script.LockAcquire, keys, ownerA, "30000", "1", "", "1", "", "", "").(string)
	require.Equal(t, int64(0), s.release(ownerA, 0, ""))
	require.NoError(t, s.c.Rueidis.Do(context.Background(), s.c.Rueidis.B().Del().Key(keys[2]).Build()).Error())
	second := testredis.RunScript(s.c, script.LockAcquire, keys, ownerB, "30000", "1", "", "1", "", "", "").(string)
	a, err := strconv.ParseInt(first, 10, 64)
	require.NoError(t, err)
	b, err := strconv.ParseInt(second, 10, 64)
	require.NoError(t, err)
	require.Greater(t, a, time.Now().Add(-time.Hour).UnixMilli())
	require.GreaterOrEqual(t, b, a, "the counter was lost in between")
}

func TestMutexScripts_sent_twice(t *testing.T) {
	c := testredis.NewEngine(t)
	key := testredis.UniqueName(t, c)
	k := keyspace.OfKey(key, key)
	keys, channel := k.Queued(), "channel:{"+key+"}"
	require.Equal(t, "OK", testredis.RunScript(c, script.MutexSet, keys[:1], ownerA, "30000"))
	require.Nil(t, testredis.RunScript(c, script.MutexSet, keys[:1], ownerA, "30000"), "NX does not know its own token")
	require.Nil(t, testredis.RunScript(c, script.MutexAcquire, keys, ownerA, "30000", "", ""), "the script does")
	refused := testredis.RunScript(c, script.MutexAcquire, keys, ownerB, "30000", "", "").([]any)
	require.InDelta(t, 30000, refused[0], 4000)
	require.Equal(t, ownerA, refused[1])
	require.Nil(t, testredis.RunScript(c, script.MutexRelease, keys, ownerB, channel, "PUBLISH", "", "", "latchkey:{", "}", "1", "0"))
	require.Equal(t, int64(0), testredis.RunScript(c, script.MutexRelease, keys, ownerA, channel, "PUBLISH", "", "", "latchkey:{", "}", "1", "0"))
	require.Nil(t, testredis.RunScript(c, script.MutexRelease, keys, ownerA, channel, "PUBLISH", "", "", "latchkey:{", "}", "1", "0"))
}

func TestRenewScript_bad_keys_do_not_spoil_the_rest(t *testing.T) {
	c := testredis.NewEngine(t)
	tag := "{" + testredis.UniqueName(t, c) + "}"
	lock, mutex, list, free := tag+"lock", tag+"mutex", tag+"list", tag+"free"
	require.Nil(t, testredis.RunScript(c, script.LockAcquire, []string{lock, tag + "queue"}, ownerA, "30000", "1", "", "", "", "", ""))
	require.Equal(t, "OK", testredis.RunScript(c, script.MutexSet, []string{mutex}, ownerA, "30000"))
	require.NoError(t, c.Rueidis.Do(context.Background(), c.Rueidis.B().Rpush().Key(list).Element("x").Build()).Error())
	keys := []string{list, lock, free, mutex, mutex, lock}
	var args []string
	for _, where := range []string{"hash", "hash", "hash", "string", "hash"} {
		args = append(args, where, ownerA, "", "60000")
	}
	args = append(args, "hash", ownerB, "", "60000")
	require.Equal(t, []any{int64(0), int64(1), int64(0), int64(1), int64(0), int64(0)}, testredis.RunScript(c, script.Renew, keys, args...))
	require.Equal(t, int64(-2), testredis.PTTLOf(t, c, free), "a renewal creates nothing")
	require.Equal(t, int64(-1), testredis.PTTLOf(t, c, list), "and touches nothing of others")
}
