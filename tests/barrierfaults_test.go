package tests

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// barrierWorker is a process that awaits a barrier for several generations and prints its progress.
// Its arguments: name, the server's ticket, parties, generations, and its lease. With 0 generations
// it connects and never arrives.
var barrierWorker = rig.Child("barrier worker", func(ctx context.Context, args []string) error {
	parties, err1 := strconv.Atoi(args[2])
	generations, err2 := strconv.Atoi(args[3])
	lease, err3 := time.ParseDuration(args[4])
	client, closeAll, err := dialTicket(args[1], "", latchkey.Options{Lease: lease})
	if err = errors.Join(err, err1, err2, err3); err != nil {
		return err
	}
	b := client.NewBarrier(args[0], parties)
	if generations == 0 {
		_, err = b.State(ctx)
		fmt.Println("connected", err)
		<-time.After(time.Minute) // it is killed
	}
	wait := time.Minute // until all have started
	for g := range generations {
		if _, err = b.Await(ctx, latchkey.Wait(wait)); err != nil {
			fmt.Println("ended", errors.Is(err, latchkey.ErrBroken) || errors.Is(err, latchkey.ErrNotAcquired))
			break
		}
		if g == 0 {
			fmt.Println("went on")
			wait = 2 * lease
		}
	}
	return closeAll(context.Background())
})

// A process killed while it waits breaks its generation within its lease. A process killed before
// it arrives, or after it went on, does not affect that generation.
func TestBarrierKilledParty(t *testing.T) {
	t.Parallel()
	t.Run("while it waits", func(t *testing.T) {
		t.Parallel()
		server := rig.Shared()
		b := connect(t, server, onlyMessages).NewBarrier(rig.Name(t), 3)
		const lease = 3 * time.Second
		child := barrierWorker.Start(t, b.Name(), server.Ticket(), "3", "1", lease.String())
		waiting := arriveInBackground(within(t, 3*soon), b)
		atBarrier(t, b, 2)
		child.Kill()
		killed := time.Now()
		requireBroken(t, rig.Await(t, soon, "the other", waiting).err, "ran out")
		t.Logf("broken %v after the kill, lease %v", time.Since(killed).Round(time.Millisecond), lease)
		completes(t, b)
	})
	t.Run("before it arrives", func(t *testing.T) {
		t.Parallel()
		server := rig.Shared()
		b := connect(t, server, onlyMessages).NewBarrier(rig.Name(t), 2)
		child := barrierWorker.Start(t, b.Name(), server.Ticket(), "2", "0", "200ms")
		child.Line(t, soon, "connected <nil>")
		waiting := arriveInBackground(within(t, 3*soon), b)
		atBarrier(t, b, 1)
		child.Kill()
		rest(300 * time.Millisecond)
		_, err := b.Await(within(t, soon))
		require.NoError(t, err)
		require.NoError(t, rig.Await(t, soon, "the other", waiting).err)
	})
	t.Run("when the generation is complete", func(t *testing.T) {
		t.Parallel()
		server := rig.Shared()
		b := connect(t, server, onlyMessages).NewBarrier(rig.Name(t), 2)
		child := barrierWorker.Start(t, b.Name(), server.Ticket(), "2", "2", "1m")
		atBarrier(t, b, 1)
		child.Stop(t)
		_, err := b.Await(within(t, soon))
		require.NoError(t, err, "it had arrived, whatever becomes of it")
		child.Kill()
		completes(t, b)
	})
	t.Run("after it went on", func(t *testing.T) {
		t.Parallel()
		server := rig.Shared()
		b := connect(t, server, onlyMessages).NewBarrier(rig.Name(t), 2)
		child := barrierWorker.Start(t, b.Name(), server.Ticket(), "2", "2", "3s")
		_, err := b.Await(within(t, soon))
		require.NoError(t, err)
		child.Line(t, soon, "went on")
		atBarrier(t, b, 1) // in the second generation
		child.Kill()
		_, err = b.Await(within(t, soon))
		if err != nil { // its lease had ended before
			requireBroken(t, err, "ran out")
		}
		completes(t, b)
	})
}

// A party whose link is silent breaks the generation for the others within its lease. When its link
// works again, it gets the same error as they did.
func TestBarrierPartyThatVanishes(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	tap := rig.NewTap(t, server)
	b := connect(t, server, onlyMessages).NewBarrier(rig.Name(t), 3)
	gone := connectVia(t, server, tap.Addr(), latchkey.Options{Lease: 3 * time.Second, RetryBudget: 500 * time.Millisecond}).NewBarrier(b.Name(), 3)
	waiting, lost := arriveInBackground(within(t, 3*soon), b), arriveInBackground(within(t, 3*soon), gone)
	atBarrier(t, b, 2)
	stop := tap.LoseAll(rig.Any, rig.CutRequest)
	requireBroken(t, rig.Await(t, soon, "the other", waiting).err, "ran out")
	next := arriveInBackground(within(t, 3*soon), b)
	atBarrier(t, b, 1)
	stop()
	requireBroken(t, rig.Await(t, soon, "the one that was gone", lost).err, "ran out")
	atBarrier(t, b, 1)
	staysPending(t, next)
}

// barrierBehindTap returns the same barrier of two parties for a client with a direct connection,
// and for a client with these options behind a tap.
func barrierBehindTap(t *testing.T, options latchkey.Options) (direct, lossy *latchkey.Barrier, tap *rig.Tap) {
	t.Helper()
	server := rig.Shared()
	tap = rig.NewTap(t, server)
	direct = connect(t, server, onlyPolls).NewBarrier(rig.Name(t), 2)
	return direct, connectVia(t, server, tap.Addr(), options).NewBarrier(direct.Name(), 2), tap
}

// eachBarrierLoss runs a test in which one of the first most commands of a party is lost, in every
// way. first says whether that party arrives first.
func eachBarrierLoss(t *testing.T, most int, test func(t *testing.T, direct, lossy *latchkey.Barrier, tap *rig.Tap, first bool)) {
	t.Helper()
	for _, each := range losses {
		for n := 1; n <= most; n++ {
			for _, first := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s %d, first %v", each.name, n, first), func(t *testing.T) {
					t.Parallel()
					direct, lossy, tap := barrierBehindTap(t, latchkey.Options{RetryBudget: soon, Tuning: latchkey.Tuning{PollCeiling: pollCeiling}})
					tap.Lose(n, rig.Mentions(direct.Name()), each.loss)
					test(t, direct, lossy, tap, first)
				})
			}
		}
	}
}

// Each reply is lost in turn, in every way. An arrival counts once, all parties go on together, and
// the barrier works afterwards.
func TestBarrierLostReplies(t *testing.T) {
	t.Parallel()
	rig.Long(t)
	eachBarrierLoss(t, 4, func(t *testing.T, direct, lossy *latchkey.Barrier, _ *rig.Tap, first bool) {
		var mine, other <-chan arrival
		if first {
			mine = arriveInBackground(within(t, 2*soon), lossy)
			atBarrier(t, direct, 1)
			other = arriveInBackground(within(t, 2*soon), direct)
		} else {
			other = arriveInBackground(within(t, 2*soon), direct)
			atBarrier(t, direct, 1)
			mine = arriveInBackground(within(t, 2*soon), lossy)
		}
		a, b := rig.Await(t, 2*soon, "the one with losses", mine), rig.Await(t, 2*soon, "the other", other)
		require.NoError(t, a.err)
		require.NoError(t, b.err)
		assert.Equal(t, a.Generation, b.Generation)
		assert.Equal(t, first, b.Last())
		assert.Equal(t, !first, a.Last())
		s, err := direct.State(t.Context())
		require.NoError(t, err)
		assert.Zero(t, s.Waiting, "nobody counts twice")
		completes(t, direct)
	})
}

// An arrival without a reply is undone when its party gives up: it does not count in a later
// generation. If the arrival completed the generation, it stays complete.
func TestBarrierArrivalInDoubt(t *testing.T) {
	t.Parallel()
	for _, each := range losses {
		for _, last := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, last %v", each.name, last), func(t *testing.T) {
				t.Parallel()
				direct, lossy, tap := barrierBehindTap(t, latchkey.Options{RetryBudget: 400 * time.Millisecond})
				var other <-chan arrival
				if last {
					other = arriveInBackground(within(t, soon), direct)
					atBarrier(t, direct, 1)
				}
				arrived := tap.Lose(1, rig.Mentions(direct.Name()), each.loss)
				stop := tap.LoseAll(rig.Mentions(direct.Name()), each.loss)
				ctx, giveUp := context.WithCancel(t.Context())
				defer giveUp()
				lost := arriveInBackground(ctx, lossy)
				rig.Await(t, soon, "the arrival", arrived)
				giveUp()
				err := rig.Await(t, soon, "who gives up", lost).err
				t.Log(err)
				require.Error(t, err)
				stop()
				if each.loss == rig.Mute {
					tap.Cut() // a muted connection stays muted
				}
				if last && each.loss != rig.CutRequest {
					require.ErrorIs(t, err, latchkey.ErrUnknownOutcome)
					require.NoError(t, rig.Await(t, soon, "the other", other).err, "both had arrived")
				}
				rig.Eventually(t, soon, "it is undone", func() error {
					s, err := direct.State(t.Context())
					if want := 0; err == nil && s.Waiting != want && !(last && each.loss == rig.CutRequest) {
						return fmt.Errorf("%d wait", s.Waiting)
					}
					return err
				})
				rest(200 * time.Millisecond) // in case something arrives late
				if last && each.loss == rig.CutRequest {
					_, err = direct.Await(within(t, soon))
					require.NoError(t, err)
					require.NoError(t, rig.Await(t, soon, "the other", other).err)
				}
				completes(t, direct)
			})
		}
	}
}

// A copy of an arrival delivered after its generation has no effect.
func TestBarrierDelayedArrival(t *testing.T) {
	server := rig.Shared()
	tap := rig.NewTap(t, server)
	b := connectVia(t, server, tap.Addr(), onlyMessages).NewBarrier(rig.Name(t), 2)
	completes(t, b)
	for _, c := range tap.Executed(rig.Mentions(b.Name())) {
		deliverLate(t, server, c.Args)
		s, err := b.State(t.Context())
		require.NoError(t, err)
		assert.Zero(t, s.Waiting, c.Args)
	}
	completes(t, b)
}

// If the server is emptied or restarted, nobody hangs, and the barrier works afterwards.
func TestBarrierLostByTheServer(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Private)
	t.Run("emptied", func(t *testing.T) {
		server := rig.Fresh(t)
		b := connect(t, server, onlyPolls).NewBarrier("phase", 2)
		waiting := arriveInBackground(within(t, soon), b)
		atBarrier(t, b, 1)
		rig.NewAdmin(t, server).Do("FLUSHALL")
		requireBroken(t, rig.Await(t, soon, "the party", waiting).err, "the server lost the generation")
		completes(t, b)
	})
	t.Run("emptied, and others go on", func(t *testing.T) {
		server := rig.Fresh(t)
		b := connect(t, server, onlyMessages).NewBarrier("phase", 2)
		waiting := arriveInBackground(within(t, soon), connect(t, server, onlyPolls).NewBarrier("phase", 2))
		atBarrier(t, b, 1)
		rig.NewAdmin(t, server).Do("FLUSHALL")
		completes(t, b)
		requireBroken(t, rig.Await(t, soon, "the party", waiting).err, "the server lost the generation")
	})
	t.Run("restarted", func(t *testing.T) {
		rig.Need(t, rig.Process)
		server := rig.Fresh(t)
		b := connect(t, server, onlyPolls).NewBarrier("phase", 2)
		waiting := arriveInBackground(within(t, soon), b)
		atBarrier(t, b, 1)
		server.Kill(t)
		server.Restart(t)
		requireBroken(t, rig.Await(t, soon, "the party", waiting).err, "the server lost the generation")
		completes(t, b)
	})
	t.Run("silent", func(t *testing.T) {
		rig.Need(t, rig.Process)
		server := rig.Fresh(t)
		options := onlyPolls
		options.RetryBudget = 300 * time.Millisecond
		b := connect(t, server, options).NewBarrier("phase", 2)
		require.NoError(t, rig.InTime(t, func(before int) error {
			waiting := arriveInBackground(t.Context(), b, latchkey.Wait(time.Second<<before))
			atBarrier(t, b, 1)
			server.Pause(t)
			err := rig.Await(t, 2*soon, "the party", waiting).err
			server.Resume(t)
			if !errors.Is(err, latchkey.ErrUnknownOutcome) {
				return fmt.Errorf("the wait was over before: %w", err)
			}
			return nil
		}))
		rig.Eventually(t, soon, "it leaves", func() error {
			s, err := b.State(t.Context())
			if err == nil && s.Waiting > 0 {
				err = errors.New("it waits")
			}
			return err
		})
		completes(t, b)
	})
}

// On a server that is out of memory no party can arrive. Waiting parties can leave, and they learn
// the outcome.
func TestBarrierOutOfMemory(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Settings)
	server := rig.Fresh(t)
	require.NoError(t, rig.InTime(t, func(before int) error { return barrierOutOfMemory(t, server, crashLease<<before) }))
}

func barrierOutOfMemory(t *testing.T, server *rig.Server, lease time.Duration) error {
	t.Helper()
	ctx, admin, client := t.Context(), rig.NewAdmin(t, server), connect(t, server, latchkey.Options{Lease: lease})
	b, other := client.NewBarrier("phase "+lease.String(), 3), client.NewBarrier("other "+lease.String(), 3)
	completes(t, b)
	// so that the server knows the scripts
	_ = refused(t, func(wait latchkey.WaitOption) error { _, err := b.Await(ctx, wait); return err })
	leaving, stop := context.WithCancel(ctx)
	defer stop()
	waiting, mine := arriveInBackground(within(t, 3*soon), b), arriveInBackground(leaving, b)
	atBarrier(t, b, 2)
	reset := arriveInBackground(within(t, 3*soon), other)
	atBarrier(t, other, 1)
	admin.Do("CONFIG", "SET", "maxmemory", "1")
	defer admin.Do("CONFIG", "SET", "maxmemory", "0")
	_, err := b.Await(ctx)
	hasCode(t, err, "OOM")
	rest(2 * lease)
	if s, err := b.State(ctx); err != nil || s.Waiting != 2 || len(reset) > 0 {
		return errors.Join(err, fmt.Errorf("they are not renewed: %d wait, %d left", s.Waiting, len(reset)))
	}
	stop()
	assert.ErrorIs(t, rig.Await(t, soon, "who leaves", mine).err, context.Canceled)
	second := rig.Await(t, soon, "the other", waiting).err
	require.NoError(t, other.Reset(ctx))
	third := rig.Await(t, soon, "the third", reset).err
	for _, err := range []error{second, third} {
		if strings.Contains(fmt.Sprint(err), "ran out") { // it was renewed too late
			return err
		}
	}
	requireBroken(t, second, "has given up")
	requireBroken(t, third, "it was reset")
	return nil
}

// Processes go through generations at full speed, and one of them is killed at an arbitrary time.
// The others end within its lease if it had arrived, or else when their time is over. Nobody hangs.
func TestBarrierProcesses(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	const parties = 3
	var children []*rig.ChildProcess
	for range parties {
		children = append(children, barrierWorker.Start(t, name, server.Ticket(), strconv.Itoa(parties), "1000000", "2s"))
	}
	for _, child := range children {
		child.Line(t, 3*soon, "went on")
	}
	children[0].Kill()
	for _, child := range children[1:] {
		assert.Equal(t, "true", child.Line(t, 2*soon, "ended"))
		child.Wait(t, soon)
	}
}
