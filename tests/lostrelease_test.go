package tests

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// A release whose reply is lost may have put another owner of the same client into the queue, or
// have given it the lock. Whoever waits goes on within the time that a lost message costs, wherever
// it waits, and not when a lease ends.
func TestLostRelease_waiters_go_on(t *testing.T) {
	t.Parallel()
	for what, kind := range passedOn {
		for _, each := range losses {
			for _, who := range []waitersOfLostRelease{{"in both", 2, 1}, {"in this client", 2, 0}, {"in another", 0, 1}} {
				if testing.Short() && who.mine*who.theirs == 0 {
					continue
				}
				t.Run(what+", "+each.name+", "+who.name, func(t *testing.T) {
					t.Parallel()
					require.NoError(t, rig.InTime(t, func(before int) error {
						return who.goOn(t, kind, each.loss, fmt.Sprintf("%s:%d", rig.Name(t), before))
					}))
				})
			}
		}
	}
}

// waitersOfLostRelease says how many goroutines wait when the reply to a release is lost.
type waitersOfLostRelease struct {
	name         string
	mine, theirs int
}

// longestStall is how long something free may have waiters if a message was lost, and a second.
const longestStall = defaultPollCeiling + time.Second

// goOn loses the reply to a release, and reports who waited for longer than promised.
func (w waitersOfLostRelease) goOn(t *testing.T, kind passedKind, loss rig.Loss, name string) error {
	t.Helper()
	server, ctx := rig.Shared(), within(t, 2*time.Minute)
	tap := rig.NewTap(t, server)
	const lease = 5 * time.Minute
	kind.prepare(t, server, name)
	client := connectVia(t, server, tap.Addr(), latchkey.Options{RetryBudget: 2 * time.Second, Tuning: latchkey.Tuning{Turn: -1}, Lease: lease})
	held, err := kind.holds(client, name)(ctx)
	require.NoError(t, err)

	next := make(chan nextTaken, w.mine+w.theirs)
	wait := func(c *latchkey.Client, n int) {
		one := kind.waits(c, name)
		for range n {
			go func() { got, err := one(ctx); next <- nextTaken{got, err, time.Now()} }()
		}
		waitTogether(t, c, n)
	}
	if w.theirs > 0 {
		other := connect(t, server, latchkey.Options{Lease: lease})
		wait(other, w.theirs)
		if kind.queued {
			inQueueOf(t, other, name, 1)
		}
	}
	wait(client, w.mine)
	lost := tap.Lose(1, rig.Mentions(name), loss)
	_ = held.release(context.Background())
	rig.Await(t, soon, "the loss", lost)

	var stalls []time.Duration
	tokens := []int64{held.token}
	for range w.mine + w.theirs {
		since := time.Now()
		got := rig.Await(t, time.Minute, "the next holder", next)
		require.NoError(t, got.err)
		require.True(t, held.valid == 0 || got.valid > 0, "it is lost")
		stalls, tokens = append(stalls, got.at.Sub(since)), append(tokens, got.token)
		if err := got.release(ctx); !errors.Is(err, latchkey.ErrUnknownOutcome) { // over the connection that is still silent
			require.NoError(t, err)
		}
	}
	if held.token != 0 {
		assert.IsIncreasing(t, tokens)
	}
	again, err := kind.holds(client, name)(ctx)
	require.NoError(t, err)
	require.NoError(t, again.release(ctx))
	if kind.set == nil {
		rig.Eventually(t, soon, "all is free", free(rig.NewAdmin(t, server), name))
	}
	if slices.Max(stalls) > longestStall {
		return fmt.Errorf("something free had waiters for %v", stalls)
	}
	return nil
}

// nextTaken is what a waiter acquired, and when.
type nextTaken struct {
	taken
	err error
	at  time.Time
}

// inQueueOf waits until the queue on the server has n entries.
func inQueueOf(t *testing.T, c *latchkey.Client, name string, n int) {
	t.Helper()
	rig.Eventually(t, soon, "the queue", func() error {
		found, err := c.Inspect(t.Context(), name)
		if err == nil && found.Queued != n {
			err = fmt.Errorf("%d in the queue, want %d", found.Queued, n)
		}
		return err
	})
}
