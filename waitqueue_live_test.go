package latchkey

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/engine/pubsub"
)

// behind returns the wait queue of a lock's key, or nil.
func behind(l *Lock) *waitQueue { return l.client.waitQueues.known(l.lineKey()) }

func ownershipOf(h *Hold) *ownership { return h.inner().(*holdState).ownership }

func TestHold_that_nobody_contends_for_has_no_wait_queue(t *testing.T) {
	c := newTestClient(t, Options{})
	ctx := context.Background()
	for what, lock := range map[string]Locker{
		"lock": c.NewLock(uniqueName(t, c) + "lock"), "mutex": c.NewMutex(uniqueName(t, c) + "mutex"),
		"fenced": c.NewFencedLock(uniqueName(t, c) + "fenced"), "write": c.NewRWLock(uniqueName(t, c) + "write").Writer(),
	} {
		for try, acquire := range map[string]func() (*Hold, error){
			"Lock":    func() (*Hold, error) { return lock.Lock(ctx) },
			"TryLock": func() (*Hold, error) { return lock.TryLock(ctx) },
		} {
			h, err := acquire()
			require.NoError(t, err)
			if what != "write" || try == "TryLock" { // a lock with two lines keeps them
				require.Nil(t, c.waitQueues.known(ownershipOf(h).lock.lineKey()), "%s %s", what, try)
			}
			require.NoError(t, h.Unlock(ctx))
			require.Nil(t, c.waitQueues.known(ownershipOf(h).lock.lineKey()), "%s %s", what, try)
			require.Empty(t, c.registry.all())
		}
	}
}

// The wait queue stays after a waiter has come and gone, since it may have learned something.
func TestHold_keeps_a_wait_queue_in_which_somebody_waited(t *testing.T) {
	c := newTestClient(t, Options{})
	ctx := context.Background()
	lock := c.NewLock(uniqueName(t, c))
	h, err := lock.Lock(ctx)
	require.NoError(t, err)
	gone, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { _, err := lock.Lock(gone); ended <- err }()
	require.Eventually(t, ownershipOf(h).links.hasLine, time.Minute, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.NotNil(t, behind(lock))
	require.NoError(t, h.Unlock(ctx))
	require.Nil(t, behind(lock), "it goes with the last user")
}

// An ownership without waiters has no wait queue.
func TestHold_without_a_wait_queue(t *testing.T) {
	c := newTestClient(t, Options{})
	ctx := context.Background()
	lock := c.NewLock(uniqueName(t, c))
	h, err := lock.Lock(ctx)
	require.NoError(t, err)
	o := ownershipOf(h)
	require.Nil(t, o.links.firstInLine())
	require.Nil(t, o.links.takeFirst())
	require.False(t, o.links.hasLine())
	require.Zero(t, o.links.openFor(time.Now()))
	o.links.leftFree(0, false)
	require.False(t, o.links.releaseBegins())
	o.links.noteReceivers(0)
	require.Nil(t, behind(lock))
	o.links.noteReceivers(1)
	require.NotNil(t, behind(lock), "others want the key")
	require.NoError(t, h.Unlock(ctx))
	require.Nil(t, behind(lock))
}

// A caller that finds a key held waits, and comes to the front when the hold is released or the release fails.
func TestHold_uses_the_wait_queue_of_the_first_waiter(t *testing.T) {
	c := newTestClient(t, Options{})
	ctx := context.Background()
	for what, ends := range map[string]func(o *ownership){
		"released":         func(o *ownership) { o.leaveFree(nil, 0) },
		"failed, released": func(o *ownership) { o.releaseFails(); o.leaveFree(nil, 0) },
	} {
		name := uniqueName(t, c)
		h, err := c.NewLock(name).Lock(ctx)
		require.NoError(t, err)
		o := ownershipOf(h)
		q, w, _ := c.waitQueues.enter(o.lock.lineKey(), onlyLine, nil)
		require.Same(t, q, o.links.queue)
		require.NotNil(t, w, what)
		ends(o)
		at, err := w.await(ctx, nil)
		require.NoError(t, err)
		require.Equal(t, atFront, at)
		require.Nil(t, q.exit(nil))
		require.Nil(t, c.waitQueues.known(o.lock.lineKey()), what)
		require.NoError(t, c.rueidis.Do(ctx, c.rueidis.B().Del().Key(o.lock.names.Key).Build()).Error())
	}
}

// A call that gives up while another call of its owner is in flight gets ErrNotAcquired: the server had no problem.
func TestHold_is_what_the_second_call_of_an_owner_waits_for(t *testing.T) {
	c := newTestClient(t, Options{})
	ctx := context.Background()
	lock := c.NewLock(uniqueName(t, c))
	h, err := lock.Lock(ctx)
	require.NoError(t, err)
	owner := c.NewOwner()
	first := c.registry.find(lock.primitive, identity.Owner(owner))
	require.NoError(t, first.sendMu.Lock(ctx)) // a TryLock of that owner is in flight, and nothing is sent before it ends
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	_, err = lock.Lock(short, By(owner))
	require.ErrorIs(t, err, ErrNotAcquired)
	first.sendMu.Unlock()
	require.NoError(t, h.Unlock(ctx))
}

// After a failed release, later callers do not wait for the hold.
func TestHold_whose_release_failed_lets_others_try(t *testing.T) {
	c := newTestClient(t, Options{})
	h, err := c.NewLock(uniqueName(t, c)).Lock(context.Background())
	require.NoError(t, err)
	o := ownershipOf(h)
	o.releaseFails()
	q, w, _ := c.waitQueues.enter(o.lock.lineKey(), onlyLine, nil)
	require.Nil(t, w, "it is in front")
	require.Nil(t, q.exit(nil))
	require.NoError(t, h.Unlock(context.Background()))
	require.Nil(t, c.waitQueues.known(o.lock.lineKey()))
}

// Each key has its own holds, the newest first, and they end in any order.
func TestWaitQueues_what_is_held_by_key(t *testing.T) {
	c := newTestClient(t, Options{})
	shard := &queueShard{live: map[string]*lineLinks{}}
	made := func(key string) *ownership { return c.registry.fresh(newPrimitive(c, mutexSpec, key)) }
	a, b, a2, a3 := made("a"), made("b"), made("a"), made("a")
	for _, o := range []*ownership{a, b, a2, a3} {
		shard.link(&o.links)
	}
	on := func(key string) (all []*ownership) {
		for l := shard.live[key]; l != nil; l = l.older {
			all = append(all, l.of.(*ownership))
		}
		return all
	}
	require.Equal(t, []*ownership{a3, a2, a}, on("a"), "the newest first")
	require.Equal(t, []*ownership{b}, on("b"))
	require.Empty(t, on("c"))
	shard.unlink(&b.links)
	require.Empty(t, on("b"))
	shard.unlink(&a2.links)
	require.Equal(t, []*ownership{a3, a}, on("a"))
	shard.unlink(&a3.links)
	require.Equal(t, []*ownership{a}, on("a"))
	shard.link(&a2.links)
	shard.unlink(&a.links)
	require.Equal(t, []*ownership{a2}, on("a"))
	shard.unlink(&a2.links)
	require.Empty(t, shard.live)
}

// A client may have thousands of holds of one key, such as permits. They end in any order, and none takes longer than
// another.
func TestWaitQueues_what_is_held_of_one_key(t *testing.T) {
	c := newTestClient(t, Options{})
	p := newPrimitive(c, mutexSpec, "a")
	all := make([]*ownership, 60_000)
	for i := range all {
		all[i] = c.registry.fresh(p)
	}
	unlinked := func(order []*ownership) time.Duration {
		shard := &queueShard{live: map[string]*lineLinks{}}
		for _, o := range all {
			shard.link(&o.links)
		}
		began := time.Now()
		for _, o := range order {
			shard.unlink(&o.links)
		}
		require.Empty(t, shard.live)
		return time.Since(began)
	}
	order := slices.Clone(all)
	slices.Reverse(order)
	newestFirst := unlinked(order)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	require.Less(t, unlinked(all), 20*newestFirst+time.Second, "the oldest first")
	require.Less(t, unlinked(order), 20*newestFirst+time.Second, "in any order")
}

// The front may be gone when the time that it left to strangers is over. The next user of the wait queue is not
// woken by that.
func TestWaitQueue_a_pause_for_strangers_outlives_all_users(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newWaitQueues()
		q := all.use(lineKey{key: "job"})
		q.takeTurns()
		q.sub = &pubsub.Subscription{To: q}
		q.Message(strangersFirst) // their time begins
		q.reliedUntil = time.Now().Add(-time.Second)
		require.True(t, q.Retire(0), "nobody relies on the subscription")
		q.done()
		time.Sleep(2 * strangerPause) // a timer of the queue is running
		synctest.Wait()
		again := all.use(lineKey{key: "job"})
		require.Same(t, q, again)
		require.Empty(t, again.signals)
		require.False(t, again.signaled)
	})
}
