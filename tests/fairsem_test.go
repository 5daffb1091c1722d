package tests

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

func TestGoldenFairSemaphore(t *testing.T) {
	server, ctx := rig.Shared(), t.Context()
	admin, client := rig.NewAdmin(t, server), connect(t, server)
	s := newFairPermits(t, client, 3)
	_ = subscribeRaw(t, server, presenceChannelOf(s.Name())) // so that this listener is no stranger, which may go first
	heard := subscribeRaw(t, server, semaphoreChannelOf(s.Name()))

	began := time.Now()
	three, err := s.AcquireN(ctx, 3, latchkey.Lease(goldenLease))
	require.NoError(t, err)
	assert.Equal(t, "0", admin.Text("GET", s.Name()))
	for i, p := range three {
		raw, err := hex.DecodeString(p.ID())
		require.NoError(t, err)
		require.Len(t, raw, 16)
		assert.Equal(t, []byte{0, 3, 0, byte(i)}, raw[12:], "how many, and which of them")
		assertExpiry(t, began, goldenLease, admin.Int("ZSCORE", idsOf(s.Name()), string(raw)))
	}
	assert.ElementsMatch(t, []string{s.Name(), idsOf(s.Name())}, keysLeft(admin, s.Name()), "there is no queue")

	waiter := queueForPermits(within(t, time.Minute), t, admin, s, 2)
	var entry string
	rig.Eventually(t, soon, "the client listens", func() error {
		found, err := admin.Do("HGETALL", permitGrantsOf(s.Name())).AsStrMap()
		for each, lease := range found {
			entry = each
			assert.Equal(t, "5000", lease, "the StaleWaiterTimeout")
		}
		if len(found) != 1 || err != nil {
			return fmt.Errorf("%v %w", found, err)
		}
		return nil
	})
	owner, id, _ := strings.Cut(entry, ":")
	assert.Equal(t, client.ID(), owner)
	assert.Len(t, id, 32)
	assert.Equal(t, "00020000", id[24:])
	assertExpiry(t, began, 0, admin.Int("ZSCORE", permitQueueOf(s.Name()), entry)/1000)
	assertExpiry(t, began, 5*time.Second, admin.Int("ZSCORE", permitAliveOf(s.Name()), entry))
	for _, key := range []string{permitQueueOf(s.Name()), permitAliveOf(s.Name()), permitGrantsOf(s.Name())} {
		assert.InDelta(t, 110*time.Second, admin.PTTL(key), float64(20*time.Second), key)
	}

	told := subscribeRaw(t, server, permitChannelOf(server, client, s.Name()))
	require.NoError(t, three[0].Release(ctx))
	require.NoError(t, three[1].Release(ctx))
	assert.Equal(t, "grant p "+id+" 0 "+s.Name(), rig.Await(t, soon, "the grant", told))
	got := rig.Await(t, soon, "the waiter", waiter)
	require.NoError(t, got.err)
	assert.Equal(t, id, got.permits[0].ID())
	assert.Empty(t, heard, "nobody else is told")
	nothingWaits(t, admin, s.Name())

	got.release(t)
	require.NoError(t, three[2].Release(ctx))
	for _, free := range []string{"1", "2", "3"} {
		assert.Equal(t, free, rig.Await(t, soon, "the message", heard))
	}
	assert.Equal(t, []string{s.Name()}, keysLeft(admin, s.Name()), "the number of permits is all that is left")
}

// Those who wait for the permits to be set are in the queue as well.
func TestFairSemaphoreAwaitsBeingSet(t *testing.T) {
	server, ctx := rig.Shared(), t.Context()
	admin, client := rig.NewAdmin(t, server), connect(t, server)
	s := client.NewFairSemaphore(rig.Name(t))
	_, err := s.Acquire(ctx)
	require.ErrorIs(t, err, latchkey.ErrNotSet)
	_, err = s.TryAcquire(ctx)
	require.ErrorIs(t, err, latchkey.ErrNotSet)
	first := queueForPermits(within(t, time.Minute), t, admin, s, 1, latchkey.AwaitSet())
	second := queueForPermits(within(t, time.Minute), t, admin, connect(t, server).NewFairSemaphore(s.Name()), 1, latchkey.AwaitSet())
	set, err := s.TrySetPermits(ctx, 1)
	require.NoError(t, err)
	require.True(t, set)
	got := rig.Await(t, soon, "the first", first)
	require.NoError(t, got.err)
	require.Empty(t, second)
	there, err := s.Delete(ctx)
	require.NoError(t, err)
	require.True(t, there)
	rest(100 * time.Millisecond)
	require.Empty(t, second, "it waits on")
	_, err = s.TrySetPermits(ctx, 1)
	require.NoError(t, err)
	got = rig.Await(t, soon, "the second", second)
	require.NoError(t, got.err)
	got.release(t)
}

// Waiters of a client share their queries, even while they wait for somebody to set the permits.
func TestFairSemaphoreAwaitersOfASetQueryTogether(t *testing.T) {
	rig.Need(t, rig.Stats)
	const waiters, stale = 60, 2 * time.Second
	server, ctx := rig.Shared(), within(t, time.Minute)
	admin := rig.NewAdmin(t, server)
	s := connect(t, server, latchkey.Options{Tuning: latchkey.Tuning{StaleWaiterTimeout: stale}}).NewFairSemaphore(rig.Name(t))
	var waiting []<-chan permitsGot
	for range waiters {
		waiting = append(waiting, queueForPermits(ctx, t, admin, s, 1, latchkey.AwaitSet()))
	}
	watch := admin.Watch()
	rest(3 * stale / 4) // two periods, in which commands are counted
	sent := 0
	for _, command := range watch.Stop() {
		if strings.Contains(strings.ToLower(command), "evalsha") && strings.Contains(command, s.Name()) {
			sent++
		}
	}
	assert.Less(t, sent, waiters, "each asks by itself")
	require.NoError(t, s.SetPermits(t.Context(), waiters))
	for _, w := range waiting {
		require.NoError(t, rig.Await(t, soon, "a waiter", w).err)
	}
}

// When a semaphore is deleted, its waiters end with ErrNotSet.
func TestFairSemaphoreDeletedUnderWaiters(t *testing.T) {
	server, ctx := rig.Shared(), t.Context()
	admin, client := rig.NewAdmin(t, server), connect(t, server)
	s := newFairPermits(t, client, 1)
	held, err := s.Acquire(ctx)
	require.NoError(t, err)
	waiters := []<-chan permitsGot{queueForPermits(ctx, t, admin, s, 1), queueForPermits(ctx, t, admin, connect(t, server).NewFairSemaphore(s.Name()), 1)}
	_, err = s.Delete(ctx)
	require.NoError(t, err)
	for _, w := range waiters {
		require.ErrorIs(t, rig.Await(t, soon, "a waiter", w).err, latchkey.ErrNotSet)
	}
	require.ErrorIs(t, held.Release(ctx), latchkey.ErrNotHeld)
	nothingWaits(t, admin, s.Name())
}

// Permits that are given back without regard to the queue also reach the waiters in it.
func TestFairSemaphoreBesideOthers(t *testing.T) {
	server, ctx := rig.Shared(), t.Context()
	admin, client := rig.NewAdmin(t, server), connect(t, server, seldom())
	s := newFairPermits(t, client, 1)
	plain := connect(t, server).NewPermitSemaphore(s.Name())
	ways := map[string]func(id string){
		"by its id":      func(id string) { _, err := s.Release(ctx, id); require.NoError(t, err) },
		"elsewhere":      func(id string) { _, err := plain.Release(ctx, id); require.NoError(t, err) },
		"one is added":   func(string) { require.NoError(t, s.AddPermits(ctx, 1)) },
		"more are set":   func(string) { require.NoError(t, plain.SetPermits(ctx, 3)) },
		"its lease ends": func(id string) { require.NoError(t, plain.SetLease(ctx, id, 500*time.Millisecond)) },
	}
	for how, give := range ways {
		require.NoError(t, s.SetPermits(ctx, 1))
		held, err := plain.Acquire(ctx)
		require.NoError(t, err)
		waiter := queueForPermits(within(t, time.Minute), t, admin, s, 1)
		grantable(t, admin, s.Name(), 1)
		give(held.ID())
		got := rig.Await(t, soon, how, waiter)
		require.NoError(t, got.err)
		got.release(t)
		_ = held.Release(ctx)
	}
}

// The end of a lease wakes waiters without any action of others.
func TestFairSemaphoreWakesAtTheEndOfALease(t *testing.T) {
	t.Parallel()
	server, ctx := rig.Shared(), t.Context()
	admin, client := rig.NewAdmin(t, server), connect(t, server, seldom())
	s := newFairPermits(t, client, 2)
	_, err := s.AcquireN(ctx, 2, latchkey.Lease(2*time.Second)) // while the waiters come
	require.NoError(t, err)
	first := queueForPermits(within(t, time.Minute), t, admin, s, 1)
	second := queueForPermits(within(t, time.Minute), t, admin, s, 1)
	for _, w := range []<-chan permitsGot{first, second} {
		got := rig.Await(t, soon, "a waiter", w)
		require.NoError(t, got.err)
		got.release(t)
	}
}

// Permits without expiry are passed on too, although no message grants them.
func TestFairSemaphorePermitsWithoutAnEnd(t *testing.T) {
	server, ctx := rig.Shared(), t.Context()
	admin, client := rig.NewAdmin(t, server), connect(t, server, seldom())
	s := newFairPermits(t, client, 1)
	held, err := s.Acquire(ctx, latchkey.Lease(latchkey.NoExpiry))
	require.NoError(t, err)
	waiter := queueForPermits(within(t, time.Minute), t, admin, s, 1, latchkey.Lease(latchkey.NoExpiry))
	rig.Eventually(t, soon, "its client listens", func() error {
		if admin.Subscribers(permitChannelOf(server, client, s.Name())) == 0 {
			return errors.New("it does not")
		}
		return nil
	})
	require.NoError(t, held.Release(ctx))
	got := rig.Await(t, soon, "the waiter", waiter)
	require.NoError(t, got.err)
	assert.Equal(t, latchkey.NoExpiry, got.permits[0].ValidFor())
	left, err := s.RemainingLease(ctx, got.permits[0].ID())
	require.NoError(t, err)
	assert.Equal(t, latchkey.NoExpiry, left)
	got.release(t)
}

// Permits that were granted to a waiter get the lease that it requested.
func TestFairSemaphoreLeaseOfAGrant(t *testing.T) {
	t.Parallel()
	server, ctx := rig.Shared(), t.Context()
	admin, client := rig.NewAdmin(t, server), connect(t, server)
	s := newFairPermits(t, client, 2)
	for _, options := range [][]latchkey.PermitOption{{latchkey.Lease(time.Minute)}, {}} {
		held, err := s.AcquireN(ctx, 2)
		require.NoError(t, err)
		waiter := queueForPermits(within(t, time.Minute), t, admin, s, 2, options...)
		grantable(t, admin, s.Name(), 1)
		permitsGot{permits: held}.release(t)
		got := rig.Await(t, soon, "the waiter", waiter)
		require.NoError(t, got.err)
		for _, p := range got.permits {
			rig.Eventually(t, soon, "its lease", func() error {
				left, err := s.RemainingLease(ctx, p.ID())
				if err == nil && left < 20*time.Second {
					err = fmt.Errorf("%v", left)
				}
				return err
			})
			require.NoError(t, p.Err())
		}
		got.release(t)
	}
}

func TestFairSemaphoreWaiters(t *testing.T) {
	server, ctx := rig.Shared(), t.Context()
	admin, client := rig.NewAdmin(t, server), connect(t, server, neverStale)
	s := newFairPermits(t, client, 3)
	list, err := s.Waiters(ctx)
	require.NoError(t, err)
	require.Empty(t, list)
	held, err := s.AcquireN(ctx, 3)
	require.NoError(t, err)
	var waiting []<-chan permitsGot
	for n := range 3 {
		waiting = append(waiting, queueForPermits(within(t, time.Minute), t, admin, s, n+1))
	}
	list, err = s.Waiters(ctx)
	require.NoError(t, err)
	require.Len(t, list, 3)
	everybody, err := client.Waiters(ctx, s.Name())
	require.NoError(t, err)
	require.Len(t, everybody, 3)
	object, err := client.Inspect(ctx, s.Name())
	require.NoError(t, err)
	assert.Equal(t, []any{latchkey.KindSemaphore, 3, 0, 3, 3}, []any{object.Kind, object.HolderCount, object.Available, object.Total, object.Queued})
	for n, w := range list {
		assert.Equal(t, n+1, w.Permits)
		assert.GreaterOrEqual(t, w.Age, time.Duration(0))
		assert.Equal(t, w.Owner, everybody[n].Owner)
		assertLeft(t, neverStale.Tuning.StaleWaiterTimeout, w.Alive)
	}
	permitsGot{permits: held}.release(t)
	for n, w := range waiting {
		got := rig.Await(t, soon, "a waiter", w)
		require.NoError(t, got.err)
		assert.Equal(t, list[n].Owner.String(), got.permits[0].ID())
		got.release(t)
	}
}

// Events of its permits have a kind of their own, and ids like those of other semaphores.
func TestFairSemaphoreEvents(t *testing.T) {
	events := make(chan latchkey.Event, 100)
	client := connect(t, rig.Shared(), latchkey.Options{Observer: func(e latchkey.Event) { events <- e }})
	s := newFairPermits(t, client, 1)
	permit, err := s.Acquire(t.Context())
	require.NoError(t, err)
	require.NoError(t, permit.Release(t.Context()))
	for _, want := range []latchkey.EventType{latchkey.EventAttempt, latchkey.EventAcquired, latchkey.EventReleased} {
		e := rig.Await(t, soon, "an event", events)
		assert.Equal(t, want, e.Type)
		assert.Equal(t, latchkey.KindFairPermit, e.Kind)
		assert.Equal(t, permit.ID(), e.Permit)
	}
}

func TestFairSemaphoreBadInput(t *testing.T) {
	ctx := t.Context()
	client := connect(t, rig.Shared())
	for _, name := range []string{"", "{x}", "a{b"} {
		s := client.NewFairSemaphore(name)
		_, err := s.Acquire(ctx)
		require.ErrorIs(t, err, latchkey.ErrInvalid, name)
		_, err = s.Waiters(ctx)
		require.ErrorIs(t, err, latchkey.ErrInvalid, name)
		_, err = statsOf(ctx, s)
		require.ErrorIs(t, err, latchkey.ErrInvalid, name)
	}
	s := client.NewFairSemaphore(rig.Name(t))
	for _, n := range []int{-1, 0, 1001} {
		_, err := s.AcquireN(ctx, n)
		require.ErrorIs(t, err, latchkey.ErrInvalid, n)
		_, err = s.TryAcquireN(ctx, n)
		require.ErrorIs(t, err, latchkey.ErrInvalid, n)
	}
	rig.NewAdmin(t, rig.Shared()).Do("SET", s.Name(), "no number of permits")
	_, err := s.Acquire(ctx)
	require.ErrorIs(t, err, latchkey.ErrWrongKind)
	_, err = s.TryAcquire(ctx)
	require.ErrorIs(t, err, latchkey.ErrWrongKind)
}
