package tests

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// failoverBarrier is a barrier during failovers: parties of two clients go through generations
// without end.
type failoverBarrier struct {
	c        *failoverSeries
	barriers []*latchkey.Barrier
	last     atomic.Int64 // when somebody went on, in Unix nanoseconds
}

func newFailoverBarrier(c *failoverSeries) *failoverBarrier {
	name := c.prefix + "barrier"
	return &failoverBarrier{c: c, barriers: []*latchkey.Barrier{c.a.NewBarrier(name, 2), c.b.NewBarrier(name, 2)}}
}

// churn is one party. After a broken generation it goes on with the next one.
func (p *failoverBarrier) churn(ctx context.Context, i int) {
	for ctx.Err() == nil {
		_, err := p.barriers[i].Await(ctx, latchkey.Wait(p.c.options.Lease))
		if err == nil {
			p.last.Store(time.Now().UnixNano())
		} else {
			rest(10 * time.Millisecond)
		}
	}
}

// wantProgress waits until a party goes on after the given time.
func (p *failoverBarrier) wantProgress(after time.Time) {
	p.c.t.Helper()
	rig.Eventually(p.c.t, p.c.options.Lease+soon, "parties go on again", func() error {
		if p.last.Load() < after.UnixNano() {
			return errors.New("none has")
		}
		return nil
	})
}

// arrives lets a party wait through a failover. The function that it returns lets the other party
// arrive, and checks that both go on together: in that generation, or in a later one if the
// failover lost it.
func (p *failoverBarrier) arrives(name string) (end func()) {
	ctx := within(p.c.t, 3*time.Minute)
	first, second := p.c.a.NewBarrier(name, 2), p.c.b.NewBarrier(name, 2)
	waiting := make(chan arrival, 1)
	go func() { waiting <- p.insist(ctx, first) }()
	atBarrier(p.c.t, second, 1)
	return func() {
		got := p.insist(ctx, second)
		require.NoError(p.c.t, got.err)
		other := rig.Await(p.c.t, p.c.options.Lease+soon, "the party that waited", waiting)
		require.NoError(p.c.t, other.err)
		assert.Equal(p.c.t, other.Generation, got.Generation)
		assert.NotEqual(p.c.t, other.Index, got.Index)
	}
}

// insist awaits a barrier until a generation is complete.
func (p *failoverBarrier) insist(ctx context.Context, b *latchkey.Barrier) arrival {
	for {
		a, err := b.Await(ctx)
		if err == nil || ctx.Err() != nil {
			return arrival{a, err}
		}
		if !errors.Is(err, latchkey.ErrUnavailable) {
			assert.ErrorIs(p.c.t, err, latchkey.ErrBroken)
		}
	}
}

// loseTheEnd prepares a failover in which the next master knows fewer arrivals than there were:
// only that of the party waiting, which uses the next master from then on.
func loseTheEnd(t *testing.T, parties int) (f *failover, old, next *latchkey.Barrier, waiting <-chan arrival) {
	t.Helper()
	f = newLockFailover(t, fencedKind)
	tap := rig.NewTap(t, f.Master)
	open := func(server *rig.Server, addr string) *latchkey.Barrier {
		return connectVia(t, server, addr, polling).NewBarrier(f.name, parties)
	}
	old, next = open(f.Master, f.tap().Addr()), open(f.Replicas[0], f.Replicas[0].Addr())
	waiting = arriveInBackground(within(t, time.Minute), open(f.Master, tap.Addr()))
	atBarrier(t, old, 1)
	f.fallBehind()
	tap.Redirect(f.Replicas[0])
	return f, old, next, waiting
}

// A generation whose arrivals are lost is broken for the waiting parties as soon as they query the
// server.
func TestFailover_that_loses_a_barrier(t *testing.T) {
	t.Parallel()
	f := newLockFailover(t, fencedKind)
	b := connectVia(t, f.Master, f.tap().Addr(), polling).NewBarrier(f.name, 3)
	f.fallBehind()
	ctx := within(t, time.Minute)
	all := []<-chan arrival{arriveInBackground(ctx, b), arriveInBackground(ctx, b)}
	atBarrier(t, b, 2)
	f.over()
	for _, each := range all {
		requireBroken(t, rig.Await(t, soon, "a party", each).err, "the server lost the generation")
	}
	completes(t, b)
}

// An arrival that the next master does not know breaks the generation that it does know, for all
// parties. Otherwise they would wait for a party that has already arrived.
func TestFailover_that_loses_an_arrival(t *testing.T) {
	t.Parallel()
	f, old, next, waiting := loseTheEnd(t, 3)
	lost := arriveInBackground(within(t, time.Minute), old)
	atBarrier(t, old, 2)
	f.over()
	requireBroken(t, rig.Await(t, soon, "who is not known", lost).err, "the server lost the generation")
	requireBroken(t, rig.Await(t, soon, "who is", waiting).err, "the server lost the generation")
	completes(t, next)
}

// The next master brings back a generation that was complete. A party that already went on does not
// complete it again. It breaks that generation for its waiting parties, and all meet in a later
// one.
func TestFailover_that_loses_the_end_of_a_generation(t *testing.T) {
	t.Parallel()
	f, old, next, waiting := loseTheEnd(t, 2)
	went, err := old.Await(within(t, soon))
	require.NoError(t, err)
	require.True(t, went.Last())
	f.over()
	atBarrier(t, next, 1)
	again := arriveInBackground(within(t, time.Minute), old)
	requireBroken(t, rig.Await(t, soon, "who waits", waiting).err, "the server lost the generation")
	other, err := next.Await(within(t, soon))
	require.NoError(t, err)
	got := rig.Await(t, soon, "who went on before", again)
	require.NoError(t, got.err)
	assert.Equal(t, other.Generation, got.Generation)
	assert.Greater(t, got.Generation, went.Generation)
}

// moveHalf moves some keys of a slot. The function that it returns moves the others.
func moveHalf(cluster *rig.Cluster, name string, which func(key string) bool) (finish func()) {
	moveKeys, end := cluster.BeginMove(name)
	moveKeys(which)
	return func() {
		moveKeys(rig.EveryKey)
		end()
	}
}

// movingBarrier is a barrier whose slot moves.
type movingBarrier struct {
	half          string
	first, second *latchkey.Barrier
	waiting, late <-chan arrival
	finish        func() // the move
}

// arriveUntilMet arrives in another goroutine, and again if the generation breaks because a party
// was not renewed for a lease.
func arriveUntilMet(ctx context.Context, t *testing.T, b *latchkey.Barrier, brokenAfter time.Time) <-chan arrival {
	t.Helper()
	done := make(chan arrival, 1)
	rig.Goroutines(t).Go(func() {
		for {
			a, err := b.Await(ctx)
			if !errors.Is(err, latchkey.ErrBroken) {
				done <- arrival{a, err}
				return
			}
			assert.True(t, time.Now().After(brokenAfter), "until then no party need be renewed")
			assert.ErrorContains(t, err, "ran out")
		}
	})
	return done
}

// While the slot of a barrier moves, parties can arrive and go on, or they wait until it has moved.
// A generation breaks if its parties cannot be renewed for a lease. Nobody hangs.
func TestMigration_of_a_barrier(t *testing.T) {
	rig.Long(t)
	t.Parallel()
	const lease = 3 * time.Second
	cluster, ctx := rig.NewCluster(t), within(t, 3*time.Minute)
	for _, pause := range []time.Duration{lease / 4, 2 * lease} {
		var all []*movingBarrier
		brokenAfter := time.Now().Add(lease)
		for half, which := range halves() {
			name := "{" + rig.Name(t) + "}:phase"
			open := func() *latchkey.Barrier {
				return connectCluster(t, cluster, latchkey.Options{Lease: lease, Tuning: latchkey.Tuning{PollCeiling: time.Second}}).NewBarrier(name, 2)
			}
			b := &movingBarrier{half: fmt.Sprint(half, " for ", pause), first: open(), second: open()}
			b.waiting = arriveUntilMet(ctx, t, b.first, brokenAfter)
			atBarrier(t, b.second, 1)
			b.finish = moveHalf(cluster, name, which)
			all = append(all, b)
		}
		rest(pause)
		for _, b := range all {
			b.late = arriveUntilMet(ctx, t, b.second, brokenAfter)
		}
		for _, b := range all {
			b.finish()
		}
		for _, b := range all {
			one := rig.Await(t, lease+2*soon, b.half+": the party that waits", b.waiting)
			other := rig.Await(t, 2*soon, b.half+": the party that comes", b.late)
			require.NoError(t, one.err, b.half)
			require.NoError(t, other.err, b.half)
			assert.Equal(t, one.Generation, other.Generation, b.half)
			completes(t, b.second)
		}
	}
}
