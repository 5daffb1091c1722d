package tests

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// The state in Redis in each situation must be as in Redisson: wire format, section 32. Nothing
// else may be stored: a dump has every key that contains the name.

const goldenLease = 30 * time.Second

// golden compares a dump. TTLs of the wanted entries are upper limits, and must have been set not
// long ago.
func golden(t *testing.T, admin *rig.Admin, name string, want map[string]rig.Entry) {
	t.Helper()
	got := admin.Dump(name)
	require.Len(t, got, len(want), "%v", got)
	for key, entry := range want {
		require.Contains(t, got, key)
		found := got[key]
		if entry.TTL != rig.NoTTL {
			assert.LessOrEqual(t, found.TTL, entry.TTL)
			assert.Greater(t, found.TTL, entry.TTL-2*leeway)
			found.TTL = entry.TTL
		}
		assert.Equal(t, entry, found)
	}
}

func hash(owner, count string) rig.Entry {
	return rig.Entry{Type: "hash", Hash: map[string]string{owner: count}, TTL: goldenLease}
}

// requireOwner checks that an owner is a UUID and a number, in Redisson's format.
func requireOwner(t *testing.T, owner string) {
	t.Helper()
	require.Regexp(t, `^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:[0-9]+$`, owner)
}

// hear subscribes to the lock's channel in addition to the clients of the library.
func hear(t *testing.T, server *rig.Server, name string) <-chan string {
	t.Helper()
	return subscribeRaw(t, server, channelOf(name))
}

func TestGoldenReentrantLock(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	admin, heard := rig.NewAdmin(t, server), hear(t, server, name)
	lock := connect(t, server).NewLock(name)

	hold := mustLock(t, lock)
	owner := hold.Owner().String()
	requireOwner(t, owner)
	golden(t, admin, name, map[string]rig.Entry{name: hash(owner, "1")})

	inner, err := lock.Lock(hold.Context(t.Context()))
	require.NoError(t, err)
	assert.Equal(t, 2, countOf(hold))
	golden(t, admin, name, map[string]rig.Entry{name: hash(owner, "2")})

	mustUnlock(t, inner)
	golden(t, admin, name, map[string]rig.Entry{name: hash(owner, "1")})
	assert.Empty(t, heard, "no message at a partial release")

	mustUnlock(t, hold)
	golden(t, admin, name, nil)
	assert.Equal(t, "0", rig.Await(t, soon, "the message", heard))
	assert.Empty(t, heard, "one message")
}

func TestGoldenFencedLock(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	admin := rig.NewAdmin(t, server)
	lock := connect(t, server).NewFencedLock(name)
	mustUnlock(t, mustLock(t, lock))
	mustUnlock(t, mustLock(t, lock))

	hold := mustLock(t, lock)
	counter := rig.Entry{Type: "string", String: "3", TTL: rig.NoTTL}
	golden(t, admin, name, map[string]rig.Entry{
		name: hash(hold.Owner().String(), "1"), tokenKey(name): counter,
	})
	assert.Equal(t, int64(3), hold.Token())
	mustUnlock(t, hold)
	golden(t, admin, name, map[string]rig.Entry{tokenKey(name): counter})
}

func TestGoldenSpinLock(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	admin := rig.NewAdmin(t, server)
	hold := mustLock(t, connect(t, server).NewSpinLock(name, latchkey.Backoff{}))
	golden(t, admin, name, map[string]rig.Entry{name: hash(hold.Owner().String(), "1")})
	mustUnlock(t, hold)
	golden(t, admin, name, nil)
}

// A mutex is stored as in the Redis documentation: a string with a unique token.
func TestGoldenMutex(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	admin := rig.NewAdmin(t, server)
	lock := connect(t, server).NewMutex(name)
	hold := mustLock(t, lock)
	golden(t, admin, name, map[string]rig.Entry{
		name: {Type: "string", String: hold.Owner().String(), TTL: goldenLease},
	})
	mustUnlock(t, hold)
	golden(t, admin, name, nil)
	other := mustLock(t, lock)
	assert.NotEqual(t, hold.Owner(), other.Owner(), "a token of its own for each acquisition")
	mustUnlock(t, other)
}

// A name with its own hash tag keeps it.
func TestGoldenNameWithATag(t *testing.T) {
	server := rig.Shared()
	name := "{" + rig.Name(t) + "}job"
	admin, heard := rig.NewAdmin(t, server), subscribeRaw(t, server, "redisson_lock__channel:"+name)
	hold := mustLock(t, connect(t, server).NewFencedLock(name))
	golden(t, admin, name, map[string]rig.Entry{
		name:                          hash(hold.Owner().String(), "1"),
		"redisson_lock_token:" + name: {Type: "string", String: "1", TTL: rig.NoTTL},
	})
	mustUnlock(t, hold)
	assert.Equal(t, "0", rig.Await(t, soon, "the message", heard))
}

func TestGoldenKeyPrefix(t *testing.T) {
	server := rig.Shared()
	name := rig.Name(t)
	admin := rig.NewAdmin(t, server)
	hold := mustLock(t, connect(t, server, latchkey.Options{KeyPrefix: "app:"}).NewLock(name))
	golden(t, admin, name, map[string]rig.Entry{"app:" + name: hash(hold.Owner().String(), "1")})
	mustUnlock(t, hold)
}

// What a Redisson process wrote is understood: it excludes, it can be inspected, and its release
// wakes waiters.
func TestGoldenForeignHolder(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	admin := rig.NewAdmin(t, server)
	const foreigner = "11111111-2222-3333-4444-555555555555:7"
	admin.Do("HSET", name, foreigner, "2")
	admin.Do("PEXPIRE", name, "30000")
	client := connect(t, server, patient)
	lock := client.NewLock(name)

	_, err := lock.TryLock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
	inspection, err := client.Inspect(t.Context(), name)
	require.NoError(t, err)
	assert.Equal(t, latchkey.KindLock, inspection.Kind)
	assert.Equal(t, []latchkey.Holder{{Owner: ownerOf(t, foreigner), Count: 2}}, inspection.Holders)
	assertLeft(t, goldenLease, inspection.TTL)

	waiter := lockInBackground(within(t, soon), lock)
	awaitWaiter(t, admin, name)
	admin.Do("DEL", name)
	admin.Publish(channelOf(name), "0")
	next := rig.Await(t, soon, "the waiter", waiter) // long before its next poll
	require.NoError(t, next.err)
	mustUnlock(t, next.hold)
}

// Inspection reports a lock correctly in each of its states.
func TestInspection(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		server, name := rig.Shared(), rig.Name(t)
		client := connect(t, server)
		lock := k.open(client, name)
		assert.Equal(t, name, lock.Name())
		inspected(t, lock, latchkey.KindNone, 0)

		hold := mustLock(t, lock)
		want := latchkey.KindLock
		switch {
		case k.sided:
			want = latchkey.KindRWLock
		case !k.reentrant:
			want = latchkey.KindMutex
		}
		i := inspected(t, lock, want, goldenLease)
		assert.Equal(t, []latchkey.Holder{{Owner: hold.Owner(), Count: 1, Write: k.sided}}, i.Holders)
		assert.Equal(t, hold.Token(), i.Token)
		assert.Equal(t, name, i.Key)

		mustUnlock(t, hold)
		assert.Zero(t, inspected(t, lock, latchkey.KindNone, 0).Holders)
	})
}

// inspected inspects a lock, and checks the results.
func inspected(t *testing.T, lock anyLock, want latchkey.Kind, lease time.Duration) latchkey.Object {
	t.Helper()
	i, err := lock.Inspect(t.Context())
	require.NoError(t, err)
	assert.Equal(t, want, i.Kind)
	assert.Equal(t, lease > 0, i.Locked())
	assertLeft(t, lease, i.TTL)
	return i
}

// assertLeft checks what is left of a lease that began not long ago. Of none, nothing is left.
func assertLeft(t *testing.T, lease, left time.Duration) {
	t.Helper()
	assert.LessOrEqual(t, left, lease)
	assert.GreaterOrEqual(t, left, max(lease-2*leeway, 0))
}

// Ten thousand owners of each of two clients are all different.
func TestOwnersAreUnique(t *testing.T) {
	a, b := connect(t, rig.Shared()), connect(t, rig.Shared())
	assert.NotEqual(t, a.ID(), b.ID())
	seen := map[string]bool{}
	for range 10_000 {
		seen[a.NewOwner().String()] = true
		seen[b.NewOwner().String()] = true
	}
	assert.Len(t, seen, 20_000)
	for owner := range seen {
		id, _, _ := strings.Cut(owner, ":")
		if id != a.ID() && id != b.ID() {
			t.Fatalf("%s is of neither client", owner)
		}
	}
}

// A holds the lock, B and C wait. A unlocks, and B holds it. Deadlines are our own: one stale
// period after the last sign of life, and nobody changes another waiter's.
func TestGoldenFairLock(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	admin, tap := rig.NewAdmin(t, server), rig.NewTap(t, server)
	// Nobody polls during the test, or tells again that it is alive.
	slow := latchkey.Options{Lease: 4 * time.Minute, Tuning: latchkey.Tuning{PollCeiling: time.Minute, StaleWaiterTimeout: 10 * time.Minute}}
	a := mustLock(t, connect(t, server).NewFairLock(name))
	golden(t, admin, name, map[string]rig.Entry{name: hash(a.Owner().String(), "1")})

	tap.DropMessages(true) // so that B does not use the grant before it is checked
	waiting := connectVia(t, server, tap.Addr(), slow).NewFairLock(name)
	began := time.Now()
	first := lockInBackground(within(t, time.Minute), waiting, latchkey.Lease(goldenLease))
	queueLength(t, admin, name, 1)
	second := lockInBackground(within(t, time.Minute), waiting)
	queueLength(t, admin, name, 2)
	queue := admin.Strings("LRANGE", queueOf(name), "0", "-1")
	b, c := queue[0], queue[1]
	requireOwner(t, b)
	requireOwner(t, c)
	rig.Eventually(t, soon, "both can be granted the lock", func() error {
		for _, owner := range queue {
			if note := admin.Text("HGET", notesOf(name), owner); strings.Count(note, ":") != 3 {
				return fmt.Errorf("%s has the note %s", owner, note)
			}
		}
		return nil
	})
	scores := deadlineScores(admin, name)
	for _, score := range scores {
		assertExpiry(t, began, slow.Tuning.StaleWaiterTimeout, score)
	}
	require.Len(t, scores, 2)
	goldenFair(t, admin, name, a.Owner().String(), []string{b, c}, scores)

	own := clientChannel(server, name, b)
	told, toB, toC := subscribeRaw(t, server, own), subscribeRaw(t, server, channelOf(name)+":"+b), subscribeRaw(t, server, channelOf(name)+":"+c)
	toAll := hear(t, server, name)
	mustUnlock(t, a)
	grant := rig.Await(t, soon, "the message to the client of B", told)
	assert.Equal(t, "grant f "+b+" 0 "+name, grant)
	goldenFair(t, admin, name, b, []string{c}, map[string]int64{c: scores[c]})

	tap.DropMessages(false)
	admin.Publish(own, grant)
	got := rig.Await(t, soon, "B", first)
	require.NoError(t, got.err)
	goldenFair(t, admin, name, b, []string{c}, map[string]int64{c: scores[c]})
	mustUnlock(t, got.hold)
	got = rig.Await(t, soon, "C", second)
	require.NoError(t, got.err)
	goldenFair(t, admin, name, c, nil, nil)
	mustUnlock(t, got.hold)
	golden(t, admin, name, nil)
	assert.Empty(t, toB)
	assert.Empty(t, toC)
	assert.Empty(t, toAll)
}

// clientChannel returns the channel on which the client of an owner receives grants.
func clientChannel(server *rig.Server, name, owner string) string {
	id, _, _ := strings.Cut(owner, ":")
	if server.Clustered() {
		return "latchkey:{" + name + "}:" + id
	}
	return "latchkey:{" + id + "}"
}

func deadlineScores(admin *rig.Admin, name string) map[string]int64 {
	scores := map[string]int64{}
	for _, owner := range admin.Strings("ZRANGE", deadlinesOf(name), "0", "-1") {
		score, _ := strconv.ParseFloat(admin.Text("ZSCORE", deadlinesOf(name), owner), 64)
		scores[owner] = int64(score)
	}
	return scores
}

// goldenFair compares everything that Redisson sees of a fair lock. Our own notes are stored in
// addition, only for those who wait.
func goldenFair(t *testing.T, admin *rig.Admin, name, holder string, queue []string, scores map[string]int64) {
	t.Helper()
	found := admin.Dump(name)
	assert.Equal(t, queue, found[queueOf(name)].Members)
	assert.Len(t, found[notesOf(name)].Hash, len(queue))
	keys := 0
	if holder != "" {
		keys++
		assert.Equal(t, map[string]string{holder: "1"}, found[name].Hash)
	}
	if len(queue) > 0 {
		keys += 3
		assert.Equal(t, scores, deadlineScores(admin, name))
		assert.Equal(t, rig.NoTTL, found[queueOf(name)].TTL)
		assert.Equal(t, rig.NoTTL, found[deadlinesOf(name)].TTL)
	}
	assert.Len(t, found, keys, "%v", found)
}

// assertExpiry checks a time of expiry in milliseconds, which was set between some time and now.
func assertExpiry(t *testing.T, since time.Time, lasts time.Duration, at int64) {
	t.Helper()
	const clocks = 3000 // by which the server's clock may differ
	assert.GreaterOrEqual(t, at, since.Add(lasts).UnixMilli()-clocks)
	assert.LessOrEqual(t, at, time.Now().Add(lasts).UnixMilli()+clocks)
}
