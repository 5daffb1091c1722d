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

// barrierDoer is a process that calls Do with a function that ends with its context, or at once if told to. Its
// arguments: name, the server's ticket, parties, and "stay" or "return".
var barrierDoer = rig.Child("barrier doer", func(ctx context.Context, args []string) error {
	parties, err1 := strconv.Atoi(args[2])
	client, closeAll, err := dialTicket(args[1], "", latchkey.Options{Lease: crashLease})
	if err = errors.Join(err, err1); err != nil {
		return err
	}
	err = client.NewBarrier(args[0], parties).Do(ctx, func(ctx context.Context) error {
		fmt.Println("inside")
		if args[3] == "stay" {
			<-ctx.Done()
		}
		return nil
	})
	fmt.Println("ended", err)
	return closeAll(context.Background())
})

// insider is a party of a Do in the background, whose function stays inside until it is sent away.
type insider struct {
	ctx     context.Context // of the function, once it has begun
	entered chan context.Context
	goes    chan error // what the function returns
	done    chan error // the outcome of Do
}

func goInside(ctx context.Context, b *latchkey.Barrier, options ...latchkey.BarrierOption) *insider {
	i := &insider{entered: make(chan context.Context, 1), goes: make(chan error, 1), done: make(chan error, 1)}
	go func() {
		i.done <- b.Do(ctx, func(ctx context.Context) error {
			i.entered <- ctx
			return <-i.goes
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

// isToldBroken checks that the context of the function ends because the generation is broken.
func (i *insider) isToldBroken(t *testing.T, within time.Duration, how string) {
	t.Helper()
	rig.Await(t, within, "the end of the context of the function", i.ctx.Done())
	require.ErrorIs(t, context.Cause(i.ctx), latchkey.ErrBroken)
	assert.ErrorContains(t, context.Cause(i.ctx), how)
}

// allInside returns one party for each barrier. All have begun their functions.
func allInside(t *testing.T, barriers ...*latchkey.Barrier) []*insider {
	t.Helper()
	var all []*insider
	for _, b := range barriers {
		all = append(all, goInside(within(t, time.Minute), b))
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

// A process that is killed while its function runs breaks the generation for all within its lease: for a party that is
// done and waits, and for one whose function runs.
func TestBarrierDoKilledInside(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	b := connect(t, server, patient).NewBarrier(rig.Name(t), 3)
	child := barrierDoer.Start(t, b.Name(), server.Ticket(), "3", "stay")
	all := allInside(t, b, connect(t, server, patient).NewBarrier(b.Name(), 3))
	waits, works := all[0], all[1]
	child.Line(t, soon, "inside")
	waits.goes <- nil
	atBarrier(t, b, 1)
	rest(2 * crashLease) // all are renewed during this time
	require.NoError(t, works.ctx.Err())
	child.Kill()
	killed := time.Now()
	toldBroken(t, waits.outcome(t), "ran out")
	works.isToldBroken(t, leeway, "ran out")
	t.Logf("broken %v after the kill, lease %v", time.Since(killed).Round(time.Millisecond), crashLease)
	assert.Less(t, time.Since(killed), crashLease+leeway)
	toldBroken(t, works.leaves(t), "ran out")
	doesComplete(t, b)
}

// If only functions run, and nobody waits, their contexts end as soon.
func TestBarrierDoKilledInsideAndNobodyWaits(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	b := connect(t, server, latchkey.Options{PollCeiling: pollCeiling}).NewBarrier(rig.Name(t), 3)
	child := barrierDoer.Start(t, b.Name(), server.Ticket(), "3", "stay")
	all := allInside(t, b, connect(t, server, patient).NewBarrier(b.Name(), 3))
	child.Line(t, soon, "inside")
	child.Kill()
	for _, each := range all {
		each.isToldBroken(t, crashLease+leeway, "ran out")
		toldBroken(t, each.leaves(t), "ran out")
	}
	doesComplete(t, b)
}

// A party that is stopped when the first generation is complete, and has not learned that, is in the second one. That
// does not complete without it, and breaks if it is killed.
func TestBarrierDoOfASlowParty(t *testing.T) {
	t.Parallel()
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprint("killed ", killed), func(t *testing.T) {
			t.Parallel()
			server := rig.Shared()
			b := connect(t, server, patient).NewBarrier(rig.Name(t), 2)
			child := barrierDoer.Start(t, b.Name(), server.Ticket(), "2", "return")
			atBarrier(t, b, 1)
			child.Stop(t)
			fast := goInside(within(t, time.Minute), b)
			fast.isIn(t)
			fast.goes <- nil
			who := atBarrier(t, b, 1).Who
			require.Len(t, who, 2)
			assert.NotEqual(t, who[0].Running, who[1].Running, "one has returned")
			assert.Empty(t, fast.done)
			if killed {
				child.Kill()
				toldBroken(t, fast.outcome(t), "ran out")
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

// Close breaks the generation at once, even if the function goes on, and does not wait for the function.
func TestBarrierDoClosedInside(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	b := connect(t, server, polling).NewBarrier(rig.Name(t), 2)
	client, closeAll, err := dial(server, server.Addr(), latchkey.Options{})
	require.NoError(t, err)
	all := allInside(t, b, client.NewBarrier(b.Name(), 2))
	require.NoError(t, closeAll(within(t, soon)))
	assert.ErrorIs(t, context.Cause(all[1].ctx), latchkey.ErrClosed)
	all[0].isToldBroken(t, leeway+pollCeiling, "was closed")
	toldBroken(t, all[0].leaves(t), "was closed")
	err = all[1].leaves(t)
	require.ErrorIs(t, err, latchkey.ErrClosed)
	assert.NotErrorIs(t, err, latchkey.ErrBroken)
	doesComplete(t, b)
}

// A party that cannot be reached learns that from its own clock, and the others from the server.
func TestBarrierDoOfAPartyThatVanishes(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	tap := rig.NewTap(t, server)
	b := connect(t, server, polling).NewBarrier(rig.Name(t), 2)
	gone := connectVia(t, server, tap.Addr(), latchkey.Options{Lease: crashLease, RetryBudget: 500 * time.Millisecond}).NewBarrier(b.Name(), 2)
	all := allInside(t, b, gone)
	stop := tap.LoseAll(rig.Any, rig.CutRequest)
	all[1].isToldBroken(t, crashLease+leeway, "could not be renewed")
	all[0].isToldBroken(t, crashLease+leeway, "ran out")
	stop()
	toldBroken(t, all[0].leaves(t), "ran out")
	require.ErrorIs(t, all[1].leaves(t), latchkey.ErrBroken)
	doesComplete(t, b)
}

// Reset breaks the generation for those inside and those that wait.
func TestBarrierDoReset(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	b := connect(t, server, polling).NewBarrier(rig.Name(t), 2)
	all := allInside(t, b, connect(t, server, patient).NewBarrier(b.Name(), 2))
	all[1].goes <- nil
	atBarrier(t, b, 1)
	require.NoError(t, b.Reset(t.Context()))
	toldBroken(t, all[1].outcome(t), "it was reset")
	all[0].isToldBroken(t, leeway+pollCeiling, "it was reset")
	next := connect(t, server, polling).NewBarrier(b.Name(), 3)
	first := goInside(within(t, time.Minute), next)
	atBarrier(t, next, 1)
	toldBroken(t, all[0].leaves(t), "it was reset")
	assert.Equal(t, 1, atBarrier(t, next, 1).Waiting, "a party of the broken generation does not arrive in the next one")
	rest := []*insider{first, goInside(within(t, time.Minute), next), goInside(within(t, time.Minute), next)}
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
	b := connect(t, server, patient).NewBarrier(rig.Name(t), 2)
	impatient := goInside(within(t, time.Minute), b, latchkey.Wait(time.Second))
	works := goInside(within(t, time.Minute), connect(t, server, polling).NewBarrier(b.Name(), 2))
	impatient.isIn(t)
	works.isIn(t)
	toldBusy(t, impatient.leaves(t))
	works.isToldBroken(t, leeway+pollCeiling, "has waited for too long")
	toldBroken(t, works.leaves(t), "has waited for too long")
	doesComplete(t, b)
}

// A caller that comes while functions run does not count: it waits for the next round.
func TestBarrierDoWithOneCallerTooMany(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	b := connect(t, server, patient).NewBarrier(rig.Name(t), 2)
	all := allInside(t, b, connect(t, server, patient).NewBarrier(b.Name(), 2))
	extra := goInside(within(t, time.Minute), connect(t, server, patient).NewBarrier(b.Name(), 2))
	_, err := connect(t, server).NewBarrier(b.Name(), 2).Await(t.Context(), latchkey.Wait(200*time.Millisecond))
	toldBusy(t, err)
	all[0].goes <- nil
	atBarrier(t, b, 1)
	assert.Empty(t, extra.entered)
	require.NoError(t, all[1].leaves(t))
	require.NoError(t, all[0].outcome(t))
	atBarrier(t, b, 1)
	other := goInside(within(t, time.Minute), b)
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
	b := connect(t, server, patient).NewBarrier(rig.Name(t), 2)
	waiting := arriveInBackground(within(t, time.Minute), b)
	atBarrier(t, b, 1)
	err := b.Do(t.Context(), func(context.Context) error { panic("it must not run") })
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	assert.ErrorContains(t, err, "some parties of the barrier call Do and others Await")
	_, err = b.Await(within(t, soon))
	require.NoError(t, err)
	require.NoError(t, rig.Await(t, soon, "the first", waiting).err)
	first := goInside(within(t, time.Minute), b)
	atBarrier(t, b, 1)
	_, err = b.Await(t.Context())
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	second := goInside(within(t, time.Minute), b)
	first.isIn(t)
	second.isIn(t)
	first.goes <- nil
	require.NoError(t, second.leaves(t))
	require.NoError(t, first.outcome(t))
}

// A function that panics counts as one that is done.
func TestBarrierDoPanics(t *testing.T) {
	t.Parallel()
	b := connect(t, rig.Shared(), patient).NewBarrier(rig.Name(t), 2)
	other := goInside(within(t, time.Minute), b)
	other.goes <- nil
	assert.PanicsWithValue(t, "lost my way", func() {
		_ = b.Do(within(t, time.Minute), func(context.Context) error { panic("lost my way") })
	})
	require.NoError(t, other.outcome(t))
}

// The keys of a Do in its two stages.
func TestGoldenBarrierDo(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	admin, heard := rig.NewAdmin(t, server), subscribeRaw(t, server, barrierChannelOf(name))
	b := connect(t, server, patient).NewBarrier(name, 2)
	first := goInside(within(t, time.Minute), b)
	generation := atBarrier(t, b, 1).Generation
	assert.Equal(t, map[string]string{"generation": fmt.Sprint(generation), "parties": "2", "arrived": "1", "stage": "enter"}, admin.Dump(name)[name].Hash)
	second := goInside(within(t, time.Minute), b)
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

// Each reply is lost in turn, in every way. All enter and leave, and a late copy of any command has no effect.
func TestBarrierDoLostReplies(t *testing.T) {
	t.Parallel()
	rig.Long(t)
	eachBarrierLoss(t, 6, func(t *testing.T, direct, lossy *latchkey.Barrier, tap *rig.Tap, first bool) {
		order := []*latchkey.Barrier{direct, lossy}
		if first {
			slices.Reverse(order)
		}
		one := goInside(within(t, time.Minute), order[0])
		atBarrier(t, direct, 1)
		other := goInside(within(t, time.Minute), order[1])
		one.isIn(t)
		other.isIn(t)
		one.goes <- nil
		atBarrier(t, direct, 1)
		require.NoError(t, other.leaves(t))
		require.NoError(t, one.outcome(t))
		for _, c := range tap.Executed(rig.Mentions(direct.Name())) {
			deliverLate(t, rig.Shared(), c.Args)
			s, err := direct.State(t.Context())
			require.NoError(t, err)
			assert.Empty(t, s.Who, c.Args)
		}
		doesComplete(t, direct)
	})
}

// If the server loses the generation, all are told.
func TestBarrierDoLostByTheServer(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Private)
	server := rig.Fresh(t)
	b := connect(t, server, polling).NewBarrier("phase", 2)
	all := allInside(t, b, connect(t, server, polling).NewBarrier("phase", 2))
	all[0].goes <- nil
	atBarrier(t, b, 1)
	rig.NewAdmin(t, server).Do("FLUSHALL")
	toldBroken(t, all[0].outcome(t), "the server lost the generation")
	all[1].isToldBroken(t, leeway+pollCeiling, "the server lost the generation")
	toldBroken(t, all[1].leaves(t), "the server lost the generation")
	doesComplete(t, b)
}

// On a server that is out of memory the parties inside are renewed, and can leave.
func TestBarrierDoOutOfMemory(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Settings)
	server := rig.Fresh(t)
	b := connect(t, server, latchkey.Options{Lease: crashLease}).NewBarrier("phase", 2)
	doesComplete(t, b) // so that the server knows the scripts
	all := allInside(t, b, b)
	rig.NewAdmin(t, server).Do("CONFIG", "SET", "maxmemory", "1")
	rest(2 * crashLease)
	all[0].goes <- nil
	require.NoError(t, all[1].leaves(t))
	require.NoError(t, all[0].outcome(t))
	rig.NewAdmin(t, server).Do("CONFIG", "SET", "maxmemory", "0")
	doesComplete(t, b)
}
