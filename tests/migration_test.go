package tests

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// halves are the states in which the keys of a migrating slot may be for the whole duration of the
// migration.
func halves() map[string]func(key string) bool {
	n := 0
	return map[string]func(key string) bool{
		"nothing moved":  func(string) bool { return false },
		"locks moved":    isLock,
		"the rest moved": func(key string) bool { return !isLock(key) },
		"some moved":     func(string) bool { n++; return n%2 == 0 },
		"all moved":      rig.EveryKey,
	}
}

// eachHalf runs a test in each of these states, all in one cluster.
func eachHalf(t *testing.T, test func(t *testing.T, cluster *rig.Cluster, which func(key string) bool)) {
	t.Helper()
	cluster := rig.NewStubbornCluster(t)
	for half, which := range halves() {
		t.Run(half, func(t *testing.T) {
			t.Parallel()
			test(t, cluster.In(t), which)
		})
	}
}

// isLock reports whether a key is that of a lock. The keys stored next to a lock have a prefix or a
// suffix.
func isLock(key string) bool {
	return strings.HasPrefix(key, "{") && !strings.Contains(key, "timeout")
}

// guarded is a lock or a permit that is held while its slot migrates.
type guarded struct {
	what    string
	lock    anyLock // nil for a permit
	err     func() error
	release func(context.Context) error
	single  bool // it has one key, so that it can be released and acquired at any time
}

func guardOne(t *testing.T, what string, lock anyLock, single bool) guarded {
	t.Helper()
	hold := mustLock(t, lock)
	return guarded{what, lock, hold.Err, hold.Unlock, single}
}

// guardAll holds one of each kind, all in the slot of a tag.
func guardAll(t *testing.T, client *latchkey.Client, tag string) []guarded {
	t.Helper()
	name := func(what string) string { return tag + ":" + what }
	var all []guarded
	for _, k := range append(kinds, readKind) {
		all = append(all, guardOne(t, k.name, k.open(client, name(k.name)), !k.fenced && !k.queued && !k.sided))
	}
	several := latchkey.NewMultiLock(client.NewLock(name("a")), client.NewLock(name("b")), client.NewMutex(name("c")))
	all = append(all, guardOne(t, "MultiLock", several, true))
	both := client.NewRWLock(name("both"))
	write := mustLock(t, both.Writer())
	read, err := both.Reader().Lock(write.Context(within(t, soon)))
	require.NoError(t, err)
	again, err := both.Reader().Lock(read.Context(within(t, soon)))
	require.NoError(t, err)
	for what, hold := range map[string]*latchkey.Hold{"outer": write, "nested": read, "nested again": again} {
		all = append(all, guarded{what, both.Writer(), hold.Err, hold.Unlock, false})
	}
	pool := client.NewPermitSemaphore(name("pool"))
	_, err = pool.TrySetPermits(t.Context(), 1)
	require.NoError(t, err)
	permit, err := pool.Acquire(within(t, soon))
	require.NoError(t, err)
	return append(all, guarded{"Permit", nil, permit.Err, permit.Release, false})
}

// A slot that stays half moved for longer than a lease costs no hold of any kind. Primitives with
// one key can be released and acquired during the move, all others when it is over.
func TestMigration_nothing_is_lost(t *testing.T) {
	t.Parallel()
	eachHalf(t, func(t *testing.T, cluster *rig.Cluster, which func(key string) bool) {
		err := surviveMove(t, cluster, which, 5*time.Second)
		for _, lease := range []time.Duration{10 * time.Second, 20 * time.Second} {
			if err != nil {
				t.Logf("again with %v, in case the machine was too slow: %v", lease, err)
				err = surviveMove(t, cluster, which, lease)
			}
		}
		require.NoError(t, err)
	})
}

// surviveMove returns an error if a hold with a lease does not survive a slot that stays half
// moved.
func surviveMove(t *testing.T, cluster *rig.Cluster, which func(key string) bool, lease time.Duration) error {
	t.Helper()
	client := connectCluster(t, cluster, latchkey.Options{Lease: lease})
	tag := "{" + rig.Name(t) + "}"
	all := guardAll(t, client, tag)
	var errs []error
	note := func(err error, format, what string) {
		if err != nil {
			errs = append(errs, fmt.Errorf(format+": %w", what, err))
		}
	}
	moveKeys, finish := cluster.BeginMove(tag)
	moveKeys(which)
	rest(lease + lease/4)
	for _, each := range all {
		note(each.err(), "%s in a slot that is half moved", each.what)
		if each.single {
			note(each.release(context.Background()), "release of %s", each.what)
			hold, err := each.lock.TryLock(within(t, soon))
			note(err, "new acquisition of %s", each.what)
			if err == nil {
				note(hold.Unlock(context.Background()), "its release, of %s", each.what)
			}
		}
	}
	moveKeys(rig.EveryKey)
	finish()
	for _, each := range all {
		if !each.single {
			note(each.release(context.Background()), "release of %s after the move", each.what)
		}
	}
	for _, each := range all {
		if each.lock != nil && len(errs) == 0 {
			mustUnlock(t, mustLock(t, each.lock))
		}
	}
	return errors.Join(errs...)
}

// A hold is also renewed while its owner waits to re-enter it or to release one level of it, which
// the server cannot do before its slot has moved.
func TestMigration_owners_who_wait_keep_their_holds(t *testing.T) {
	t.Parallel()
	rig.Long(t)
	const lease = 5 * time.Second
	cluster := rig.NewStubbornCluster(t)
	client := connectCluster(t, cluster, latchkey.Options{Lease: lease, RetryBudget: lease})
	tag := "{" + rig.Name(t) + "}"
	entering, leaving := client.NewRWLock(tag+":1").Reader(), client.NewRWLock(tag+":2").Reader()
	outer, kept := mustLock(t, entering), mustLock(t, leaving)
	inner, err := leaving.Lock(kept.Context(t.Context()))
	require.NoError(t, err)
	moveKeys, finish := cluster.BeginMove(tag)
	moveKeys(isLock)
	entered := lockInBackground(outer.Context(within(t, time.Minute)), entering)
	left := make(chan error, 1)
	go func() { left <- inner.Unlock(context.Background()) }()
	rig.Throughout(t, lease+lease/4, "they are held", func() error { return errors.Join(outer.Err(), kept.Err()) })
	moveKeys(rig.EveryKey)
	finish()
	got := rig.Await(t, soon, "the re-entry", entered)
	require.NoError(t, got.err)
	rig.Await(t, soon, "the release", left) // the client may already have left it to the background
	mustUnlock(t, got.hold)
	mustUnlock(t, outer)
	mustUnlock(t, kept)
}

// A re-entry with an unknown outcome does not block the renewal either, for as long as the server
// does not answer.
func TestMigration_doubtful_reentry_keeps_the_hold(t *testing.T) {
	t.Parallel()
	rig.Long(t)
	const lease = 5 * time.Second
	cluster := rig.NewStubbornCluster(t)
	client := connectCluster(t, cluster, latchkey.Options{Lease: lease, RetryBudget: lease})
	tag := "{" + rig.Name(t) + "}"
	reader := client.NewRWLock(tag).Reader()
	hold := mustLock(t, reader)
	moveKeys, finish := cluster.BeginMove(tag)
	moveKeys(isLock)
	rest(lease / 2) // halfway between two renewals, so that the re-entry ends later than the lease
	source := cluster.Pause(tag)
	tried := make(chan error, 1)
	go func() {
		_, err := reader.TryLock(hold.Context(context.Background()))
		tried <- err
	}()
	rest(lease / 4) // longer than the attempt waits for its reply
	source.Resume(t)
	assert.Error(t, rig.Await(t, 4*lease, "the re-entry", tried), "in a slot that is half moved")
	assert.NoError(t, hold.Err(), "the hold during and after the re-entry")
	moveKeys(rig.EveryKey)
	finish()
	mustUnlock(t, hold)
}

// Operations that the server cannot do while the slot is half moved fail with an error that says
// so. An operation that had begun is finished once the slot has moved.
func TestMigration_says_what_stalls(t *testing.T) {
	t.Parallel()
	rig.Long(t)
	eachHalf(t, func(t *testing.T, cluster *rig.Cluster, which func(key string) bool) {
		client := connectCluster(t, cluster, latchkey.Options{Lease: time.Hour})
		tag := "{" + rig.Name(t) + "}"
		all := guardAll(t, client, tag)
		moveKeys, finish := cluster.BeginMove(tag)
		moveKeys(which)
		works := map[string]string{}
		try := func(what string, call func(ctx context.Context, n int) error) {
			works[what] = "works"
			n := 0
			rig.Eventually(t, 3*soon, "an answer to: "+what, func() error {
				err := call(within(t, 300*time.Millisecond<<n), n)
				if saysMove(err) {
					works[what], err = "stalls", nil
				}
				n++
				return err // a busy machine may not reply in time
			})
		}
		for _, each := range all {
			try("release of "+each.what, func(ctx context.Context, _ int) error { return each.release(ctx) })
		}
		for what := range firstCalls(client, "") {
			try(what, func(ctx context.Context, n int) error { // what an earlier try may have acquired is not in the way
				return firstCalls(client, fmt.Sprint(tag, ":new", n))[what](ctx)
			})
		}
		for _, what := range slices.Sorted(maps.Keys(works)) {
			t.Logf("%s %s", what, works[what])
		}
		for _, what := range ofOneKey {
			assert.Equal(t, "works", works[what], what)
		}
		moveKeys(rig.EveryKey)
		finish()
		for _, each := range all {
			if each.lock != nil {
				mustUnlock(t, mustLock(t, each.lock))
			}
		}
		for what, call := range firstCalls(client, tag+":newer") {
			assert.NoError(t, call(within(t, soon)), what)
		}
	})
}

func saysMove(err error) bool {
	return err != nil && strings.Contains(err.Error(), "slot is being moved")
}

// ofOneKey are the operations that need one key and therefore work at any time.
var ofOneKey = []string{
	"new Mutex", "new Lock", "new SpinLock", "release of Mutex", "release of Lock", "release of SpinLock",
	"release of FencedLock", "release of MultiLock",
}

// firstCalls are calls for objects that do not exist.
func firstCalls(client *latchkey.Client, name string) map[string]func(context.Context) error {
	all := map[string]func(context.Context) error{}
	for _, k := range append(kinds, readKind) {
		all["new "+k.name] = func(ctx context.Context) error {
			_, err := k.open(client, name+k.name).TryLock(ctx)
			return err
		}
	}
	all["new Semaphore"] = func(ctx context.Context) error {
		_, err := client.NewSemaphore(name+"s").TrySetPermits(ctx, 1)
		return err
	}
	all["new PermitSemaphore"] = func(ctx context.Context) error {
		_, err := client.NewPermitSemaphore(name+"p").TrySetPermits(ctx, 1)
		return err
	}
	all["new CountDownLatch"] = func(ctx context.Context) error {
		_, err := client.NewCountDownLatch(name+"l").TrySetCount(ctx, 1)
		return err
	}
	return all
}

// A release that touches several keys happens as a whole or not at all, even when all of its keys
// are present and it deletes some of them. A waiter gets the lock once the slot has moved.
func TestMigration_releases_are_whole(t *testing.T) {
	t.Parallel()
	cluster := rig.NewStubbornCluster(t)
	for _, which := range []string{"nothing moved", "all moved"} {
		t.Run(which, func(t *testing.T) {
			t.Parallel()
			cluster := cluster.In(t)
			options := latchkey.Options{RetryBudget: 2 * time.Second, Tuning: latchkey.Tuning{PollCeiling: time.Second}}
			client, other := connectCluster(t, cluster, options), connectCluster(t, cluster, options)
			name := rig.Name(t)
			reader := mustLock(t, client.NewRWLock(name).Reader())
			writer := lockInBackground(within(t, 2*soon), other.NewRWLock(name).Writer())
			queued(t, rig.NewAdmin(t, cluster.Server()), name, 1) // so that all keys of the lock exist
			moveKeys, finish := cluster.BeginMove(name)
			moveKeys(halves()[which])
			rig.Eventually(t, soon, "an error that says what stalls", func() error {
				if err := reader.Unlock(context.Background()); !saysMove(err) {
					return fmt.Errorf("unlock: %w", err) // a busy machine may not reply in time
				}
				return nil
			})
			moveKeys(rig.EveryKey)
			finish()
			next := rig.Await(t, soon, "the writer", writer)
			require.NoError(t, next.err)
			mustUnlock(t, next.hold)
		})
	}
}

// A release that the server cannot finish, because the lock that it deleted counts as moved, grants
// the lock to nobody.
func TestMigration_grants_are_whole(t *testing.T) {
	t.Parallel()
	cluster := rig.NewStubbornCluster(t)
	for _, k := range []kind{mutexKind, fencedKind} {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			cluster := cluster.In(t)
			options := latchkey.Options{RetryBudget: 2 * time.Second, Tuning: latchkey.Tuning{PollCeiling: time.Second}}
			client, other := connectCluster(t, cluster, options), connectCluster(t, cluster, options)
			name := rig.Name(t)
			hold := mustLock(t, k.open(client, name))
			waiter := lockInBackground(within(t, 2*soon), k.open(other, name))
			queued(t, rig.NewAdmin(t, cluster.Server()), name, 1)
			moveKeys, finish := cluster.BeginMove(name)
			_ = hold.Unlock(context.Background()) // this may fail because the slot is moving
			moveKeys(rig.EveryKey)
			finish()
			next := rig.Await(t, 2*soon, "the waiter", waiter)
			require.NoError(t, next.err)
			mustUnlock(t, next.hold)
		})
	}
}

// When two nodes redirect every command for a slot to each other, a call uses up its retry budget
// and no more.
func TestMigration_nodes_that_disagree(t *testing.T) {
	t.Parallel()
	cluster := rig.NewStubbornCluster(t)
	client := connectCluster(t, cluster, latchkey.Options{RetryBudget: 2 * time.Second})
	lock := client.NewLock(rig.Name(t))
	agree := cluster.Disagree(lock.Name())
	tried := make(chan error, 1)
	go func() {
		_, err := lock.TryLock(context.Background())
		tried <- err
	}()
	require.Error(t, rig.Await(t, soon, "the end of TryLock", tried))
	agree()
	mustUnlock(t, mustLock(t, lock))
}
