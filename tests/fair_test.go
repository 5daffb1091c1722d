package tests

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// The keys that Redisson and this library use in addition to the key of a fair lock.
func queueOf(name string) string     { return "redisson_lock_queue:{" + name + "}" }
func deadlinesOf(name string) string { return "redisson_lock_timeout:{" + name + "}" }
func notesOf(name string) string     { return "latchkey_fair:{" + name + "}" }

func TestFairLockIsGrantedInOrder(t *testing.T) {
	t.Parallel()
	const waiters = 20
	server, name := rig.Shared(), rig.Name(t)
	admin := rig.NewAdmin(t, server)
	var clients []*latchkey.Client
	for range 3 {
		clients = append(clients, connect(t, server, rarePolls))
	}
	hold := mustLock(t, clients[0].NewFairLock(name))
	inside := make(chan int, waiters)
	for i := range waiters {
		waitAs(t, admin, clients[i%len(clients)], name, i, inside)
	}
	mustUnlock(t, hold)
	for want := range waiters {
		require.Equal(t, want, rig.Await(t, soon, "the next", inside))
	}
	rig.Eventually(t, soon, "nothing is left", func() error {
		if left := admin.Dump(name); len(left) > 0 {
			return fmt.Errorf("left: %v", left)
		}
		return nil
	})
}

// rarePolls are the options of a client whose waiters hardly poll.
var rarePolls = latchkey.Options{Lease: 2 * time.Minute, Tuning: latchkey.Tuning{PollCeiling: time.Minute, StaleWaiterTimeout: time.Minute}}

// shortStale are the options of a client with a short stale period. The client keeps its place on a
// machine that stalls for half of that period.
var shortStale = latchkey.Options{Tuning: latchkey.Tuning{StaleWaiterTimeout: 1500 * time.Millisecond}}

// steadyStale are options with which a waiter still notices soon what has happened to its queue,
// and keeps its place on a machine that stalls for some seconds.
var steadyStale = latchkey.Options{Tuning: latchkey.Tuning{StaleWaiterTimeout: 4 * time.Second}}

// waitAs makes one waiter join the queue, and reports its number once it holds the lock.
func waitAs(t *testing.T, admin *rig.Admin, client *latchkey.Client, name string, number int, inside chan<- int) {
	t.Helper()
	waiter := lockInBackground(within(t, time.Minute), client.NewFairLock(name))
	go func() {
		next := <-waiter
		if next.err == nil {
			inside <- number
			_ = next.hold.Unlock(context.Background())
		}
	}()
	queueLength(t, admin, name, int64(number)+1)
}

// Waiters keep their order behind a holder that renews for several stale periods. No stored
// deadline is further away than one period. A waiter that cannot run for a period loses its place.
func TestLiveWaitersKeepTheirPlaces(t *testing.T) {
	t.Parallel()
	const waiters = 4
	server := rig.Shared()
	admin := rig.NewAdmin(t, server)
	assert.NoError(t, rig.InTime(t, func(try int) error {
		name := fmt.Sprint(rig.Name(t), try)
		holder := mustLock(t, connect(t, server, latchkey.Options{Lease: 6 * time.Second}).NewFairLock(name))
		inside := make(chan int, waiters)
		for i := range waiters {
			waitAs(t, admin, connect(t, server, shortStale), name, i, inside)
		}
		err := placesKept(admin, name, 5*shortStale.Tuning.StaleWaiterTimeout/2)
		mustUnlock(t, holder)
		for want := range waiters {
			if next := rig.Await(t, soon, "the next", inside); next != want {
				err = errors.Join(err, fmt.Errorf("%d has the lock instead of %d", next, want))
			}
		}
		return err
	}))
}

// placesKept checks for some time that a queue stays as it is, and that its waiters count as alive.
func placesKept(admin *rig.Admin, name string, during time.Duration) error {
	before := admin.Strings("LRANGE", queueOf(name), "0", "-1")
	for start := time.Now(); time.Since(start) < during; rest(20 * time.Millisecond) {
		if now := admin.Strings("LRANGE", queueOf(name), "0", "-1"); !slices.Equal(before, now) {
			return fmt.Errorf("the queue was %v and is %v", before, now)
		}
		if err := deadlinesWithin(admin, name, shortStale.Tuning.StaleWaiterTimeout); err != nil {
			return err
		}
	}
	return nil
}

// notesAmong returns how many of the waiters have notes.
func notesAmong(admin *rig.Admin, name string, waiters []string) (n int64) {
	for _, waiter := range waiters {
		n += admin.Int("HEXISTS", notesOf(name), waiter)
	}
	return n
}

// deadlinesWithin checks that no waiter counts as alive for longer than period.
func deadlinesWithin(admin *rig.Admin, name string, period time.Duration) error {
	last := admin.Strings("ZRANGE", deadlinesOf(name), "-1", "-1")
	if len(last) == 0 {
		return errors.New("no deadlines")
	}
	text := admin.Text("ZSCORE", deadlinesOf(name), last[0])
	score, err := strconv.ParseFloat(text, 64)
	clock := admin.Strings("TIME") // read last, because it only grows
	seconds, _ := strconv.ParseInt(clock[0], 10, 64)
	if latest := (seconds + 1) * 1000; err == nil && int64(score) > latest+period.Milliseconds() {
		err = fmt.Errorf("a deadline of %s at %v s", text, seconds)
	}
	return err
}

// The keys of the queue are deleted while some wait: each waiter finds its place again, and all
// acquire in order.
func TestDeletedQueueIsRestored(t *testing.T) {
	t.Parallel()
	const waiters = 3
	damages := map[string]func(name string) []string{
		"the queue":      func(name string) []string { return []string{queueOf(name)} },
		"the deadlines":  func(name string) []string { return []string{deadlinesOf(name)} },
		"the notes":      func(name string) []string { return []string{notesOf(name)} },
		"queue and time": func(name string) []string { return []string{queueOf(name), deadlinesOf(name)} },
		"everything":     func(name string) []string { return []string{queueOf(name), deadlinesOf(name), notesOf(name)} },
	}
	for what, keys := range damages {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			server, name := rig.Shared(), rig.Name(t)
			admin := rig.NewAdmin(t, server)
			holder := mustLock(t, connect(t, server).NewFairLock(name))
			inside := make(chan int, waiters)
			for i := range waiters {
				waitAs(t, admin, connect(t, server, steadyStale), name, i, inside)
			}
			before := admin.Strings("LRANGE", queueOf(name), "0", "-1")
			admin.Do(append([]string{"DEL"}, keys(name)...)...)
			rig.Eventually(t, soon, "the queue is what it was", func() error {
				now := admin.Strings("LRANGE", queueOf(name), "0", "-1")
				if !slices.Equal(before, now) || admin.Int("ZCARD", deadlinesOf(name)) != waiters || notesAmong(admin, name, now) != waiters {
					return fmt.Errorf("it was %v and is %v", before, now)
				}
				return nil
			})
			mustUnlock(t, holder)
			for want := range waiters {
				assert.Equal(t, want, rig.Await(t, soon, "the next", inside))
			}
		})
	}
}

// The queue is lost at the moment of the release, so that no waiter gets a message. All acquire
// nevertheless.
func TestQueueGoesWithTheRelease(t *testing.T) {
	t.Parallel()
	const waiters = 3
	server, name := rig.Shared(), rig.Name(t)
	admin := rig.NewAdmin(t, server)
	holder := mustLock(t, connect(t, server).NewFairLock(name))
	inside := make(chan int, waiters)
	for i := range waiters {
		waitAs(t, admin, connect(t, server, shortStale), name, i, inside)
	}
	admin.Do("DEL", queueOf(name), deadlinesOf(name))
	mustUnlock(t, holder)
	got := map[int]bool{}
	for range waiters {
		got[rig.Await(t, soon, "the next", inside)] = true
	}
	assert.Len(t, got, waiters)
}

// A waiter that leaves when it is first and the lock is free wakes the next one at once, well
// before anybody polls.
func TestLeavingHeadPassesTheWakeUpOn(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	admin, tap := rig.NewAdmin(t, server), rig.NewTap(t, server)
	holder := mustLock(t, connect(t, server, rarePolls).NewFairLock(name))
	tap.DropMessages(true) // the first waiter does not get its message
	ctx, cancel := context.WithCancel(t.Context())
	first := lockInBackground(ctx, connectVia(t, server, tap.Addr(), rarePolls).NewFairLock(name))
	queueLength(t, admin, name, 1)
	second := lockInBackground(within(t, time.Minute), connect(t, server, rarePolls).NewFairLock(name))
	queueLength(t, admin, name, 2)
	awaitWaiter(t, admin, name)
	quiet(t, tap)

	mustUnlock(t, holder)
	assert.Empty(t, second, "it is not its turn")
	cancel()
	assert.ErrorIs(t, rig.Await(t, soon, "the first", first).err, context.Canceled)
	next := rig.Await(t, soon, "the second is told", second)
	require.NoError(t, next.err)
	mustUnlock(t, next.hold)
}

// TryLock does not overtake waiters.
func TestTryLockRespectsTheQueue(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	admin := rig.NewAdmin(t, server)
	admin.Do("RPUSH", queueOf(name), "99999999-9999-4999-8999-999999999999:1")
	admin.Do("ZADD", deadlinesOf(name), "99999999999999", "99999999-9999-4999-8999-999999999999:1")
	lock := connect(t, server).NewFairLock(name)
	_, err := lock.TryLock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
	_ = refused(t, func(wait latchkey.WaitOption) error {
		_, err := lock.Lock(t.Context(), wait)
		return err
	})
	rig.Eventually(t, soon, "it has left the queue", func() error {
		if n := admin.Int("LLEN", queueOf(name)); n != 1 {
			return fmt.Errorf("%d in the queue", n)
		}
		return nil
	})
	admin.Do("DEL", queueOf(name), deadlinesOf(name))
	mustUnlock(t, mustLock(t, lock))
}

// Waiters lists all waiters in order, with their ages.
func TestWaitersAreListed(t *testing.T) {
	t.Parallel()
	const waiters = 3
	server, name := rig.Shared(), rig.Name(t)
	admin, client := rig.NewAdmin(t, server), connect(t, server, rarePolls)
	lock := client.NewFairLock(name)
	none, err := lock.Waiters(t.Context())
	require.NoError(t, err)
	assert.Empty(t, none)
	holder := mustLock(t, lock)
	inside := make(chan int, waiters)
	for i := range waiters {
		waitAs(t, admin, client, name, i, inside)
	}
	const redissons = "99999999-9999-4999-8999-999999999999:1"
	admin.Do("RPUSH", queueOf(name), redissons)
	admin.Do("ZADD", deadlinesOf(name), "99999999999999", redissons)
	list, err := lock.Waiters(t.Context())
	require.NoError(t, err)
	require.Len(t, list, waiters+1)
	for i, w := range list[:waiters] {
		assert.Equal(t, admin.Text("LINDEX", queueOf(name), strconv.Itoa(i)), w.Owner.String())
		assert.Positive(t, w.Age)
		assert.Greater(t, w.Alive, rarePolls.Tuning.StaleWaiterTimeout/2)
		assert.LessOrEqual(t, w.Alive, rarePolls.Tuning.StaleWaiterTimeout)
		if i > 0 {
			assert.Less(t, w.Age, list[i-1].Age, "the later, the younger")
		}
	}
	assert.Negative(t, list[waiters].Age, "Redisson does not say")
	assert.Equal(t, redissons, list[waiters].Owner.String())
	mustUnlock(t, holder)
	for want := range waiters {
		assert.Equal(t, want, rig.Await(t, soon, "the next", inside))
	}
	admin.Do("DEL", queueOf(name), deadlinesOf(name))
}

// Tokens of a fair lock grow in the order of its grants.
func TestFencedFairLock(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	lock := connect(t, server).NewFairLock(name, latchkey.Fenced())
	hold := mustLock(t, lock)
	for want := range 5 {
		require.EqualValues(t, want+1, hold.Token())
		waiter := lockInBackground(within(t, soon), lock)
		queueLength(t, rig.NewAdmin(t, server), name, 1)
		mustUnlock(t, hold)
		next := rig.Await(t, soon, "the waiter", waiter)
		require.NoError(t, next.err)
		hold = next.hold
	}
	mustUnlock(t, hold)
}

// One queue is damaged. Its waiter gets an error, and the waiters of other locks of the same client
// keep their places.
func TestOneBadQueueDoesNotSpoilTheRest(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	options := steadyStale
	options.Tuning.PollCeiling = soon // only the refresh finds the damage
	admin, client := rig.NewAdmin(t, server), connect(t, server, options)
	good, bad := name+" good", name+" bad"
	holder, other := mustLock(t, client.NewFairLock(good)), mustLock(t, client.NewFairLock(bad))
	waiter := lockInBackground(within(t, time.Minute), client.NewFairLock(good))
	queueLength(t, admin, good, 1)
	stuck := lockInBackground(within(t, time.Minute), client.NewFairLock(bad))
	queueLength(t, admin, bad, 1)

	admin.Do("SET", queueOf(bad), "something else")
	assert.ErrorIs(t, rig.Await(t, soon, "the waiter of the damaged queue", stuck).err, latchkey.ErrWrongKind)
	place := admin.Strings("LRANGE", queueOf(good), "0", "-1")
	rig.Throughout(t, 6*steadyStale.Tuning.StaleWaiterTimeout/5, "the other keeps its place", func() error {
		if now := admin.Text("HGET", notesOf(good), place[0]); now == "" {
			return errors.New("it has none")
		}
		list, err := client.NewFairLock(good).Waiters(t.Context())
		if err == nil && (len(list) != 1 || list[0].Alive == 0) {
			err = fmt.Errorf("%v", list)
		}
		return err
	})
	mustUnlock(t, holder)
	next := rig.Await(t, soon, "the other", waiter)
	require.NoError(t, next.err)
	mustUnlock(t, next.hold)
	mustUnlock(t, other) // it is released nevertheless
	assert.False(t, admin.Exists(bad))
	admin.Do("DEL", queueOf(bad))
}
