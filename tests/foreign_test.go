package tests

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// put runs commands in which @ stands for the name.
func put(admin *rig.Admin, name string, commands ...string) {
	for _, each := range commands {
		words := strings.Split(each, "|")
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], "@", name)
		}
		admin.Do(words...)
	}
}

// content returns a dump without the remaining times to live, of keys and of parties at a barrier.
func content(admin *rig.Admin, name string) map[string]rig.Entry {
	dump := admin.Dump(name)
	for key, entry := range dump {
		entry.TTL = min(entry.TTL, 0) // only whether it expires
		if strings.HasPrefix(key, "latchkey_barrier_waiting:") {
			for i, member := range entry.Members {
				entry.Members[i], _, _ = strings.Cut(member, " ")
			}
		}
		dump[key] = entry
	}
	return dump
}

// foreignData is data that no lock protocol writes, and how the library describes it.
var foreignData = map[string]struct {
	commands []string
	found    string
}{
	"a record":                 {[]string{"HSET|@|name|Ann|email|ann@example.com"}, "a hash without any lock owner"},
	"a record with an expiry":  {[]string{"HSET|@|name|Ann|email|x", "PEXPIRE|@|600000"}, "a hash without any lock owner"},
	"a record with a mode":     {[]string{"HSET|@|mode|express|carrier|x", "PEXPIRE|@|600000"}, "a hash without any lock owner"},
	"a record whose mode fits": {[]string{"HSET|@|mode|read|name|x", "PEXPIRE|@|600000"}, "a hash without any lock owner"},
	"a mode and nothing else":  {[]string{"HSET|@|mode|read"}, "a hash without any lock owner"},
	"numbers by name":          {[]string{"HSET|@|visits|7|clicks|9", "PEXPIRE|@|600000"}, "a hash without any lock owner"},
	"many fields":              {[]string{"HSET|@|a|1|b|2|c|3|d|4|e|5|f|6|g|7|h|8|i|9"}, "a hash without any lock owner"},
	"text with blanks":         {[]string{"SET|@|hello world|PX|600000"}, "a string of an application"},
	"JSON":                     {[]string{`SET|@|{"user":42,"cart":[]}|PX|600000`}, "a string of an application"},
	"a flag":                   {[]string{"SET|@|locked|PX|600000"}, "a string of an application"},
	"a long text":              {[]string{"SET|@|" + strings.Repeat("x", 5000) + "|PX|600000"}, "a string of an application"},
	"a token without expiry":   {[]string{"SET|@|0123456789abcdef0123456789abcdef"}, "a string that does not expire"},
	"a number":                 {[]string{"SET|@|3"}, "a number (a semaphore, a latch or a counter)"},
	"a number with an expiry":  {[]string{"SET|@|1700000000|PX|600000"}, "a number (a semaphore, a latch or a counter)"},
	"a list":                   {[]string{"RPUSH|@|a"}, "a list"},
	"a set":                    {[]string{"SADD|@|a", "PEXPIRE|@|600000"}, "a set"},
	"a sorted set":             {[]string{"ZADD|@|1|a"}, "a sorted set"},
}

// An application stores data under the name of a lock: calls do not wait for it, change nothing,
// and return an error that says what is there.
func TestForeignDataIsNoLock(t *testing.T) {
	t.Parallel()
	for what, each := range foreignData {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			server := rig.Shared()
			admin, client := rig.NewAdmin(t, server), connect(t, server)
			for _, k := range append([]kind{readKind}, kinds...) {
				name := rig.Name(t) + k.name
				put(admin, name, each.commands...)
				before := content(admin, name)
				lock := k.open(client, name)
				for _, err := range []error{
					telling(t, each.found, func() error { return firstOf(lock.Lock(within(t, soon))) }),
					telling(t, each.found, func() error { return firstOf(lock.TryLock(t.Context())) }),
					firstOf(lock.ForceUnlock(t.Context())),
					firstOf(client.ForceUnlock(t.Context(), name)),
					firstOf(lock.Inspect(t.Context())),
				} {
					assertForeign(t, err, name, each.found)
				}
				assert.Equal(t, before, content(admin, name))
				admin.Do("DEL", name)
			}
		})
	}
}

// tellsTooLittle reports whether a refusal does not say exactly what is there. The library queries
// that, but does not delay the error for more than half a second.
func tellsTooLittle(err error) bool {
	return errors.Is(err, latchkey.ErrWrongKind) &&
		(strings.Contains(err.Error(), "is something else, not") || strings.Contains(err.Error(), "is a number (a semaphore, a latch or a counter), not"))
}

// telling repeats a call until its error says what was found.
func telling(t *testing.T, found string, call func() error) (err error) {
	t.Helper()
	rig.Eventually(t, soon, "the error says what is there", func() error {
		if err = call(); tellsTooLittle(err) && !strings.Contains(err.Error(), found) {
			return err
		}
		return nil
	})
	return err
}

func assertForeign(t *testing.T, err error, name, found string) {
	t.Helper()
	if !assert.ErrorIs(t, err, latchkey.ErrWrongKind) {
		return
	}
	assert.ErrorContains(t, err, name)
	assert.ErrorContains(t, err, found)
	assert.NotContains(t, err.Error(), "WRONGTYPE")
}

// Inspection by name says what is there, and does not take data for a holder.
func TestInspectionOfForeignData(t *testing.T) {
	server := rig.Shared()
	admin, client := rig.NewAdmin(t, server), connect(t, server)
	for what, each := range foreignData {
		name := rig.Name(t)
		put(admin, name, each.commands...)
		found, err := client.Inspect(t.Context(), name)
		require.NoError(t, err, what)
		assert.Empty(t, found.Holders, what)
		assert.False(t, found.Locked(), what)
		assert.Equal(t, each.found, found.What, what)
		admin.Do("DEL", name)
	}
}

// A waiter whose lock is replaced by something else gets an error at its next poll.
func TestWaiterFindsForeignData(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		server, name := rig.Shared(), rig.Name(t)
		admin := rig.NewAdmin(t, server)
		mustLock(t, k.open(connect(t, server), name))
		waiter := lockInBackground(within(t, time.Minute), k.open(connect(t, server, polling), name))
		if k.messages {
			awaitWaiter(t, admin, name)
		}
		put(admin, name, "EVAL|redis.call('del', KEYS[1]) redis.call('hset', KEYS[1], 'name', 'Ann')|1|@")
		got := rig.Await(t, soon, "the waiter", waiter)
		require.ErrorIs(t, got.err, latchkey.ErrWrongKind)
		assert.Equal(t, map[string]string{"name": "Ann"}, admin.Dump(name)[name].Hash)
		admin.Do("DEL", name)
	})
}

// heldElsewhere are holds as other libraries and this one store them.
var heldElsewhere = map[string]struct {
	kind     latchkey.Kind
	commands []string
}{
	"redis-py":            {latchkey.KindMutex, []string{"SET|@|9f0c2f3a8b7a11eeb9620242ac120002|PX|600000"}},
	"redis-py, digits":    {latchkey.KindMutex, []string{"SET|@|12345678901234567890123456789012|PX|600000"}},
	"redsync":             {latchkey.KindMutex, []string{"SET|@|q83vEjRWeJCrze8SNFZ4kA==|PX|600000"}},
	"redislock":           {latchkey.KindMutex, []string{"SET|@|q83vEjRWeJCrze8SNFZ4kA|PX|600000"}},
	"redislock, metadata": {latchkey.KindMutex, []string{`SET|@|q83vEjRWeJCrze8SNFZ4kA{"host": "my host"}|PX|600000`}},
	"redlock-py":          {latchkey.KindMutex, []string{"SET|@|Zx81aBcD9eFgH0iJkLmN2o|PX|600000"}},
	"pottery, Spring":     {latchkey.KindMutex, []string{"SET|@|7a6b5c4d-1111-4222-8333-444455556666|PX|600000"}},
	"Spring, Jackson":     {latchkey.KindMutex, []string{`SET|@|"7a6b5c4d-1111-4222-8333-444455556666"|PX|600000`}},
	"ShedLock":            {latchkey.KindMutex, []string{"SET|@|ADDED:2026-01-01T00:00:00.000Z@host-1|PX|600000"}},
	"Medallion":           {latchkey.KindMutex, []string{"SET|@|HOST_17_0123456789abcdef0123456789abcdef|PX|600000"}},
	"Laravel, serialized": {latchkey.KindMutex, []string{`SET|@|s:16:"AbCdEfGhIjKlMnOp";|PX|600000`}},
	"random bytes":        {latchkey.KindMutex, []string{"SET|@|\x9c\x01 \xff\x00\n{\xe2\x28\xa1\x80\x07 \xfe\xc3\x28\x11\x90\x81\x7f|PX|600000"}},
	"ours":                {latchkey.KindMutex, []string{"SET|@|7a6b5c4d-1111-4222-8333-444455556666:7|PX|600000"}},
	"ours, damaged":       {latchkey.KindMutex, []string{"SET|@|7a6b5c4d-1111-4222-8333-444455556666:7"}},
	"RLock":               {latchkey.KindLock, []string{"HSET|@|7a6b5c4d-1111-4222-8333-444455556666:1|2", "PEXPIRE|@|600000"}},
	"RLock, damaged":      {latchkey.KindLock, []string{"HSET|@|7a6b5c4d-1111-4222-8333-444455556666:1|2"}},
	"RLock, odd thread":   {latchkey.KindLock, []string{"HSET|@|7a6b5c4d-1111-4222-8333-444455556666:-12|1", "PEXPIRE|@|600000"}},
	"RLock, transaction": {latchkey.KindLock, []string{
		"HSET|@|7a6b5c4d-1111-4222-8333-444455556666:1:0f2a|1", "PEXPIRE|@|600000",
	}},
	"RReadWriteLock": {latchkey.KindRWLock, []string{
		"HSET|@|mode|read|7a6b5c4d-1111-4222-8333-444455556666:1|1|7a6b5c4d-1111-4222-8333-444455556666:2|1", "PEXPIRE|@|600000",
	}},
	"RReadWriteLock, writer": {latchkey.KindRWLock, []string{
		"HSET|@|mode|write|7a6b5c4d-1111-4222-8333-444455556666:1:write|1", "PEXPIRE|@|600000",
	}},
	"RReadWriteLock, transaction": {latchkey.KindRWLock, []string{
		"HSET|@|mode|write|7a6b5c4d-1111-4222-8333-444455556666:1:write:0f2a|1", "PEXPIRE|@|600000",
	}},
}

// What other libraries store is a held lock, never foreign data. To locks of another kind it is a
// lock of its own kind.
func TestLocksOfOtherLibrariesAreLocks(t *testing.T) {
	names := map[latchkey.Kind]string{
		latchkey.KindMutex: "a mutex", latchkey.KindLock: "a lock", latchkey.KindRWLock: "a read/write lock",
	}
	server := rig.Shared()
	admin, client := rig.NewAdmin(t, server), connect(t, server)
	for what, each := range heldElsewhere {
		name := rig.Name(t)
		put(admin, name, each.commands...)
		found, err := client.Inspect(t.Context(), name)
		require.NoError(t, err, what)
		assert.Equal(t, each.kind, found.Kind, what)
		assert.Equal(t, names[each.kind], found.What, what)
		assert.True(t, found.Locked(), what)
		assert.NotEmpty(t, found.Holders, what)
		before := content(admin, name)
		for _, k := range kinds {
			try := func() error { return firstOf(k.open(client, name).TryLock(t.Context())) }
			if storedKind(k) == each.kind {
				assert.ErrorIs(t, try(), latchkey.ErrNotAcquired, "%s %s", what, k.name)
			} else {
				want := names[each.kind] + ", not " + names[storedKind(k)]
				assertForeign(t, telling(t, want, try), name, want)
			}
		}
		assert.Equal(t, before, content(admin, name), what)
		admin.Do("DEL", name)
	}
}

// storedKind returns the kind that inspection finds for a key of this kind of lock.
func storedKind(k kind) latchkey.Kind {
	switch {
	case k.sided:
		return latchkey.KindRWLock
	case k.reentrant:
		return latchkey.KindLock
	}
	return latchkey.KindMutex
}

// A token that this library has not made may be data of an application. Only a call that says that
// it is a mutex removes it.
func TestTokenIsRemovedOnlyAsAMutex(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	admin, client := rig.NewAdmin(t, server), connect(t, server)
	put(admin, name, "SET|@|alice@example.com|PX|600000")
	_, err := client.ForceUnlock(t.Context(), name)
	assertForeign(t, err, name, "a string, which may be a mutex or data of an application")
	assert.True(t, admin.Exists(name))
	held, err := client.NewMutex(name).ForceUnlock(t.Context())
	require.NoError(t, err)
	assert.True(t, held)
	assert.False(t, admin.Exists(name))
}
