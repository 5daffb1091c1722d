package tests

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// undoBudget is how long a failed acquisition may remain on the server once the link works again,
// also on a busy machine: a third of the default lease.
const undoBudget = defaultLease / 3

var losses = []struct {
	name string
	loss rig.Loss
}{
	{"reply lost, connection cut", rig.Cut},
	{"reply lost, connection silent", rig.Mute},
	{"request lost", rig.CutRequest},
}

// The reply of the n-th command is lost, for every n of a run that locks, re-enters and unlocks.
// Everything that the caller learned is true, and what failed is undone.
func TestNthReplyLost(t *testing.T) {
	t.Parallel()
	rig.Long(t)
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		warmUp(t, k)
		clean := newLossRun(t, k)
		clean.lockEnterUnlock()
		require.Equal(t, allFine, clean.outcome, "nothing was lost in this run")
		for _, each := range losses {
			for n := range clean.tap.Commands() {
				t.Run(fmt.Sprintf("%s %d", each.name, n+1), func(t *testing.T) {
					t.Parallel()
					loseNth(t, k, n+1, each.loss)
				})
			}
		}
	})
}

func loseNth(t *testing.T, k kind, n int, loss rig.Loss) {
	t.Helper()
	r := newLossRun(t, k)
	hit := r.tap.Lose(n, rig.Any, loss)
	r.lockEnterUnlock()
	command := rig.Await(t, soon, "the loss", hit)
	t.Logf("%s: lock, enter, leave, unlock say %v", command.Name(), r.outcome)
}

// lossRun is a client behind a tap, and an admin that sees the state of the server.
type lossRun struct {
	t       *testing.T
	kind    kind
	name    string
	tap     *rig.Tap
	admin   *rig.Admin
	lock    anyLock
	outcome outcome
}

// outcome is the result of each step.
type outcome struct{ lock, enter, leave, unlock error }

var allFine outcome

func (o outcome) String() string {
	return fmt.Sprintf("[%v] [%v] [%v] [%v]", o.lock, o.enter, o.leave, o.unlock)
}

func newLossRun(t *testing.T, k kind) *lossRun {
	t.Helper()
	return newLossRunWith(t, k, latchkey.Options{RetryBudget: 2 * time.Second})
}

func newLossRunWith(t *testing.T, k kind, options latchkey.Options) *lossRun {
	t.Helper()
	server := rig.Shared()
	tap := rig.NewTap(t, server)
	client := connectVia(t, server, tap.Addr(), options)
	name := rig.Name(t)
	return &lossRun{t: t, kind: k, name: name, tap: tap, admin: rig.NewAdmin(t, server), lock: k.open(client, name)}
}

func (r *lossRun) lockEnterUnlock() {
	ctx := within(r.t, 20*time.Second)
	hold, err := r.lock.Lock(ctx)
	if r.outcome.lock = err; err != nil {
		r.failed(hold, err, 0)
		return
	}
	r.counts(1)
	if r.kind.reentrant {
		r.enterAndLeave(hold.Context(ctx))
	}
	r.outcome.unlock = hold.Unlock(ctx)
	r.released(r.outcome.unlock, 0)
	if r.outcome.unlock == nil {
		assert.ErrorIs(r.t, hold.Unlock(ctx), latchkey.ErrNotHeld, "a second unlock")
	}
}

func (r *lossRun) enterAndLeave(ctx context.Context) {
	inner, err := r.lock.Lock(ctx)
	if r.outcome.enter = err; err != nil {
		r.failed(inner, err, 1)
		return
	}
	r.counts(2)
	r.outcome.leave = inner.Unlock(ctx)
	r.released(r.outcome.leave, 1)
}

// counts checks the current hold count on the server.
func (r *lossRun) counts(want int64) {
	r.t.Helper()
	require.Equal(r.t, want, countInRedis(r.t, r.admin, r.name), "hold count in Redis")
}

// comesToCount waits until the server has this hold count, because what failed is undone.
func (r *lossRun) comesToCount(want int64) {
	r.t.Helper()
	rig.Eventually(r.t, undoBudget, "the undo", func() error {
		if got := countInRedis(r.t, r.admin, r.name); got != want {
			return fmt.Errorf("hold count %d, not %d", got, want)
		}
		return nil
	})
}

// failed checks an acquisition that was reported as failed.
func (r *lossRun) failed(hold *latchkey.Hold, err error, want int64) {
	r.t.Helper()
	assert.Nil(r.t, hold)
	requireUnavailable(r.t, err)
	r.comesToCount(want)
}

// released checks an Unlock: after nil the count is correct at once, and after an unknown outcome
// it becomes correct. Any other error would be wrong.
func (r *lossRun) released(err error, want int64) {
	r.t.Helper()
	if err == nil {
		r.counts(want)
		return
	}
	require.ErrorIs(r.t, err, latchkey.ErrUnknownOutcome)
	r.comesToCount(want)
}

// A waiter's replies are lost one by one, while another client holds the lock and then releases it.
func TestNthReplyLostWhileWaiting(t *testing.T) {
	t.Parallel()
	rig.Long(t)
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		for _, each := range losses {
			for n := 1; n <= 6; n++ {
				t.Run(fmt.Sprintf("%s %d", each.name, n), func(t *testing.T) {
					t.Parallel()
					loseNthOfWaiter(t, k, n, each.loss)
				})
			}
		}
	})
}

func loseNthOfWaiter(t *testing.T, k kind, n int, loss rig.Loss) {
	t.Helper()
	r := newLossRun(t, k)
	holder := mustLock(t, k.open(connect(t, rig.Shared()), r.name))
	r.tap.Lose(n, rig.Any, loss)
	waiter := lockInBackground(within(t, 20*time.Second), r.lock)
	rest(150 * time.Millisecond) // any moment of the wait will do
	mustUnlock(t, holder)

	got := rig.Await(t, 25*time.Second, "the waiter", waiter)
	if got.err != nil {
		r.failed(got.hold, got.err, 0)
		return
	}
	r.counts(1)
	r.released(got.hold.Unlock(context.Background()), 0)
}

// The caller gives up before the reply arrives. The lock that it holds without knowing is undone
// long before its lease ends.
func TestReplyTooLateForTheCaller(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		r := newLossRun(t, k)
		mustUnlock(t, mustLock(t, r.lock)) // the server knows the script
		held := r.tap.HoldReply(rig.Mentions(r.name))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		caller := lockInBackground(ctx, r.lock)
		rig.Await(t, soon, "the reply at the tap", held.Arrived)
		r.counts(1) // executed, unknown to the caller
		cancel()
		got := rig.Await(t, soon, "the caller", caller)
		require.ErrorIs(t, got.err, context.Canceled)
		requireUnavailable(t, got.err)
		assert.ErrorIs(t, got.err, latchkey.ErrUnknownOutcome)
		assert.Nil(t, got.hold)
		held.Release()
		r.comesToCount(0)
	})
}

// An acquisition is executed after the caller gave up, and after the first undo, like a late packet
// on a forgotten connection. It is undone nevertheless.
func TestAcquisitionExecutedAfterItsUndo(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		r := newLossRun(t, k)
		mustUnlock(t, mustLock(t, k.open(connect(t, rig.Shared()), r.name))) // its server knows the script that is sent late
		first := r.tap.Lose(1, rig.Mentions(r.name), rig.CutRequest)
		heal := r.tap.LoseAll(rig.Mentions(r.name), rig.CutRequest)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		caller := lockInBackground(ctx, r.lock)
		acquisition := rig.Await(t, soon, "the acquisition", first)
		cancel()
		require.ErrorIs(t, rig.Await(t, soon, "the caller", caller).err, context.Canceled)

		// One undo succeeds, and the acquisition is executed after it. The undo is repeated, but
		// refused until then.
		undo := r.tap.HoldReply(func(c rig.Command) bool {
			return rig.Mentions(r.name)(c) && !slices.Equal(c.Args[:2], acquisition.Args[:2]) // another script
		})
		undoAgain := r.tap.Refuse(rig.Mentions(r.name), "LOADING later")
		heal()
		rig.Await(t, soon, "an undo", undo.Arrived)
		undo.Release()
		r.admin.Do(acquisition.Args...)
		r.counts(1)
		undoAgain()
		r.comesToCount(0)
		mustUnlock(t, mustLock(t, k.open(connect(t, rig.Shared()), r.name)))
	})
}

// warmUp loads the scripts of a kind on the shared server.
func warmUp(t *testing.T, k kind) {
	t.Helper()
	mustUnlock(t, mustLock(t, k.open(connect(t, rig.Shared()), rig.Name(t))))
}

// A command that is sent twice counts once: the first reply is lost, and the retry succeeds.
func TestRepeatedCommandsCountOnce(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		r := newLossRunWith(t, k, persistent)
		r.tap.Lose(1, rig.Mentions(r.name), rig.Cut)
		hold := mustLock(t, r.lock)
		r.counts(1)
		if k.fenced {
			assert.Equal(t, int64(1), hold.Token(), "one token")
			assert.Equal(t, "1", r.admin.Text("GET", tokenKey(r.name)))
		}
		r.tap.Lose(1, rig.Mentions(r.name), rig.Cut)
		r.tap.Lose(2, rig.Mentions(r.name), rig.Cut)
		require.NoError(t, hold.Unlock(t.Context()), "a release whose reply was lost twice")
		r.counts(0)
	})
}

// Unlock was executed, but its reply was lost, and it returned ErrUnknownOutcome. "Unlock may be
// called again to wait for it": no later call reports a loss, and in the end one confirms the
// release.
func TestUnlockAgainAfterAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	rig.Long(t)
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		for range 2 { // the background or the second call may be quicker
			t.Run("", func(t *testing.T) {
				t.Parallel()
				r := newLossRun(t, k)
				hold := mustLock(t, r.lock)
				r.tap.Lose(1, rig.Any, rig.Mute)
				require.ErrorIs(t, hold.Unlock(t.Context()), latchkey.ErrUnknownOutcome)
				r.comesToCount(0)
				rig.Eventually(t, soon, "the link is back", func() error {
					err := hold.Unlock(t.Context())
					require.NotErrorIs(t, err, latchkey.ErrNotHeld)
					return err
				})
				assert.ErrorIs(t, hold.Unlock(t.Context()), latchkey.ErrNotHeld)
			})
		}
	}, func(k kind) bool { return !k.fenced })
}
