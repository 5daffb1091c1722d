package tests

import (
	"context"
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

// A downgrade is one step: readers come in at once, writers do not, and the hold is renewed.
func TestDowngrade(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	options := byMessageOnly
	options.Lease, options.Tuning.PollCeiling = 6*time.Second, 5*time.Second
	rw := connect(t, server, options).NewRWLock(name)
	other := connect(t, server, byMessageOnly).NewRWLock(name)
	writer := mustLock(t, rw.Writer())
	writing := writer.Context(t.Context())
	reader := lockInBackground(within(t, soon), other.Reader())
	awaitWaiter(t, rig.NewAdmin(t, server), name)

	hold, err := writer.Downgrade(t.Context())
	require.NoError(t, err)
	came := rig.Await(t, soon, "the reader", reader)
	require.NoError(t, came.err)
	assert.Equal(t, writer.Owner(), hold.Owner())
	assert.ErrorIs(t, context.Cause(writing), latchkey.ErrNotHeld)
	require.ErrorIs(t, writer.Unlock(t.Context()), latchkey.ErrNotHeld, "it is over")
	_, err = writer.Downgrade(t.Context())
	require.ErrorIs(t, err, latchkey.ErrNotHeld)
	mustUnlock(t, came.hold)

	renewedAgain(t, options.Lease, hold)
	_, err = other.Writer().TryLock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrNotAcquired, "somebody reads")
	mustUnlock(t, mustLock(t, other.Reader()))
	_, err = rw.Writer().TryLock(hold.Context(t.Context()))
	require.ErrorIs(t, err, latchkey.ErrUpgrade)
	mustUnlock(t, hold)
	mustUnlock(t, mustLock(t, other.Writer()))
}

// The reply to each command of a downgrade is lost in turn: the caller still learns the true
// outcome.
func TestDowngradeWithALostReply(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	tap := rig.NewTap(t, server)
	rw := connectVia(t, server, tap.Addr()).NewRWLock(name)
	other := connect(t, server).NewRWLock(name)
	writer := mustLock(t, rw.Writer())
	tap.Lose(1, rig.Mentions(name), rig.Cut)
	hold, err := writer.Downgrade(t.Context())
	require.NoError(t, err)
	mustUnlock(t, mustLock(t, other.Reader()))
	_, err = other.Writer().TryLock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
	mustUnlock(t, hold)
	assert.NoError(t, free(rig.NewAdmin(t, server), name)())
}

func TestDowngradeIsForTheOnlyWriteHold(t *testing.T) {
	rw := connect(t, rig.Shared()).NewRWLock(rig.Name(t))
	reader := mustLock(t, rw.Reader())
	_, err := reader.Downgrade(t.Context())
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	mustUnlock(t, reader)
	outer := mustLock(t, rw.Writer())
	inner, err := rw.Writer().Lock(outer.Context(t.Context()))
	require.NoError(t, err)
	_, err = outer.Downgrade(t.Context())
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	mustUnlock(t, inner)
	read, err := rw.Reader().Lock(outer.Context(t.Context()))
	require.NoError(t, err)
	hold, err := outer.Downgrade(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 2, countOf(hold), "the one that read before, and the new one")
	mustUnlock(t, read)
	mustUnlock(t, hold)
}

// The last read under the write hold is released while a downgrade is in flight. The new read hold
// is the only one then.
func TestDowngradeWhileAReadUnderItIsReleased(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	tap, admin := rig.NewTap(t, server), rig.NewAdmin(t, server)
	rw := connectVia(t, server, tap.Addr(), persistent).NewRWLock(name)
	other := connect(t, server).NewRWLock(name)
	writer := mustLock(t, rw.Writer())
	read := mustLockUnder(writer.Context(t.Context()), t, rw.Reader())
	reply := tap.HoldReply(rig.Mentions(name))
	downgraded := make(chan acquisition, 1)
	go func() {
		hold, err := writer.Downgrade(context.Background())
		downgraded <- acquisition{hold: hold, err: err}
	}()
	unlocked := releasedMeanwhile(t, read, reply)
	got := rig.Await(t, soon, "the downgrade", downgraded)
	require.NoError(t, got.err)
	require.NoError(t, rig.Await(t, soon, "Unlock", unlocked))
	require.NoError(t, got.hold.Err())
	assert.Equal(t, 1, countOf(got.hold))
	assert.EqualValues(t, 1, countInRedis(t, admin, name))
	mustUnlock(t, mustLock(t, other.Reader()))
	_, err := other.Writer().TryLock(within(t, soon))
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
	mustUnlock(t, got.hold)
	assert.NoError(t, free(admin, name)())
}

// The error of a downgrade says once what the server has replied, and speaks of no other call.
func TestErrorOfADowngrade(t *testing.T) {
	t.Parallel()
	for reply, want := range map[string]error{"NOPERM denied": nil, "LOADING wait": latchkey.ErrUnknownOutcome} {
		t.Run(reply, func(t *testing.T) {
			t.Parallel()
			server, name := rig.Shared(), rig.Name(t)
			tap := rig.NewTap(t, server)
			rw := connectVia(t, server, tap.Addr(), brief).NewRWLock(name)
			for _, reads := range []bool{false, true} {
				hold := mustLock(t, rw.Writer())
				if reads {
					defer unlockInTheEnd(t, mustLockUnder(hold.Context(t.Context()), t, rw.Reader()))
				}
				heal := tap.Refuse(func(c rig.Command) bool { return c.Script() == "rw/downgrade" }, reply)
				late := rig.WatchLateness(nil)
				_, err := hold.Downgrade(t.Context())
				worst := late()
				heal()
				require.ErrorContains(t, err, `downgrade "`+name+`": `)
				if said := strings.Count(err.Error(), reply); worst < brief.RetryBudget/8 || said > 1 {
					assert.Equal(t, 1, said, "%v, on a machine that was %v late", err, worst)
				}
				assert.NotContains(t, err.Error(), "unlock")
				assert.Equal(t, want != nil, errors.Is(err, latchkey.ErrUnknownOutcome), "%v", err)
				unlockInTheEnd(t, hold)
			}
		})
	}
}

// A downgrade that the server cannot answer does not delay the renewal of the owner's other reads
// for too long.
func TestDowngradeInTroubleLeavesReadsAlone(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	tap := rig.NewTap(t, server)
	const lease = 12 * time.Second
	rw := connectVia(t, server, tap.Addr(), latchkey.Options{Lease: lease, RetryBudget: lease}).NewRWLock(name)
	hold := mustLock(t, rw.Writer())
	read := mustLockUnder(hold.Context(t.Context()), t, rw.Reader())
	rest(lease / 4) // the first renewal is later
	defer tap.Refuse(func(c rig.Command) bool { return c.Script() == "rw/downgrade" }, "LOADING wait")()
	_, err := hold.Downgrade(t.Context())
	require.ErrorIs(t, err, latchkey.ErrUnavailable)
	require.NoError(t, read.Err())
	mustUnlock(t, read)
}

// A reader and a writer of the client that downgrades wait for it. The reader comes in at once,
// although the writer would keep new readers out.
func TestDowngradeLetsReadersOfTheClientIn(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	client, admin := connect(t, server, byMessageOnly), rig.NewAdmin(t, server)
	rw := client.NewRWLock(name)
	require.NoError(t, rig.InTime(t, func(int) error { // a busy machine may miss the turn of the readers
		for range 12 {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			hold := mustLock(t, rw.Writer())
			reader := lockInBackground(ctx, rw.Reader())
			readerNoted(t, admin, name)
			writer := lockInBackground(ctx, rw.Writer())
			rig.Eventually(t, soon, "the writer waits", func() error {
				if n := client.Waiting()[latchkey.KindWrite]; n != 1 {
					return fmt.Errorf("%d wait", n)
				}
				return nil
			})
			read, err := hold.Downgrade(t.Context())
			require.NoError(t, err)
			var came acquisition
			select {
			case came = <-reader:
			case <-time.After(leeway):
				cancel()
				mustUnlock(t, read)
				for _, each := range []<-chan acquisition{reader, writer} {
					if came = <-each; came.err == nil {
						mustUnlock(t, came.hold)
					}
				}
				return errors.New("the reader is kept out")
			}
			require.NoError(t, came.err)
			mustUnlock(t, came.hold)
			mustUnlock(t, read)
			came = rig.Await(t, soon, "the writer", writer)
			require.NoError(t, came.err)
			mustUnlock(t, came.hold)
		}
		return nil
	}))
}

// Two readers request the write lock, under the context of their hold and by their owner: both are
// refused without waiting.
func TestUpgradeIsRefusedAtOnce(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	all := rig.Goroutines(t)
	for range 2 {
		client := connect(t, server)
		rw := client.NewRWLock(name)
		ctx := latchkey.WithOwner(t.Context(), client.NewOwner())
		hold, err := rw.Reader().Lock(ctx)
		require.NoError(t, err)
		for _, upgrade := range []context.Context{hold.Context(t.Context()), ctx} {
			all.Go(func() {
				start := time.Now()
				_, err := rw.Writer().Lock(upgrade)
				assert.ErrorIs(t, err, latchkey.ErrUpgrade)
				_, err = rw.Writer().Lock(upgrade, latchkey.Wait(time.Minute))
				assert.ErrorIs(t, err, latchkey.ErrUpgrade)
				assert.Less(t, time.Since(start), soon)
			})
		}
		defer func() { mustUnlock(t, hold) }()
	}
	all.Wait()
}
