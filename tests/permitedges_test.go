package tests

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// A waiter for permits to be set polls as seldom as a waiter for permits.
func TestAwaitSetIsNoHotLoop(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	for _, what := range []string{"sem", "permit"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			tap := rig.NewTap(t, server)
			c := connectVia(t, server, tap.Addr())
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			name := rig.Name(t)
			go func() {
				if what == "sem" {
					done <- c.NewSemaphore(name).Acquire(ctx, latchkey.AwaitSet())
				} else {
					_, err := c.NewPermitSemaphore(name).Acquire(ctx, latchkey.AwaitSet())
					done <- err
				}
			}()
			awaitWaiter(t, rig.NewAdmin(t, server), name)
			quiet(t, tap)
			tap.Forget()
			began := time.Now()
			rest(300 * time.Millisecond)
			asked, polls := len(mentioning(tap, name)), int(time.Since(began)/defaultPollCeiling)+1
			cancel()
			require.ErrorIs(t, rig.Await(t, soon, "the end of the wait", done), context.Canceled)
			assert.LessOrEqual(t, asked, polls)
		})
	}
}

// An acquisition whose replies were lost for a while relies on the lease that the server actually
// gave, even if the first one had already ended. It does not outlive that.
func TestRepeatedAcquisitionKnowsItsLease(t *testing.T) {
	t.Parallel()
	const lease = 1500 * time.Millisecond
	for _, outage := range []time.Duration{lease / 3, lease * 6 / 5} {
		t.Run(outage.String(), func(t *testing.T) {
			t.Parallel()
			server := rig.Shared()
			s := newPermits(t, connect(t, server), 1)
			warm, err := s.Acquire(t.Context())
			require.NoError(t, err)
			require.NoError(t, warm.Release(t.Context()))
			tap := rig.NewTap(t, server)
			mine := connectVia(t, server, tap.Addr()).NewPermitSemaphore(s.Name())
			heal := tap.LoseAll(rig.Mentions(s.Name()), rig.Cut)
			time.AfterFunc(outage, heal)
			p, err := mine.Acquire(within(t, soon), latchkey.Lease(lease))
			require.NoError(t, err)
			asked, valid := time.Now(), p.ValidFor()
			left, err := s.RemainingLease(t.Context(), p.ID())
			t.Logf("valid for %v, the server says %v %v", valid, left, err)
			if err == nil {
				assert.LessOrEqual(t, valid, left+time.Since(asked)+time.Millisecond)
			} else {
				assert.ErrorIs(t, err, latchkey.ErrNotHeld)
				assert.Error(t, p.Err(), "the server does not know it any more")
			}
			other, err := s.Acquire(within(t, soon))
			require.NoError(t, err)
			assert.Error(t, p.Err(), "two hold the one permit")
			_ = other.Release(t.Context())
		})
	}
}

// No permits are kept for a request for more than there are.
func TestImpossibleRequestKeepsNobodyOut(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	options := latchkey.Options{Tuning: latchkey.Tuning{StaleWaiterTimeout: 500 * time.Millisecond}}
	s := newPermits(t, connect(t, server, options), 10)
	greedy := connect(t, server, options).NewPermitSemaphore(s.Name())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- firstOf(greedy.AcquireN(ctx, 20)) }()
	awaitWaiter(t, rig.NewAdmin(t, server), s.Name())
	// Permits that are kept for a waiter are kept for half of the time, beginning within this one.
	rig.Throughout(t, 2*options.Tuning.StaleWaiterTimeout, "10 of 10 are free", func() error {
		p, err := s.TryAcquire(t.Context())
		if err == nil {
			err = p.Release(t.Context())
		}
		return err
	})
	cancel()
	require.ErrorIs(t, rig.Await(t, soon, "the end of the wait", done), context.Canceled)
}

// A large request is not overtaken for as long as it waits, whatever its poll ceiling.
func TestALargeRequestKeepsItsPlace(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	options := latchkey.Options{Tuning: latchkey.Tuning{StaleWaiterTimeout: 1500 * time.Millisecond, PollCeiling: time.Hour}, Lease: 2 * time.Hour}
	s := newPermits(t, connect(t, server, options), 2)
	a, err := s.Acquire(t.Context())
	require.NoError(t, err)
	_, err = s.Acquire(t.Context())
	require.NoError(t, err)
	big := connect(t, server, options).NewPermitSemaphore(s.Name())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- firstOf(big.AcquireN(ctx, 2)) }()
	permitQueueLength(t, rig.NewAdmin(t, server), s.Name(), 1)
	require.NoError(t, a.Release(t.Context()))
	small := connect(t, server, options).NewPermitSemaphore(s.Name())
	rig.Throughout(t, 2*options.Tuning.StaleWaiterTimeout, "others are refused", func() error {
		p, err := small.TryAcquire(t.Context())
		if err == nil {
			return errors.Join(errors.New("it was overtaken"), p.Release(t.Context()))
		}
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		return nil
	})
	cancel()
	require.ErrorIs(t, rig.Await(t, soon, "the end of the wait", done), context.Canceled)
}

// When a lease is shortened, by its own process or by another, the waiters for its end wake.
func TestWaiterHearsOfAShorterLease(t *testing.T) {
	t.Parallel()
	for _, who := range []string{"its own process", "another"} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			server := rig.Shared()
			s := newPermits(t, connect(t, server, byMessages), 1)
			p, err := s.Acquire(t.Context(), latchkey.Lease(time.Hour))
			require.NoError(t, err)
			waiting := make(chan error, 1)
			client, attempts := connectRefused(t, server, byMessages)
			w := client.NewPermitSemaphore(s.Name())
			go func() { waiting <- firstOf(w.Acquire(within(t, soon))) }()
			atRest(t, attempts)
			if who == "another" {
				s = connect(t, server).NewPermitSemaphore(s.Name())
			}
			require.NoError(t, s.SetLease(t.Context(), p.ID(), time.Second))
			require.NoError(t, rig.Await(t, soon, "the waiter, without any other traffic", waiting))
		})
	}
}

// A copy of SetLease that is executed late, after the next SetLease, changes nothing.
func TestLateCopyOfALeaseChangesNothing(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	s := newPermits(t, connect(t, server), 1)
	p0, err := s.Acquire(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.SetLease(t.Context(), p0.ID(), time.Minute))
	require.NoError(t, p0.Release(t.Context()))
	tap := rig.NewTap(t, server)
	mine := connectVia(t, server, tap.Addr()).NewPermitSemaphore(s.Name())
	p, err := mine.Acquire(t.Context())
	require.NoError(t, err)
	first := tap.Lose(1, rig.Mentions(s.Name()), rig.CutRequest)
	require.NoError(t, mine.SetLease(t.Context(), p.ID(), time.Minute)) // the second copy is answered
	require.NoError(t, mine.SetLease(t.Context(), p.ID(), latchkey.NoExpiry))
	raw := server.Raw(t)
	raw.Do(t.Context(), raw.B().Arbitrary(rig.Await(t, soon, "the first copy", first).Args...).Build())
	left, err := s.RemainingLease(t.Context(), p.ID())
	require.NoError(t, err)
	assert.Equal(t, latchkey.NoExpiry, left)
}

// A copy of Delete that is executed late does not delete the next semaphore.
func TestLateCopyOfADeletion(t *testing.T) {
	server := rig.Shared()
	s := newSemaphore(t, connect(t, server), 5)
	_, err := s.Delete(t.Context())
	require.NoError(t, err)
	_, err = s.TrySetPermits(t.Context(), 5)
	require.NoError(t, err)
	tap := rig.NewTap(t, server)
	mine := connectVia(t, server, tap.Addr()).NewSemaphore(s.Name())
	first := tap.Lose(1, rig.Mentions(s.Name()), rig.CutRequest)
	_, err = mine.Delete(t.Context())
	require.NoError(t, err)
	_, err = mine.TrySetPermits(t.Context(), 7)
	require.NoError(t, err)
	raw := server.Raw(t)
	raw.Do(t.Context(), raw.B().Arbitrary(rig.Await(t, soon, "the first copy", first).Args...).Build())
	n, err := freeIn(t.Context(), mine)
	require.NoError(t, err)
	assert.Equal(t, 7, n)
}

// When permits were reclaimed for a request that is refused anyway, a message still announces them.
func TestPermitsPutBackAtARefusalAreAnnounced(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	s := newPermits(t, connect(t, server), 2)
	_, err := s.Acquire(t.Context())
	require.NoError(t, err)
	brief, err := s.Acquire(t.Context(), latchkey.Lease(time.Second))
	require.NoError(t, err)
	heard := subscribeRaw(t, server, semaphoreChannelOf(s.Name()))
	rig.Await(t, soon, "the end of the lease", brief.Lost())
	rig.Eventually(t, soon, "the message of the one that is available", func() error { // when it has ended on the server, too
		_, err := s.TryAcquireN(t.Context(), 2)
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		if len(heard) == 0 {
			return errors.New("nothing is heard")
		}
		return nil
	})
	assert.Equal(t, "1", <-heard)
}

// eventCounts counts events.
type eventCounts struct {
	mu sync.Mutex
	n  map[latchkey.EventType]int
}

func (e *eventCounts) count(x latchkey.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.n[x.Type]++
}

// Every acquired permit has its event, also when several are acquired at once.
func TestEventsOfPermits(t *testing.T) {
	server := rig.Shared()
	e := eventCounts{n: map[latchkey.EventType]int{}}
	client := connect(t, server, latchkey.Options{Observer: e.count})
	s := newPermits(t, client, 5)
	ps, err := s.AcquireN(t.Context(), 5)
	require.NoError(t, err)
	for _, p := range ps {
		require.NoError(t, p.Release(t.Context()))
	}
	require.NoError(t, client.Close(t.Context()), "which delivers all events")
	e.mu.Lock()
	defer e.mu.Unlock()
	assert.Equal(t, 5, e.n[latchkey.EventAcquired])
	assert.Equal(t, 5, e.n[latchkey.EventReleased])
}

// When Redisson has removed the TTL of the number of permits, the ids lose theirs too.
func TestIdsLiveAsLongAsTheirNumber(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	admin := rig.NewAdmin(t, server)
	s := connect(t, server).NewPermitSemaphore(rig.Name(t))
	_, err := s.TrySetPermits(t.Context(), 3, latchkey.TTL(time.Minute))
	require.NoError(t, err)
	_, err = s.Acquire(t.Context())
	require.NoError(t, err)
	assert.InDelta(t, time.Minute, admin.PTTL(idsOf(s.Name())), float64(30*time.Second), "they had one")
	admin.Do("SET", s.Name(), "4") // Redisson's addPermits(2)
	_, err = s.Acquire(t.Context())
	require.NoError(t, err)
	for _, key := range []string{s.Name(), idsOf(s.Name())} {
		assert.Equal(t, rig.NoTTL, admin.PTTL(key), key)
	}
	stats, err := statsOf(t.Context(), s)
	require.NoError(t, err)
	assert.Equal(t, 5, stats.Total)
}

// An id that is named twice is released once.
func TestIDNamedTwiceIsReleasedOnce(t *testing.T) {
	server := rig.Shared()
	s := newPermits(t, connect(t, server), 5)
	ps, err := s.AcquireN(t.Context(), 2)
	require.NoError(t, err)
	st, err := s.Release(t.Context(), ps[0].ID(), ps[0].ID())
	assert.ErrorIs(t, err, latchkey.ErrNotHeld)
	assert.Equal(t, []latchkey.PermitState{latchkey.PermitReleased, latchkey.PermitUnknown}, st)
	st, err = connect(t, server).NewPermitSemaphore(s.Name()).Release(t.Context(), ps[1].ID(), ps[1].ID())
	assert.ErrorIs(t, err, latchkey.ErrNotHeld)
	assert.Equal(t, []latchkey.PermitState{latchkey.PermitReleased, latchkey.PermitUnknown}, st)
}

// SetLease does not succeed on a permit that was lost before the reply came.
func TestLeaseOfAPermitThatIsLost(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	s0 := newPermits(t, connect(t, server), 1)
	tap := rig.NewTap(t, server)
	s := connectVia(t, server, tap.Addr()).NewPermitSemaphore(s0.Name())
	p, err := s.Acquire(t.Context(), latchkey.Lease(time.Second))
	require.NoError(t, err)
	held := tap.HoldReply(rig.Mentions(s.Name()))
	done := make(chan error, 1)
	go func() { done <- s.SetLease(t.Context(), p.ID(), time.Minute) }()
	rig.Await(t, soon, "loss", p.Lost())
	held.Release()
	assert.Error(t, rig.Await(t, soon, "the end of the call", done), "the permit says %v", p.Err())
}

// A permit whose release has failed is no longer held: the background repeats the release. So its
// lease cannot be set, and its release by id is the same release.
func TestPermitWhoseReleaseHasFailed(t *testing.T) {
	t.Parallel()
	for sort, open := range ttlPools {
		for what, meanwhile := range map[string]func(ctx context.Context, t *testing.T, s ttlPool, id string){
			"its lease is set": func(ctx context.Context, t *testing.T, s ttlPool, id string) {
				require.ErrorIs(t, s.SetLease(ctx, id, time.Minute), latchkey.ErrNotHeld)
			},
			"it is released by its id": func(ctx context.Context, t *testing.T, s ttlPool, id string) {
				states, err := s.Release(ctx, id)
				require.ErrorIs(t, err, latchkey.ErrUnknownOutcome)
				assert.Equal(t, []latchkey.PermitState{latchkey.PermitUndecided}, states)
			},
		} {
			t.Run(sort+", "+what, func(t *testing.T) {
				t.Parallel()
				server, name, ctx := rig.Shared(), rig.Name(t), within(t, time.Minute)
				tap, ends := rig.NewTap(t, server), make(chan latchkey.Event, 10)
				options := latchkey.Options{RetryBudget: brief.RetryBudget, Observer: func(e latchkey.Event) {
					if e.Type == latchkey.EventLost || e.Type == latchkey.EventReleased {
						ends <- e
					}
				}}
				s := open(connectVia(t, server, tap.Addr(), options), name)
				require.NoError(t, firstOf(s.TrySetPermits(ctx, 1)))
				p, err := s.Acquire(ctx, latchkey.Lease(time.Hour))
				require.NoError(t, err)
				heal := tap.Refuse(func(c rig.Command) bool { return c.Script() == "permit/leave" }, "LOADING wait")
				require.ErrorIs(t, p.Release(ctx), latchkey.ErrUnknownOutcome)
				meanwhile(ctx, t, s, p.ID())
				heal()
				assert.Equal(t, latchkey.EventReleased, rig.Await(t, soon, "the end", ends).Type, "it is not lost")
				require.NoError(t, firstOf(s.TryAcquire(ctx)))
			})
		}
	}
}

// Waiters of one client share the notes of operations.
func TestNotesAreFew(t *testing.T) {
	server := rig.Shared()
	admin := rig.NewAdmin(t, server)
	c := connect(t, server)
	s := newSemaphore(t, c, 1)
	all := rig.Goroutines(t)
	require.NoError(t, s.Acquire(t.Context()))
	for range 300 {
		all.Go(func() {
			assert.NoError(t, s.Acquire(context.Background()))
			assert.NoError(t, s.Release(context.Background()))
		})
	}
	rest(200 * time.Millisecond)
	require.NoError(t, s.Release(t.Context()))
	all.Wait()
	assert.Less(t, len(admin.Keys("latchkey_op:{"+s.Name()+"}*")), 50)
}

// The last of two leases counts, even if the first has no end.
func TestLastLeaseOfAPermitCounts(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	s := connect(t, server).NewPermitSemaphore(name)
	require.NoError(t, s.SetPermits(t.Context(), 1))
	p, err := s.Acquire(t.Context(), latchkey.Lease(latchkey.NoExpiry), latchkey.Lease(20*time.Second))
	require.NoError(t, err)
	left, err := s.RemainingLease(t.Context(), p.ID())
	require.NoError(t, err)
	assert.LessOrEqual(t, left, 20*time.Second)
	assert.LessOrEqual(t, p.ValidFor(), 20*time.Second)
	require.NoError(t, p.Release(t.Context()))
}
