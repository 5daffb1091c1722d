package tests

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// insider is a party of a Do in the background, whose function stays inside until it is sent away,
// or its test is over.
type insider struct {
	ctx     context.Context // of the function, once it has begun
	entered chan context.Context
	goes    chan error // what the function returns
	done    chan error // the outcome of Do
}

func goInside(ctx context.Context, b *latchkey.Barrier, options ...latchkey.WaitOption) *insider {
	i := &insider{entered: make(chan context.Context, 1), goes: make(chan error, 1), done: make(chan error, 1)}
	go func() {
		i.done <- b.Do(ctx, func(inside context.Context) error {
			i.entered <- inside
			select {
			case err := <-i.goes:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		}, options...)
	}()
	return i
}

// isIn waits until the function has begun.
func (i *insider) isIn(t *testing.T) {
	t.Helper()
	i.ctx = rig.Await(t, soon, "the function begins", i.entered)
}

func (i *insider) outcome(t *testing.T) error {
	t.Helper()
	return rig.Await(t, soon, "Do", i.done)
}

// leaves has the function return, and returns the outcome of Do.
func (i *insider) leaves(t *testing.T) error {
	t.Helper()
	i.goes <- nil
	return i.outcome(t)
}

// endsBroken checks that the context of the function ends because the generation is broken.
func (i *insider) endsBroken(t *testing.T, how string) {
	t.Helper()
	rig.Await(t, soon, "the end of the context of the function", i.ctx.Done())
	require.ErrorIs(t, context.Cause(i.ctx), latchkey.ErrBroken)
	assert.ErrorContains(t, context.Cause(i.ctx), how)
}

// allInside returns one party for each barrier. All have begun their functions.
func allInside(t *testing.T, barriers ...*latchkey.Barrier) []*insider {
	t.Helper()
	var all []*insider
	for _, b := range barriers {
		all = append(all, goInside(within(t, 3*soon), b))
	}
	for _, each := range all {
		each.isIn(t)
	}
	return all
}

// doesComplete checks that Do works: all parties enter and leave.
func doesComplete(t *testing.T, b *latchkey.Barrier) {
	t.Helper()
	all := allInside(t, slices.Repeat([]*latchkey.Barrier{b}, b.Parties())...)
	for _, each := range all {
		each.goes <- nil
	}
	for _, each := range all {
		require.NoError(t, each.outcome(t))
	}
}

// A party that is stopped when the first generation is complete, and has not learned that, is in
// the second one. That does not complete without it, and breaks if it is killed.
func TestBarrierDoOfASlowParty(t *testing.T) {
	t.Parallel()
	for killed, lease := range map[bool]time.Duration{false: time.Hour, true: 3 * time.Second} {
		t.Run(fmt.Sprint("killed ", killed), func(t *testing.T) {
			t.Parallel()
			server := rig.Shared()
			b := connect(t, server, onlyMessages).NewBarrier(rig.Name(t), 2)
			child := barrierDoer.Start(t, b.Name(), server.Ticket(), "2", "return", lease.String())
			atBarrier(t, b, 1)
			child.Stop(t)
			fast := goInside(within(t, 3*soon), b)
			fast.isIn(t)
			fast.goes <- nil
			who := atBarrier(t, b, 1).Who
			require.Len(t, who, 2)
			assert.NotEqual(t, who[0].Running, who[1].Running, "one has returned")
			assert.Empty(t, fast.done)
			if killed {
				child.Kill()
				requireBroken(t, fast.outcome(t), "ran out")
			} else {
				child.Continue(t)
				child.Line(t, soon, "inside")
				require.NoError(t, fast.outcome(t))
				assert.Equal(t, "<nil>", child.Line(t, soon, "ended"))
			}
			doesComplete(t, b)
		})
	}
}

// Close breaks the generation at once, even if the function goes on, and does not wait for the
// function.
func TestBarrierDoClosedInside(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	b := connect(t, server, onlyPolls).NewBarrier(rig.Name(t), 2)
	client, closeAll, err := dial(server, server.Addr(), latchkey.Options{})
	require.NoError(t, err)
	all := allInside(t, b, client.NewBarrier(b.Name(), 2))
	require.NoError(t, closeAll(within(t, soon)))
	assert.ErrorIs(t, context.Cause(all[1].ctx), latchkey.ErrClosed)
	all[0].endsBroken(t, "was closed")
	requireBroken(t, all[0].leaves(t), "was closed")
	err = all[1].leaves(t)
	require.ErrorIs(t, err, latchkey.ErrClosed)
	assert.NotErrorIs(t, err, latchkey.ErrBroken)
	doesComplete(t, b)
}

// Reset breaks the generation for those inside and those that wait.
func TestBarrierDoReset(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	b := connect(t, server, onlyPolls).NewBarrier(rig.Name(t), 2)
	all := allInside(t, b, connect(t, server, onlyMessages).NewBarrier(b.Name(), 2))
	all[1].goes <- nil
	atBarrier(t, b, 1)
	require.NoError(t, b.Reset(t.Context()))
	requireBroken(t, all[1].outcome(t), "it was reset")
	all[0].endsBroken(t, "it was reset")
	next := connect(t, server, onlyPolls).NewBarrier(b.Name(), 3)
	first := goInside(within(t, 3*soon), next)
	atBarrier(t, next, 1)
	requireBroken(t, all[0].leaves(t), "it was reset")
	assert.Equal(t, 1, atBarrier(t, next, 1).Waiting, "a party of the broken generation does not arrive in the next one")
	rest := []*insider{first, goInside(within(t, 3*soon), next), goInside(within(t, 3*soon), next)}
	for _, each := range rest {
		each.isIn(t)
		each.goes <- nil
	}
	for _, each := range rest {
		require.NoError(t, each.outcome(t))
	}
}

// A party that gives up while it waits for the functions of the others breaks the generation.
func TestBarrierDoGivenUp(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	b := connect(t, server, onlyMessages).NewBarrier(rig.Name(t), 2)
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	impatient := goInside(ctx, b)
	works := goInside(within(t, 3*soon), connect(t, server, onlyPolls).NewBarrier(b.Name(), 2))
	impatient.isIn(t)
	works.isIn(t)
	impatient.goes <- nil
	atBarrier(t, b, 1)
	giveUp()
	require.ErrorIs(t, impatient.outcome(t), context.Canceled) // it may be asking just then
	works.endsBroken(t, "has given up")
	requireBroken(t, works.leaves(t), "has given up")
	doesComplete(t, b)
}

// A caller that comes while functions run does not count: it waits for the next round.
func TestBarrierDoWithOneCallerTooMany(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	b := connect(t, server, onlyMessages).NewBarrier(rig.Name(t), 2)
	all := allInside(t, b, connect(t, server, onlyMessages).NewBarrier(b.Name(), 2))
	extra := goInside(within(t, 3*soon), connect(t, server, onlyMessages).NewBarrier(b.Name(), 2))
	awaiting := connect(t, server).NewBarrier(b.Name(), 2)
	_ = refused(t, func(wait latchkey.WaitOption) error { _, err := awaiting.Await(t.Context(), wait); return err })
	all[0].goes <- nil
	atBarrier(t, b, 1)
	assert.Empty(t, extra.entered)
	require.NoError(t, all[1].leaves(t))
	require.NoError(t, all[0].outcome(t))
	atBarrier(t, b, 1)
	other := goInside(within(t, 3*soon), b)
	other.isIn(t)
	extra.isIn(t)
	other.goes <- nil
	require.NoError(t, extra.leaves(t))
	require.NoError(t, other.outcome(t))
}

// Parties that call Do and parties that call Await do not meet.
func TestBarrierDoAndAwaitDoNotMix(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	b := connect(t, server, onlyMessages).NewBarrier(rig.Name(t), 2)
	waiting := arriveInBackground(within(t, 3*soon), b)
	atBarrier(t, b, 1)
	err := b.Do(t.Context(), func(context.Context) error { panic("it must not run") })
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	assert.ErrorContains(t, err, "some parties of the barrier call Do and others Await")
	_, err = b.Await(within(t, soon))
	require.NoError(t, err)
	require.NoError(t, rig.Await(t, soon, "the first", waiting).err)
	first := goInside(within(t, 3*soon), b)
	atBarrier(t, b, 1)
	_, err = b.Await(t.Context())
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	second := goInside(within(t, 3*soon), b)
	first.isIn(t)
	second.isIn(t)
	first.goes <- nil
	require.NoError(t, second.leaves(t))
	require.NoError(t, first.outcome(t))
}

// A function that panics counts as one that is done.
func TestBarrierDoPanics(t *testing.T) {
	t.Parallel()
	b := connect(t, rig.Shared(), onlyMessages).NewBarrier(rig.Name(t), 2)
	other := goInside(within(t, 3*soon), b)
	other.goes <- nil
	assert.PanicsWithValue(t, "lost my way", func() {
		_ = b.Do(within(t, 3*soon), func(context.Context) error { panic("lost my way") })
	})
	require.NoError(t, other.outcome(t))
}

// The keys of a Do in its two stages.
func TestGoldenBarrierDo(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	admin, heard := rig.NewAdmin(t, server), subscribeRaw(t, server, barrierChannelOf(name))
	b := connect(t, server, onlyMessages).NewBarrier(name, 2)
	first := goInside(within(t, 3*soon), b)
	generation := atBarrier(t, b, 1).Generation
	assert.Equal(t, map[string]string{"generation": fmt.Sprint(generation), "parties": "2", "arrived": "1", "stage": "enter"}, admin.Dump(name)[name].Hash)
	second := goInside(within(t, 3*soon), b)
	first.isIn(t)
	second.isIn(t)
	assert.Equal(t, "1", rig.Await(t, soon, "the message that all may begin", heard))
	s, err := b.State(t.Context())
	require.NoError(t, err)
	require.Len(t, s.Who, 2)
	assert.Zero(t, s.Waiting)
	assert.True(t, s.Who[0].Running && s.Who[1].Running)
	found := admin.Dump(name)
	assert.Equal(t, map[string]string{"generation": fmt.Sprint(s.Generation), "parties": "2", "arrived": "0", "stage": "run"}, found[name].Hash)
	assert.Contains(t, found["latchkey_barrier_past:{"+name+"}"].Members[0], fmt.Sprintf("%d done %d", generation, s.Generation))
	first.goes <- nil
	s = atBarrier(t, b, 1)
	waiting := fmt.Sprint(admin.Dump(name)["latchkey_barrier_waiting:{"+name+"}"].Members)
	for _, p := range s.Who {
		assert.Contains(t, waiting, p.Owner.String())
		assert.Equal(t, !p.Running, strings.Contains(waiting, "returned "+p.Owner.String()), waiting)
	}
	object, err := connect(t, server).Inspect(t.Context(), name)
	require.NoError(t, err)
	assert.Equal(t, latchkey.KindBarrier, object.Kind)
	require.NoError(t, second.leaves(t))
	require.NoError(t, first.outcome(t))
	assert.Equal(t, "1", rig.Await(t, soon, "the message that all are done", heard))
	assert.Equal(t, map[string]string{"generation": fmt.Sprint(s.Generation), "parties": "2", "arrived": "0"}, admin.Dump(name)[name].Hash)
	assert.NotContains(t, admin.Dump(name), "latchkey_barrier_waiting:{"+name+"}")
	assert.Empty(t, heard)
}

// With Do all parties begin together and leave together, even if the work of some fails.
func TestBarrierDo(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	const parties = 6
	failed := errors.New("failed")
	var mu sync.Mutex
	begun, done := 0, 0
	ready := 0
	var barriers [parties]*latchkey.Barrier
	for i := range barriers {
		barriers[i] = connect(t, server, onlyMessages).NewBarrier(name, parties)
	}
	all := rig.Goroutines(t)
	for i, b := range barriers {
		all.Go(func() {
			mu.Lock()
			ready++
			mu.Unlock()
			err := b.Do(within(t, 3*soon), func(context.Context) error {
				mu.Lock()
				defer mu.Unlock()
				assert.Equal(t, parties, ready)
				begun++
				if done++; i == 0 {
					return failed
				}
				return nil
			})
			mu.Lock()
			defer mu.Unlock()
			assert.Equal(t, parties, done, "nobody leaves before all are done")
			if i == 0 {
				assert.ErrorIs(t, err, failed)
			} else {
				assert.NoError(t, err)
			}
		})
	}
	all.Wait()
	assert.Equal(t, parties, begun)
}

// A party of Do arrives at the end even if its context ended during the work, so that the others do
// not wait in vain.
func TestBarrierDoArrivesAlsoIfItsContextHasEnded(t *testing.T) {
	t.Parallel()
	client, name := connect(t, rig.Shared(), onlyMessages), rig.Name(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() {
		ended <- client.NewBarrier(name, 2).Do(ctx, func(context.Context) error { cancel(); return nil })
	}()
	go func() {
		ended <- client.NewBarrier(name, 2).Do(within(t, 3*soon), func(context.Context) error { return nil })
	}()
	for range 2 {
		require.NoError(t, rig.Await(t, 3*soon, "a party", ended))
	}
}
