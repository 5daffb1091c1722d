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

// Barrier.Do when processes, links, replies and servers fail.

// barrierDoer is a process that calls Do with a function that ends with its context, or at once if
// told to. Its arguments: name, the server's ticket, parties, "stay" or "return", and its lease.
var barrierDoer = rig.Child("barrier doer", func(ctx context.Context, args []string) error {
	parties, err1 := strconv.Atoi(args[2])
	lease, err2 := time.ParseDuration(args[4])
	client, closeAll, err := dialTicket(args[1], "", latchkey.Options{Lease: lease})
	if err = errors.Join(err, err1, err2); err != nil {
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

// A process that is killed while its function runs breaks the generation for all within its lease:
// for a party that is done and waits, and for one whose function runs.
func TestBarrierDoKilledInside(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	require.NoError(t, rig.InTime(t, func(before int) error {
		lease := crashLease << before
		b := connect(t, server, onlyMessages).NewBarrier(fmt.Sprint(rig.Name(t), before), 3)
		child := barrierDoer.Start(t, b.Name(), server.Ticket(), "3", "stay", lease.String())
		all := allInside(t, b, connect(t, server, onlyMessages).NewBarrier(b.Name(), 3))
		waits, works := all[0], all[1]
		child.Line(t, soon, "inside")
		waits.goes <- nil
		select {
		case err := <-waits.done:
			return fmt.Errorf("it is not renewed: %w", err)
		case <-time.After(2 * lease):
		}
		require.NoError(t, works.ctx.Err())
		child.Kill()
		killed := time.Now()
		requireBroken(t, waits.outcome(t), "ran out")
		works.endsBroken(t, "ran out")
		t.Logf("broken %v after the kill, lease %v", time.Since(killed).Round(time.Millisecond), lease)
		requireBroken(t, works.leaves(t), "ran out")
		doesComplete(t, b)
		return nil
	}))
}

// If only functions run, and nobody waits, their contexts end as soon.
func TestBarrierDoKilledInsideAndNobodyWaits(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	b := connect(t, server, onlyPolls).NewBarrier(rig.Name(t), 3)
	child := barrierDoer.Start(t, b.Name(), server.Ticket(), "3", "stay", "3s")
	all := allInside(t, b, connect(t, server, onlyMessages).NewBarrier(b.Name(), 3))
	child.Line(t, soon, "inside")
	child.Kill()
	for _, each := range all {
		each.endsBroken(t, "ran out")
		requireBroken(t, each.leaves(t), "ran out")
	}
	doesComplete(t, b)
}

// A party that cannot be reached learns that from its own clock, and the others from the server.
func TestBarrierDoOfAPartyThatVanishes(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	tap := rig.NewTap(t, server)
	b := connect(t, server, onlyPolls).NewBarrier(rig.Name(t), 2)
	gone := connectVia(t, server, tap.Addr(), latchkey.Options{Lease: 3 * time.Second, RetryBudget: 500 * time.Millisecond}).NewBarrier(b.Name(), 2)
	all := allInside(t, b, gone)
	stop := tap.LoseAll(rig.Any, rig.CutRequest)
	all[1].endsBroken(t, "could not be renewed")
	all[0].endsBroken(t, "ran out")
	stop()
	requireBroken(t, all[0].leaves(t), "ran out")
	require.ErrorIs(t, all[1].leaves(t), latchkey.ErrBroken)
	doesComplete(t, b)
}

// Each reply is lost in turn, in every way. All enter and leave, and a late copy of any command has
// no effect.
func TestBarrierDoLostReplies(t *testing.T) {
	t.Parallel()
	rig.Long(t)
	eachBarrierLoss(t, 6, func(t *testing.T, direct, lossy *latchkey.Barrier, tap *rig.Tap, first bool) {
		order := []*latchkey.Barrier{direct, lossy}
		if first {
			slices.Reverse(order)
		}
		one := goInside(within(t, 3*soon), order[0])
		atBarrier(t, direct, 1)
		other := goInside(within(t, 3*soon), order[1])
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
	b := connect(t, server, onlyPolls).NewBarrier("phase", 2)
	all := allInside(t, b, connect(t, server, onlyPolls).NewBarrier("phase", 2))
	all[0].goes <- nil
	atBarrier(t, b, 1)
	rig.NewAdmin(t, server).Do("FLUSHALL")
	requireBroken(t, all[0].outcome(t), "the server lost the generation")
	all[1].endsBroken(t, "the server lost the generation")
	requireBroken(t, all[1].leaves(t), "the server lost the generation")
	doesComplete(t, b)
}

// On a server that is out of memory the parties inside are renewed, and can leave.
func TestBarrierDoOutOfMemory(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Settings)
	server := rig.Fresh(t)
	admin := rig.NewAdmin(t, server)
	const lease = 4 * time.Second
	b := connect(t, server, latchkey.Options{Lease: lease}).NewBarrier("phase", 2)
	doesComplete(t, connect(t, server).NewBarrier("phase", 2)) // so that the server knows the scripts
	all := allInside(t, b, b)
	admin.Do("CONFIG", "SET", "maxmemory", "1")
	rest(lease * 5 / 4)
	require.NoError(t, all[0].ctx.Err())
	all[0].goes <- nil
	require.NoError(t, all[1].leaves(t))
	require.NoError(t, all[0].outcome(t))
	admin.Do("CONFIG", "SET", "maxmemory", "0")
	doesComplete(t, b)
}
