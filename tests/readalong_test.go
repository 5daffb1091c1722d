package tests

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// Goroutines of one client read along with each other: they share one reader on the server.

// readers is a client with a read/write lock whose goroutines read along, and a tap on its
// commands.
type readers struct {
	client *latchkey.Client
	tap    *rig.Tap
	rw     *latchkey.RWLock
	name   string
}

func newReaders(t *testing.T, options latchkey.Options) *readers {
	t.Helper()
	r := &readers{tap: rig.NewTap(t, rig.Shared()), name: rig.Name(t)}
	r.client = connectVia(t, rig.Shared(), r.tap.Addr(), options)
	r.rw = r.client.NewRWLock(r.name)
	mustUnlock(t, mustLock(t, connect(t, rig.Shared()).NewRWLock(r.name).Reader())) // this loads the scripts
	return r
}

// sent returns how many commands were sent for the lock.
func (r *readers) sent() int { return len(mentioning(r.tap, r.name)) }

// group returns n holds for which only one command was sent.
func (r *readers) group(t *testing.T, n int, options ...latchkey.LockOption) []*latchkey.Hold {
	t.Helper()
	for {
		r.tap.Forget()
		began := time.Now()
		var holds []*latchkey.Hold
		for range n {
			holds = append(holds, mustLock(t, r.rw.Reader(), options...))
		}
		if r.sent() == 1 {
			r.tap.Forget()
			return holds
		}
		require.Greater(t, time.Since(began), longestTurn/2, "the turn lasts, and %d commands were sent", r.sent())
		for _, hold := range holds {
			mustUnlock(t, hold)
		}
	}
}

// readersThere returns how many readers the server has.
func (r *readers) readersThere(t *testing.T) int {
	t.Helper()
	i, err := r.client.Inspect(t.Context(), r.name)
	require.NoError(t, err)
	return len(i.Holders)
}

func (r *readers) requireFree(t *testing.T) {
	t.Helper()
	// An attempt that was given up while its command was in flight is undone shortly afterwards.
	rig.Eventually(t, soon, "nobody holds it", free(rig.NewAdmin(t, rig.Shared()), r.name))
}

// One command lets any number of goroutines in, and one command ends the last hold, in whatever
// order they leave. Each hold counts separately.
func TestReadAlong(t *testing.T) {
	t.Parallel()
	r := newReaders(t, longTurn)
	admin := rig.NewAdmin(t, rig.Shared())
	for range rig.Sized(20) {
		holds := r.group(t, 5)
		i, err := r.client.Inspect(t.Context(), r.name)
		require.NoError(t, err)
		require.Len(t, i.Holders, 1, "one reader stands for all")
		require.Equal(t, 1, i.Holders[0].Count)
		r.tap.Forget()
		rand.Shuffle(len(holds), func(i, j int) { holds[i], holds[j] = holds[j], holds[i] })
		var contexts []context.Context
		for _, hold := range holds {
			contexts = append(contexts, hold.Context(t.Context()))
		}
		for n, hold := range holds {
			require.NoError(t, hold.Err())
			require.Equal(t, 1, countOf(hold))
			require.Positive(t, hold.ValidFor())
			require.NoError(t, contexts[n].Err())
			require.Zero(t, r.sent())
			require.True(t, admin.Exists(r.name))
			mustUnlock(t, hold)
			require.ErrorIs(t, hold.Err(), latchkey.ErrNotHeld)
			require.ErrorIs(t, hold.Unlock(t.Context()), latchkey.ErrNotHeld)
			require.ErrorIs(t, context.Cause(contexts[n]), latchkey.ErrNotHeld)
			require.ErrorIs(t, hold.Extend(t.Context(), time.Minute), latchkey.ErrNotHeld)
			require.Zero(t, countOf(hold))
			require.Zero(t, hold.ValidFor())
		}
		require.Equal(t, 1, r.sent(), "the release of the last")
		r.requireFree(t)
	}
}

// Readers that wait for a writer come in together, with the first of them that the server lets in,
// even if that one leaves at once.
func TestReadAlong_after_a_write(t *testing.T) {
	t.Parallel()
	const n = 20
	r := newReaders(t, longTurn)
	writer := mustLock(t, connect(t, rig.Shared()).NewRWLock(r.name).Writer())
	done := make(chan error, n)
	for range n {
		waiting := newWaitingContext(within(t, soon))
		go func() { done <- r.rw.Reader().Do(waiting, func(context.Context) error { return nil }) }()
		rig.Await(t, soon, "the call waits", waiting.waits)
	}
	awaitWaiter(t, rig.NewAdmin(t, rig.Shared()), r.name)
	r.tap.Forget()
	mustUnlock(t, writer)
	for range n {
		require.NoError(t, rig.Await(t, soon, "a reader", done))
	}
	t.Logf("%d commands", r.sent())
	require.Less(t, r.sent(), n/2, "an attempt or two, and a release")
	r.requireFree(t)
}

// overlap has readers come and go without end, each before the previous one has left if the lock
// allows it. It stops with ctx, and returns how many readers there were.
func (r *readers) overlap(ctx context.Context) (reads int, err error) {
	var hold *latchkey.Hold
	for ctx.Err() == nil && err == nil {
		next, tried := r.rw.Reader().TryLock(ctx)
		if hold != nil {
			err = hold.Unlock(context.WithoutCancel(ctx))
		}
		if tried != nil { // a writer goes first
			next, tried = r.rw.Reader().Lock(ctx)
		}
		hold, err = next, errors.Join(err, tried)
		reads++
	}
	if ctx.Err() != nil {
		err = nil
	}
	if hold != nil {
		err = errors.Join(err, hold.Unlock(context.WithoutCancel(ctx)))
	}
	return reads, err
}

// However many reads there are, each turn costs two commands.
func TestReadAlong_costs_two_commands_a_turn(t *testing.T) {
	t.Parallel()
	r := newReaders(t, latchkey.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
	defer cancel()
	began := time.Now()
	all := rig.Goroutines(t)
	var reads atomic.Int64
	for range 4 {
		all.Go(func() {
			n, err := r.overlap(ctx)
			assert.NoError(t, err)
			reads.Add(int64(n))
		})
	}
	all.Wait()
	turns := int(time.Since(began)/defaultTurn) + 1
	t.Logf("%d reads, %d commands, %d turns", reads.Load(), r.sent(), turns)
	// At the end of a turn, each goroutine may find that nobody has begun the next one.
	assert.LessOrEqual(t, r.sent(), 2*4*turns)
	r.requireFree(t)
}

// turns counts the turns of readers that begin while a writer is known to wait.
type turns struct {
	waits          bool
	begun, longest int
}

func (c *turns) observe(e latchkey.Event) {
	switch {
	case e.Type != latchkey.EventAttempt:
	case e.Kind == latchkey.KindWrite:
		c.waits = e.Err != nil
		c.begun = 0
	case e.Err == nil && c.waits:
		c.begun++
		c.longest = max(c.longest, c.begun)
	}
}

// Readers that come and go without end, and overlap, let a writer in after their turn: once the
// server knows that a writer waits, it admits no more of them.
func TestReadAlong_lets_writers_in(t *testing.T) {
	t.Parallel()
	for what, local := range map[string]bool{"of the same client": true, "of another client": false} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			var seen turns
			r := newReaders(t, latchkey.Options{Observer: seen.observe})
			rw := connect(t, rig.Shared()).NewRWLock(r.name)
			if local {
				rw = r.rw
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			stopped := make(chan error, 1)
			go func() {
				_, err := r.overlap(ctx)
				stopped <- err
			}()
			longest := time.Duration(0)
			for range rig.Sized(30) {
				rig.Eventually(t, soon, "somebody reads", func() error {
					if r.readersThere(t) == 0 {
						return errors.New("nobody")
					}
					return nil
				})
				asked := time.Now()
				hold := mustLock(t, rw.Writer())
				longest = max(longest, time.Since(asked))
				mustUnlock(t, hold)
			}
			cancel()
			require.NoError(t, rig.Await(t, soon, "the readers", stopped))
			require.NoError(t, r.client.Close(within(t, soon))) // which delivers all events
			t.Logf("the longest wait: %v", longest)
			assert.LessOrEqual(t, seen.longest, 1, "one may have been let in before, and be told of it after")
		})
	}
}

// Nobody reads while somebody writes, and there is only one writer.
func TestReadAlong_exclusion(t *testing.T) {
	t.Parallel()
	for _, turn := range []time.Duration{time.Millisecond, defaultTurn, 100 * time.Millisecond} {
		t.Run(turn.String(), func(t *testing.T) {
			t.Parallel()
			const writing = 1000
			name := rig.Name(t)
			ctx := within(t, 2*time.Minute)
			var inside, reads, writes atomic.Int64
			all := rig.Goroutines(t)
			stay := func(weight int64, allowed func(int64) bool, count *atomic.Int64) {
				if in := inside.Add(weight); !allowed(in) {
					t.Errorf("%d are inside", in)
				}
				for range rand.N(3) {
					rest(rand.N(200 * time.Microsecond))
				}
				inside.Add(-weight)
				count.Add(1)
			}
			for range 3 {
				rw := connect(t, rig.Shared(), latchkey.Options{Tuning: latchkey.Tuning{Turn: turn}}).NewRWLock(name)
				for range 4 {
					all.Go(func() {
						for end := time.Now().Add(rig.Lasting(time.Second)); time.Now().Before(end); {
							lock, weight, allowed, count := latchkey.Locker(rw.Reader()), int64(1), func(n int64) bool { return n < writing }, &reads
							if rand.N(10) == 0 {
								lock, weight, allowed, count = rw.Writer(), writing, func(n int64) bool { return n == writing }, &writes
							}
							assert.NoError(t, lock.Do(ctx, func(context.Context) error { stay(weight, allowed, count); return nil }))
						}
					})
				}
			}
			all.Wait()
			t.Logf("%d reads, %d writes", reads.Load(), writes.Load())
			rig.Eventually(t, soon, "nobody is left", free(rig.NewAdmin(t, rig.Shared()), name))
		})
	}
}

// Nobody sleeps until its next poll while others come and go: a message announces every change that
// a waiter waits for.
func TestReadWrite_wakes_everybody(t *testing.T) {
	t.Parallel()
	name, ends := rig.Name(t), time.Now().Add(rig.Lasting(2*time.Second))
	ctx := within(t, time.Minute)
	var longest atomic.Int64
	all := rig.Goroutines(t)
	for range 4 {
		rw := connect(t, rig.Shared(), byMessages).NewRWLock(name)
		for range 4 {
			all.Go(func() {
				for time.Now().Before(ends) {
					lock := latchkey.Locker(rw.Reader())
					if rand.N(10) == 0 {
						lock = rw.Writer()
					}
					began := time.Now()
					if err := lock.Do(ctx, func(context.Context) error {
						longest.Store(max(longest.Load(), int64(time.Since(began))))
						return nil
					}); !assert.NoError(t, err) {
						return
					}
				}
			})
		}
	}
	all.Wait()
	t.Logf("the longest wait: %v", time.Duration(longest.Load()))
}
