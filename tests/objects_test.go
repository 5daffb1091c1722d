package tests

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// allObjects returns all matching objects by name. Of an object that is yielded several times, the
// last one counts.
func allObjects(t testing.TB, client *latchkey.Client, pattern string) map[string]latchkey.Object {
	t.Helper()
	all := map[string]latchkey.Object{}
	for o, err := range client.Objects(within(t, time.Minute), pattern) {
		require.NoError(t, err)
		all[o.Name] = o
	}
	return all
}

// quotePattern returns the pattern that matches text and nothing else.
func quotePattern(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(text)
}

func allUnder(prefix string) string { return quotePattern(prefix) + "*" }

// manyKinds makes one object of every kind under the prefix.
func manyKinds(t *testing.T, client *latchkey.Client, prefix string) map[string]*latchkey.Hold {
	t.Helper()
	ctx, holds := within(t, soon), map[string]*latchkey.Hold{}
	for _, k := range append(slices.Clone(kinds), readKind) {
		holds[k.name] = mustLock(t, k.open(client, prefix+k.name))
	}
	_, err := client.NewSemaphore(prefix+"sem").TrySetPermits(ctx, 5)
	require.NoError(t, err)
	require.NoError(t, client.NewSemaphore(prefix+"sem").AcquireN(ctx, 2))
	pool := client.NewPermitSemaphore(prefix + "pool")
	_, err = pool.TrySetPermits(ctx, 3)
	require.NoError(t, err)
	_, err = pool.Acquire(ctx)
	require.NoError(t, err)
	_, err = client.NewCountDownLatch(prefix+"latch").TrySetCount(ctx, 7, latchkey.TTL(time.Hour))
	require.NoError(t, err)
	return holds
}

// Objects finds one object of every kind, and reports the same as the object's own methods.
func TestObjectsOfEveryKind(t *testing.T) {
	t.Parallel()
	client, prefix := connect(t, rig.Shared(), latchkey.Options{Lease: time.Hour}), rig.Name(t)+":"
	holds := manyKinds(t, client, prefix)
	inner, err := client.NewLock(prefix + "Lock").Lock(holds["Lock"].Context(t.Context()))
	require.NoError(t, err)
	defer mustUnlock(t, inner)

	found := allObjects(t, client, allUnder(prefix))
	assert.Len(t, found, len(kinds)+4)
	for name, hold := range holds {
		o := found[prefix+name]
		one, err := client.Inspect(t.Context(), prefix+name)
		require.NoError(t, err)
		ttlNear(t, o.TTL, one.TTL)
		one.TTL = o.TTL
		assert.Equal(t, o, one)
		assert.Equal(t, hold.Owner(), o.Holders[0].Owner, name)
		assert.Equal(t, 1, o.HolderCount, name)
		assert.Zero(t, o.Queued, name)
	}
	assert.Equal(t, 2, found[prefix+"Lock"].Holders[0].Count)
	assert.Equal(t, int64(1), found[prefix+"FencedLock"].Token)
	assert.True(t, found[prefix+"WriteLock"].Holders[0].Write)

	sem, pool, latch := found[prefix+"sem"], found[prefix+"pool"], found[prefix+"latch"]
	assert.Equal(t, []any{latchkey.KindSemaphore, 3, 2, 5, latchkey.NoExpiry}, []any{sem.Kind, sem.Available, sem.HolderCount, sem.Total, sem.TTL})
	assert.Equal(t, []any{latchkey.KindSemaphore, 2, 1, 3}, []any{pool.Kind, pool.Available, pool.HolderCount, pool.Total})
	assert.Equal(t, []any{latchkey.KindLatch, int64(7)}, []any{latch.Kind, latch.Count})
	ttlNear(t, time.Hour, latch.TTL)

	free, err := client.Inspect(t.Context(), prefix+"free")
	require.NoError(t, err)
	assert.Equal(t, latchkey.KindNone, free.Kind)
}

// A barrier shows how many have arrived, and an election appears as the lock of its leader. The
// keys stored next to them are not objects.
func TestObjectsShowBarriersAndElections(t *testing.T) {
	t.Parallel()
	client, prefix := connect(t, rig.Shared()), rig.Name(t)+":"
	leadership, err := client.NewElection(prefix+"election").Campaign(within(t, soon), "me")
	require.NoError(t, err)
	barrier := client.NewBarrier(prefix+"barrier", 3)
	ctx, cancel := context.WithCancel(within(t, time.Minute))
	left := make(chan error, 2)
	for range 2 {
		go func() { _, err := barrier.Await(ctx); left <- err }()
	}
	rig.Eventually(t, soon, "both have arrived", func() error {
		if s, err := barrier.State(t.Context()); err != nil || s.Waiting != 2 {
			return fmt.Errorf("%+v %w", s, err)
		}
		return nil
	})
	found := allObjects(t, client, "*"+allUnder(prefix))
	assert.Len(t, found, 2)
	b, e := found[prefix+"barrier"], found[prefix+"election"]
	assert.Equal(t, []any{latchkey.KindBarrier, 2, 3, int64(1), 0}, []any{b.Kind, b.Queued, b.Total, b.Count, b.HolderCount})
	assert.Equal(t, latchkey.KindLock, e.Kind)
	assert.Equal(t, leadership.Term(), e.Token)
	cancel()
	for range 2 {
		assert.Error(t, rig.Await(t, soon, "a party", left))
	}
}

// The waiters of every kind of lock are counted and named. A waiter for a semaphore or a latch is
// counted as a listener.
func TestObjectsTellWhoWaits(t *testing.T) {
	t.Parallel()
	server, prefix := rig.Shared(), rig.Name(t)+":"
	client, other, third := connect(t, server), connect(t, server), connect(t, server)
	admin := rig.NewAdmin(t, server)
	ctx, cancel := context.WithCancel(within(t, time.Minute))
	queued := slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool { return !k.messages })
	var ends []<-chan acquisition
	for _, k := range queued {
		mustLock(t, k.open(client, prefix+k.name))
		for _, c := range []*latchkey.Client{other, third} {
			ends = append(ends, lockInBackground(ctx, k.open(c, prefix+k.name)))
		}
	}
	require.NoError(t, client.NewSemaphore(prefix+"sem").SetPermits(ctx, 1))
	_, err := client.NewCountDownLatch(prefix+"latch").TrySetCount(ctx, 1)
	require.NoError(t, err)
	gave := make(chan error, 2)
	go func() { gave <- other.NewSemaphore(prefix+"sem").AcquireN(ctx, 2) }()
	go func() { gave <- other.NewCountDownLatch(prefix + "latch").Await(ctx) }()

	counted := canCountListeners(admin)
	rig.Eventually(t, soon, "all are counted", func() error {
		found := allObjects(t, client, allUnder(prefix))
		for _, k := range queued {
			if o := found[prefix+k.name]; o.Queued != 2 || o.Waiters() < 2 {
				return fmt.Errorf("%s: %+v", k.name, o)
			}
		}
		for _, name := range []string{"sem", "latch"} {
			if o := found[prefix+name]; counted && o.Waiters() != 1 {
				return fmt.Errorf("%s: %+v", name, o)
			}
		}
		return nil
	})
	for _, k := range queued {
		who, err := client.Waiters(ctx, prefix+k.name)
		require.NoError(t, err)
		require.Len(t, who, 2, k.name)
		own, err := k.open(client, prefix+k.name).(*latchkey.Lock).Waiters(ctx)
		require.NoError(t, err)
		require.Len(t, own, 2, k.name)
		for i, w := range who {
			assert.Equal(t, w.Owner, own[i].Owner, k.name)
			assert.GreaterOrEqual(t, w.Age, time.Duration(0), k.name)
			assert.Less(t, w.Age, time.Minute)
			assert.Positive(t, w.Alive, k.name)
			assert.True(t, strings.HasPrefix(w.Owner.String(), other.ID()) || strings.HasPrefix(w.Owner.String(), third.ID()), k.name)
		}
	}
	cancel()
	for _, end := range ends {
		require.Error(t, rig.Await(t, soon, "a waiter", end).err)
	}
	rig.Await(t, soon, "the semaphore", gave)
	rig.Await(t, soon, "the latch", gave)
}

// canCountListeners reports whether the server counts all listeners, even from a script.
func canCountListeners(admin *rig.Admin) bool {
	if rig.Shared().Embedded() || rig.Shared().Clustered() {
		return false
	}
	_, err := admin.Do("EVAL", "return redis.pcall('pubsub', 'numsub', 'x')", "0").ToArray()
	return err == nil
}

// unhurried is for walks when the machine is busy.
var unhurried = latchkey.Options{RetryBudget: 20 * time.Second}

// Objects that Redisson stores are found. Where their keys do not show the exact kind, the reported
// kind is less specific.
func TestObjectsOfRedisson(t *testing.T) {
	t.Parallel()
	client, admin, prefix := connect(t, rig.Shared()), rig.NewAdmin(t, rig.Shared()), rig.Name(t)+":"
	const a, b = "0b7c4c8a-0000-4000-8000-000000000000:1", "0b7c4c8a-0000-4000-8000-000000000000:72"
	put(admin, prefix+"lock", "HSET|@|"+a+"|3", "PEXPIRE|@|30000", "SET|redisson_unlock_latch:{@}:x|1|PX|30000")
	put(admin, prefix+"fair", "HSET|@|"+a+"|1", "PEXPIRE|@|30000",
		"RPUSH|redisson_lock_queue:{@}|"+b, "ZADD|redisson_lock_timeout:{@}|1700000000000|"+b)
	put(admin, prefix+"rw", "HSET|@|mode|read|"+a+"|1|"+b+"|2", "PEXPIRE|@|30000", "SET|{@}:"+a+":rwlock_timeout:1|1|PX|30000")
	put(admin, prefix+"sem", "SET|@|3")
	put(admin, prefix+"permits", "SET|@|2", "ZADD|{@}:timeout|9999999999999|x|1|over")
	put(admin, prefix+"latch", "SET|@|7")

	found := allObjects(t, client, "*"+quotePattern(prefix)+"*")
	require.Len(t, found, 6)
	lock, fair, rw, sem := found[prefix+"lock"], found[prefix+"fair"], found[prefix+"rw"], found[prefix+"sem"]
	assert.Equal(t, []any{latchkey.KindLock, 1, 3}, []any{lock.Kind, lock.HolderCount, lock.Holders[0].Count})
	assert.Equal(t, []any{latchkey.KindLock, 1, 1}, []any{fair.Kind, fair.HolderCount, fair.Queued})
	assert.Equal(t, []any{latchkey.KindRWLock, 2, 0}, []any{rw.Kind, rw.HolderCount, rw.Waiters()})
	assert.Equal(t, []any{latchkey.KindNumber, int64(3)}, []any{sem.Kind, sem.Count})
	permits := found[prefix+"permits"]
	assert.Equal(t, []any{latchkey.KindSemaphore, 3, 1, 4}, []any{permits.Kind, permits.Available, permits.HolderCount, permits.Total})
	assert.Equal(t, latchkey.KindNumber, found[prefix+"latch"].Kind)

	who, err := client.Waiters(t.Context(), prefix+"fair")
	require.NoError(t, err)
	require.Len(t, who, 1)
	assert.Equal(t, b, who[0].Owner.String())
	assert.Negative(t, who[0].Age)
}

// An object that disappears between the SCAN and the look is left out, and all others are found.
func TestObjectsThatVanish(t *testing.T) {
	t.Parallel()
	server, prefix := rig.Fresh(t), rig.Name(t)+":"
	client := connect(t, server, unhurried)
	n := fewer(200)
	eachName(t, n, 16, func(name string) {
		_, err := client.NewLock(prefix+"stays"+name).TryLock(context.Background(), latchkey.Lease(time.Hour))
		assert.NoError(t, err)
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ctx.Err() == nil; i++ {
			if hold, err := client.NewLock(fmt.Sprint(prefix, "goes", i%200)).TryLock(context.Background()); err == nil {
				_ = hold.Unlock(context.Background())
			}
		}
	}()
	for range max(rig.Sized(fewer(6)), 3) {
		stays := 0
		for name, o := range allObjects(t, client, allUnder(prefix)) {
			if strings.HasPrefix(name, prefix+"stays") {
				stays++
			}
			assert.Equal(t, latchkey.KindLock, o.Kind, name)
			assert.Equal(t, 1, o.HolderCount, name)
		}
		assert.Equal(t, n, stays)
	}
	cancel()
	<-done
}

// An object with any name that a lock can have is found by its own pattern and by no other.
func TestObjectsWithOddNames(t *testing.T) {
	t.Parallel()
	client, prefix := connect(t, rig.Shared()), rig.Name(t)
	odd := []string{
		"x", " ", "a b", "a:b", "ä€😀", "{tag}", "{a}{b}", "a\nb", "a\x00b", "*", "[a-z]", `"`, `\`, "?", "^", "-", "]", `\*`,
		"{x}:timeout", ":rwlock_timeout:1", strings.Repeat("y", 400),
	}
	for _, name := range odd {
		mustLock(t, client.NewLock(prefix+name), latchkey.Lease(time.Minute))
		mustLock(t, client.NewMutex(prefix+"mutex"+name), latchkey.Lease(time.Minute))
	}
	found := allObjects(t, client, allUnder(prefix))
	assert.Len(t, found, 2*len(odd))
	for _, name := range odd {
		assert.Contains(t, found, prefix+name)
		assert.Len(t, allObjects(t, client, quotePattern(prefix+name)), 1, "%q", name)
		o, err := client.Inspect(t.Context(), prefix+name)
		require.NoError(t, err)
		assert.True(t, o.Locked(), "%q", name)
	}
	assert.Len(t, allObjects(t, client, quotePattern(prefix)+"[x?]"), 2, "x and ?")
}

// The pattern applies to names: the prefix of the client is neither matched nor reported.
func TestObjectsUnderAKeyPrefix(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	client := connect(t, server, latchkey.Options{KeyPrefix: name + "[*]:"})
	plain := connect(t, server)
	mustLock(t, client.NewLock("job"))
	mustLock(t, plain.NewLock(name+"x:job"))
	found := allObjects(t, client, "*")
	require.Len(t, found, 1)
	assert.Equal(t, name+"[*]:job", found["job"].Key)

	mapped := connect(t, server, latchkey.Options{NameMapper: func(n string) string { return name + n }})
	mustLock(t, mapped.NewLock("mapped"))
	for o, err := range mapped.Objects(t.Context(), name+"mapp*") {
		require.NoError(t, err)
		assert.Equal(t, []string{"", name + "mapped"}, []string{o.Name, o.Key})
	}
}

// A walk ends with its context, with the client, or when the caller stops. Bad patterns are not
// sent.
func TestObjectsEnds(t *testing.T) {
	t.Parallel()
	client, name := connect(t, rig.Shared()), rig.Name(t)
	for i := range 5 {
		mustLock(t, client.NewLock(name+strconv.Itoa(i)))
	}
	first := func(ctx context.Context, c *latchkey.Client, pattern string) (err error) {
		for _, err = range c.Objects(ctx, pattern) {
			return err
		}
		return errors.New("nothing")
	}
	require.NoError(t, first(t.Context(), client, allUnder(name)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := first(ctx, client, allUnder(name))
	onlyTheContexts(ctx, t, err, "Objects")
	for _, bad := range []string{"", strings.Repeat("x", longestName+1)} {
		require.ErrorIs(t, first(t.Context(), client, bad), latchkey.ErrInvalid)
	}
	_, err = client.Inspect(t.Context(), "a{")
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	_, err = client.Waiters(t.Context(), "a{")
	require.ErrorIs(t, err, latchkey.ErrInvalid)

	closing := connect(t, rig.Shared())
	for _, err = range closing.Objects(t.Context(), allUnder(name)) {
		require.NoError(t, err)
		require.NoError(t, closing.Close(within(t, soon)), "a walk does not hold Close up")
		break
	}
	require.ErrorIs(t, first(t.Context(), closing, "*"), latchkey.ErrClosed)
}
