package tests

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// What the holds of goroutines that read along share, and what they do not.

// Holds and their re-entries may be released in any order. Each hold keeps its own count.
func TestReadAlong_and_reentry(t *testing.T) {
	t.Parallel()
	r := newReaders(t, longTurn)
	for range rig.Sized(50) {
		outer := r.group(t, 3)
		var all []*latchkey.Hold
		root := map[*latchkey.Hold]int{}
		open := map[int]int{}
		for i, hold := range outer {
			all, root[hold], open[i] = append(all, hold), i, open[i]+1
			for range rand.N(3) {
				inner := mustReenter(t, hold, r.rw.Reader())
				all, root[inner], open[i] = append(all, inner), i, open[i]+1
			}
		}
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for n, hold := range all {
			for _, other := range all[n:] {
				require.NoError(t, other.Err())
				require.Equal(t, open[root[other]], countOf(other))
			}
			mustUnlock(t, hold)
			open[root[hold]]--
			require.ErrorIs(t, hold.Unlock(t.Context()), latchkey.ErrNotHeld)
		}
		r.requireFree(t)
	}
}

// Nobody re-enters a hold that has left a group, and callers that have its owner do not enter the
// remaining holds.
func TestReadAlong_a_hold_that_has_left(t *testing.T) {
	t.Parallel()
	r := newReaders(t, longTurn)
	holds := r.group(t, 2)
	work := holds[0].Context(t.Context())
	owner := holds[0].Share()
	inner := mustLock(t, r.rw.Reader(), latchkey.As(owner))
	assert.Equal(t, 2, countOf(holds[0]))
	assert.Equal(t, 1, countOf(holds[1]))
	mustUnlock(t, inner)
	mustUnlock(t, holds[0])
	assert.Equal(t, owner, holds[0].Owner())
	r.tap.Forget()
	again := mustLock(t, r.rw.Reader(), latchkey.As(owner))
	assert.Equal(t, 1, countOf(again), "a reader of its own")
	assert.Equal(t, 1, countOf(holds[1]))
	mustUnlock(t, again)
	_, err := r.rw.Reader().TryLock(work)
	require.ErrorIs(t, err, context.Canceled)
	_, err = r.rw.Writer().TryLock(context.WithoutCancel(work))
	require.ErrorIs(t, err, latchkey.ErrNotAcquired, "it reads no more, and waits as others do")
	_, err = r.rw.Writer().TryLock(holds[1].Context(t.Context()))
	require.ErrorIs(t, err, latchkey.ErrUpgrade)
	mustUnlock(t, holds[1])
	r.requireFree(t)
}

// When the server forgets the one reader that represents a group, all holds of the group are lost.
func TestReadAlong_is_lost_together(t *testing.T) {
	t.Parallel()
	for what, take := range map[string]func(t *testing.T, r *readers){
		"the keys are deleted": func(t *testing.T, r *readers) {
			t.Helper()
			admin := rig.NewAdmin(t, rig.Shared())
			for _, key := range admin.KeysOf(r.name) {
				admin.Do("DEL", key)
			}
		},
		"a forced unlock": func(t *testing.T, r *readers) {
			t.Helper()
			forced, err := connect(t, rig.Shared()).NewRWLock(r.name).Reader().ForceUnlock(t.Context())
			require.NoError(t, err)
			require.True(t, forced)
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			events := make(chan latchkey.Event, 1000)
			r := newReaders(t, latchkey.Options{Tuning: latchkey.Tuning{Turn: longestTurn}, Lease: 5 * time.Second, Observer: func(e latchkey.Event) { events <- e }})
			holds := r.group(t, 3)
			left := mustLock(t, r.rw.Reader())
			work := holds[2].Context(t.Context())
			mustUnlock(t, left)
			take(t, r)
			for _, hold := range holds {
				rig.Await(t, soon, "the loss", hold.Lost())
				require.ErrorIs(t, hold.Err(), latchkey.ErrLost)
				require.ErrorIs(t, hold.Unlock(t.Context()), latchkey.ErrLost)
			}
			rig.Await(t, soon, "the end of the work", work.Done())
			require.ErrorIs(t, context.Cause(work), latchkey.ErrLost)
			require.NotErrorIs(t, left.Err(), latchkey.ErrLost)
			for lost := 0; lost < len(holds); {
				if e := rig.Await(t, soon, "an event", events); e.Type == latchkey.EventLost {
					require.ErrorIs(t, e.Err, latchkey.ErrLost)
					require.Positive(t, e.Held)
					lost++
				}
			}
			mustUnlock(t, mustLock(t, r.rw.Writer()))
		})
	}
}

// The lease is renewed for as long as any remaining hold is one that is renewed.
func TestReadAlong_is_renewed(t *testing.T) {
	t.Parallel()
	const lease = 3 * time.Second
	r := newReaders(t, latchkey.Options{Tuning: latchkey.Tuning{Turn: longestTurn, PollCeiling: time.Second}, Lease: lease})
	holds := r.group(t, 3)
	mustUnlock(t, holds[0])
	mustUnlock(t, holds[2])
	awaitRenewals(t, 3, holds[1]) // one lease
	require.NoError(t, holds[1].Extend(t.Context(), time.Minute))
	require.Greater(t, holds[1].ValidFor(), lease)
	mustUnlock(t, holds[1])
	r.requireFree(t)
}

// A reader with a different limit or a known owner reads alone.
func TestReadAlong_is_for_those_who_ask_for_the_same(t *testing.T) {
	t.Parallel()
	lease, brief, limit := latchkey.Lease(time.Minute), latchkey.Lease(5*time.Second), latchkey.MaxHold(time.Minute)
	for what, is := range map[string]struct {
		options     latchkey.Options
		first, next []latchkey.LockOption
		during      func(t *testing.T, first *latchkey.Hold)
	}{
		"nothing is shared":    {options: latchkey.Options{Tuning: latchkey.Tuning{Turn: -1}}},
		"the turn is over":     {options: latchkey.Options{Tuning: latchkey.Tuning{Turn: time.Millisecond}}, during: func(*testing.T, *latchkey.Hold) { rest(2 * time.Millisecond) }},
		"a limit":              {first: []latchkey.LockOption{limit}},
		"a limit is asked":     {next: []latchkey.LockOption{limit}},
		"a lease":              {first: []latchkey.LockOption{lease}},
		"a lease is asked":     {next: []latchkey.LockOption{lease}},
		"the leases differ":    {first: []latchkey.LockOption{lease}, next: []latchkey.LockOption{latchkey.Lease(time.Hour)}},
		"the lease is longer":  {during: func(t *testing.T, h *latchkey.Hold) { t.Helper(); require.NoError(t, h.Extend(t.Context(), time.Hour)) }},
		"the owner is shared":  {during: func(_ *testing.T, h *latchkey.Hold) { _ = h.Share() }},
		"the lease is too old": {options: latchkey.Options{}, first: []latchkey.LockOption{brief}, next: []latchkey.LockOption{brief}, during: func(*testing.T, *latchkey.Hold) { rest(600 * time.Millisecond) }},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			options := is.options
			if options.Tuning.Turn == 0 {
				options.Tuning.Turn = longestTurn
			}
			r := newReaders(t, options)
			first := mustLock(t, r.rw.Reader(), is.first...)
			if is.during != nil {
				is.during(t, first)
			}
			next := mustLock(t, r.rw.Reader(), is.next...)
			require.Equal(t, 2, r.readersThere(t), "the server was asked for each")
			mustUnlock(t, first)
			require.NoError(t, next.Err())
			mustUnlock(t, next)
			r.requireFree(t)
		})
	}
}

// A chosen owner has its own reader on the server, and so has the owner of a write hold.
func TestReadAlong_is_not_for_chosen_owners(t *testing.T) {
	t.Parallel()
	r := newReaders(t, longTurn)
	chosen := mustLock(t, r.rw.Reader(), latchkey.As(r.client.NewOwner()))
	free := mustLock(t, r.rw.Reader())
	other := mustLock(t, r.rw.Reader(), latchkey.As(r.client.NewOwner()))
	require.Equal(t, 3, r.readersThere(t))
	for _, hold := range []*latchkey.Hold{chosen, free, other} {
		mustUnlock(t, hold)
	}
	r.requireFree(t)

	writer := mustLock(t, r.rw.Writer())
	nested := mustReenter(t, writer, r.rw.Reader())
	_, err := r.rw.Reader().TryLock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrNotAcquired, "somebody else writes")
	read, err := writer.Downgrade(t.Context())
	require.NoError(t, err)
	along := mustLock(t, r.rw.Reader())
	require.Equal(t, 2, r.readersThere(t), "beside a reader that has written")
	for _, hold := range []*latchkey.Hold{read, along, nested} {
		mustUnlock(t, hold)
	}
	r.requireFree(t)
}

// The members of a MultiLock read along with others, except with a limit that begins when all
// members are held.
func TestReadAlong_in_a_group(t *testing.T) {
	t.Parallel()
	r := newReaders(t, longTurn)
	lock := latchkey.NewMultiLock(r.rw.Reader(), r.client.NewLock(r.name+":other"))
	whole := mustLock(t, lock, latchkey.MaxHold(time.Hour))
	along := mustLock(t, r.rw.Reader())
	require.Equal(t, 2, r.readersThere(t))
	mustUnlock(t, whole)
	require.NoError(t, along.Err())
	whole = mustLock(t, lock, latchkey.MaxHold(time.Hour))
	require.Equal(t, 2, r.readersThere(t))
	mustUnlock(t, along)
	require.NoError(t, whole.Err())
	mustUnlock(t, whole)
	for began, there := time.Now(), 0; there != 1; began = time.Now() {
		whole, along = mustLock(t, lock), mustLock(t, r.rw.Reader())
		there = r.readersThere(t)
		require.True(t, there == 1 || time.Since(began) > longestTurn/2, "the turn lasts, and there are %d readers", there)
		mustUnlock(t, whole)
		mustUnlock(t, along)
	}
	r.requireFree(t)
}

// A failed release affects only the last hold: the holds that were released before it remain
// released.
func TestReadAlong_when_the_release_is_not_answered(t *testing.T) {
	t.Parallel()
	r := newReaders(t, longTurn)
	holds := r.group(t, 3)
	r.tap.Lose(1, rig.Mentions(r.name), rig.Cut)
	for _, hold := range holds {
		mustUnlock(t, hold)
	}
	rig.Eventually(t, soon, "it is free", free(rig.NewAdmin(t, rig.Shared()), r.name))
}

// Close ends all holds and all waits.
func TestReadAlong_and_Close(t *testing.T) {
	t.Parallel()
	r := newReaders(t, longTurn)
	holds := r.group(t, 3)
	writer := lockInBackground(within(t, soon), r.rw.Writer())
	require.NoError(t, r.client.Close(within(t, soon)))
	require.ErrorIs(t, rig.Await(t, soon, "the writer", writer).err, latchkey.ErrClosed)
	for _, hold := range holds {
		require.ErrorIs(t, hold.Err(), latchkey.ErrClosed)
		require.ErrorIs(t, hold.Unlock(t.Context()), latchkey.ErrClosed)
	}
	r.requireFree(t)
}

// Goroutines may arrive, re-enter, give up and leave while the client closes: nothing is left
// behind.
func TestReadAlong_while_the_client_closes(t *testing.T) {
	t.Parallel()
	for range rig.Sized(20) {
		r := newReaders(t, latchkey.Options{Tuning: latchkey.Tuning{Turn: time.Millisecond}})
		var all sync.WaitGroup
		started := make(chan struct{}, 1)
		for i := range 8 {
			all.Go(func() {
				for tries := 1; ; tries++ { // each wait is longer than the last, for as long as a busy machine needs
					lock := latchkey.Locker(r.rw.Reader())
					if i == 0 {
						lock = r.rw.Writer()
					}
					err := lock.Do(t.Context(), func(ctx context.Context) error {
						select {
						case started <- struct{}{}:
						default:
						}
						if inner, err := lock.TryLock(ctx); err == nil {
							return inner.Unlock(ctx)
						}
						return nil
					}, latchkey.Wait(time.Microsecond+rand.N(time.Duration(tries*tries)*time.Millisecond)))
					if errors.Is(err, latchkey.ErrClosed) {
						return
					}
				}
			})
		}
		rig.Await(t, time.Minute, "the first hold", started)
		rest(rand.N(5 * time.Millisecond))
		require.NoError(t, r.client.Close(within(t, soon)))
		all.Wait()
		require.False(t, rig.NewAdmin(t, rig.Shared()).Exists(r.name), "nobody holds it")
	}
}

// Each hold is reported as acquired and released, with the time for which it was held.
func TestReadAlong_is_observed(t *testing.T) {
	t.Parallel()
	events := make(chan latchkey.Event, 1000)
	r := newReaders(t, latchkey.Options{Tuning: latchkey.Tuning{Turn: longestTurn}, Observer: func(e latchkey.Event) {
		if e.Type != latchkey.EventAttempt && e.Type != latchkey.EventRenewed {
			events <- e
		}
	}})
	first := mustLock(t, r.rw.Reader())
	rest(50 * time.Millisecond)
	asked := time.Now()
	next := mustLock(t, r.rw.Reader())
	mustUnlock(t, first)
	mustUnlock(t, next)
	longest := time.Since(asked)
	var seen []latchkey.Event
	for range 4 {
		seen = append(seen, rig.Await(t, soon, "an event", events))
	}
	for i, want := range []latchkey.EventType{latchkey.EventAcquired, latchkey.EventAcquired, latchkey.EventReleased, latchkey.EventReleased} {
		assert.Equal(t, want, seen[i].Type)
		assert.Equal(t, latchkey.KindRead, seen[i].Kind)
	}
	assert.GreaterOrEqual(t, seen[2].Held, 50*time.Millisecond)
	assert.LessOrEqual(t, seen[3].Held, longest, "it came later")
}
