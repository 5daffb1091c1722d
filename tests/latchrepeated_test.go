package tests

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// Operations of a latch that are repeated, or executed late.

// Each reply of each operation is lost in turn, in every way. The operation counts once, and the
// caller learns the result, or that the outcome is unknown.
func TestLatchOperationsCountOnce(t *testing.T) {
	t.Parallel()
	rig.Long(t)
	operations := map[string]struct {
		do   func(ctx context.Context, latch *latchkey.CountDownLatch) (any, error)
		says any
		left string // in Redis, afterwards
	}{
		"TrySetCount": {func(ctx context.Context, l *latchkey.CountDownLatch) (any, error) { return l.TrySetCount(ctx, 7) }, true, "7"},
		"CountDown":   {func(ctx context.Context, l *latchkey.CountDownLatch) (any, error) { return l.CountDown(ctx) }, 4, "4"},
		"CountDownN":  {func(ctx context.Context, l *latchkey.CountDownLatch) (any, error) { return l.CountDownN(ctx, 2) }, 3, "3"},
		"CountDownAs": {func(ctx context.Context, l *latchkey.CountDownLatch) (any, error) { return l.CountDownAs(ctx, "a") }, 4, "4"},
		"Delete":      {func(ctx context.Context, l *latchkey.CountDownLatch) (any, error) { return l.Delete(ctx) }, true, ""},
	}
	for name, operation := range operations {
		for _, each := range losses {
			for n := 1; n <= 3; n++ {
				t.Run(fmt.Sprintf("%s, %s %d", name, each.name, n), func(t *testing.T) {
					t.Parallel()
					server := rig.Shared()
					admin, tap := rig.NewAdmin(t, server), rig.NewTap(t, server)
					direct := connect(t, server).NewCountDownLatch(rig.Name(t))
					if name != "TrySetCount" {
						setLatch(t, direct, 5)
					}
					latch := connectVia(t, server, tap.Addr(), latchkey.Options{RetryBudget: time.Second}).NewCountDownLatch(direct.Name())
					tap.Lose(n, rig.Mentions(direct.Name()), each.loss)
					says, err := operation.do(t.Context(), latch)
					switch {
					case err == nil:
						assert.Equal(t, operation.says, says)
						assert.Equal(t, operation.left, admin.Text("GET", direct.Name()))
					case errors.Is(err, latchkey.ErrUnknownOutcome):
						t.Log(err)
						rig.Eventually(t, undoBudget, "it is repeated", func() error {
							if now := admin.Text("GET", direct.Name()); now != operation.left {
								return errors.New("the count is " + now)
							}
							return nil
						})
					default: // it was not sent
						require.ErrorIs(t, err, latchkey.ErrUnavailable)
						says, err = operation.do(t.Context(), direct)
						require.NoError(t, err)
						assert.Equal(t, operation.says, says, "nothing was done")
					}
					rest(200 * time.Millisecond) // in case something is executed twice
					assert.Equal(t, operation.left, admin.Text("GET", direct.Name()))
				})
			}
		}
	}
}

// The round ends and another one begins while an awaiter is stalled between a message and its
// query. It learns the outcome of its own round.
func TestLatchQuickReset(t *testing.T) {
	ends := map[string]struct {
		end  func(t *testing.T, latch *latchkey.CountDownLatch)
		want error
	}{
		"opened": {func(t *testing.T, l *latchkey.CountDownLatch) { t.Helper(); countDown(t, l, 0) }, nil},
		"deleted": {func(t *testing.T, l *latchkey.CountDownLatch) {
			t.Helper()
			_, err := l.Delete(t.Context())
			require.NoError(t, err)
		}, latchkey.ErrGone},
	}
	for what, each := range ends {
		t.Run(what, func(t *testing.T) {
			server := rig.Shared()
			tap := rig.NewTap(t, server)
			latch := newLatch(t, connect(t, server), 1)
			waiting := connectVia(t, server, tap.Addr(), patient).NewCountDownLatch(latch.Name())
			opened := awaitInBackground(within(t, soon), waiting)
			awaitWaiter(t, rig.NewAdmin(t, server), latch.Name())
			quiet(t, tap)
			held := tap.HoldCommand(rig.Mentions(latch.Name()))
			each.end(t, latch)
			rig.Await(t, soon, "the awaiter is woken", held.Arrived)
			for range 5 {
				setLatch(t, latch, 1)
				countDown(t, latch, 0)
			}
			setLatch(t, latch, 1)
			held.Release()
			err := rig.Await(t, soon, "the awaiter", opened)
			if each.want == nil {
				assert.NoError(t, err)
			} else {
				assert.ErrorIs(t, err, each.want)
			}
			assert.Equal(t, 1, left(t, latch))
		})
	}
}

// hasNote reports whether a command names the note of an operation.
func hasNote(c rig.Command) bool {
	return slices.ContainsFunc(c.Args, func(arg string) bool {
		return strings.HasPrefix(arg, "latchkey_op:") && !strings.HasSuffix(arg, ":never") && !strings.HasSuffix(arg, ":kind")
	})
}

// A late count of a round that is over does not affect the next round, and neither does a late set
// or deletion.
func TestLatchDelayedOperations(t *testing.T) {
	server := rig.Shared()
	second := func(name string) rig.Match { // a command that changes the latch has a note with a number
		return func(c rig.Command) bool { return rig.Mentions(name)(c) && hasNote(c) }
	}
	for what, each := range map[string]func(ctx context.Context, latch *latchkey.CountDownLatch) (any, error){
		"CountDown":   func(ctx context.Context, l *latchkey.CountDownLatch) (any, error) { return l.CountDown(ctx) },
		"CountDownAs": func(ctx context.Context, l *latchkey.CountDownLatch) (any, error) { return l.CountDownAs(ctx, "a") },
	} {
		t.Run(what, func(t *testing.T) {
			tap := rig.NewTap(t, server)
			latch := newLatch(t, connect(t, server), 1)
			late := connectVia(t, server, tap.Addr(), persistent).NewCountDownLatch(latch.Name())
			held := tap.HoldCommand(second(latch.Name()))
			done := make(chan error, 1)
			go func() {
				says, err := each(context.Background(), late)
				if says != 0 {
					err = fmt.Errorf("it says %v (%w)", says, err)
				}
				done <- err
			}()
			rig.Await(t, soon, "the count at the tap", held.Arrived)
			countDown(t, latch, 0)
			setLatch(t, latch, 2)
			held.Release()
			require.NoError(t, rig.Await(t, soon, "the late one", done))
			assert.Equal(t, 2, left(t, latch), "the second round is as it was")
			_, err := latch.CountDownAs(t.Context(), "a")
			require.NoError(t, err)
			assert.Equal(t, 1, left(t, latch), "its participants too")
		})
	}
	t.Run("TrySetCount", func(t *testing.T) {
		tap, name := rig.NewTap(t, server), rig.Name(t)
		latch := connect(t, server).NewCountDownLatch(name)
		late := connectVia(t, server, tap.Addr(), persistent).NewCountDownLatch(name)
		held := tap.HoldCommand(second(name))
		done := make(chan bool, 1)
		rig.Goroutines(t).Go(func() {
			set, err := late.TrySetCount(context.Background(), 9)
			assert.NoError(t, err)
			done <- set
		})
		rig.Await(t, soon, "the set at the tap", held.Arrived)
		setLatch(t, latch, 1)
		countDown(t, latch, 0)
		held.Release()
		assert.False(t, rig.Await(t, soon, "the late one", done), "somebody has set it since")
		assert.NoError(t, latch.Await(within(t, soon)), "it is still open")
	})
	t.Run("Delete", func(t *testing.T) {
		tap := rig.NewTap(t, server)
		latch := newLatch(t, connect(t, server), 1)
		client := connectVia(t, server, tap.Addr())
		copied := tap.Lose(1, second(latch.Name()), rig.CutRequest)
		deleted, err := client.NewCountDownLatch(latch.Name()).Delete(t.Context())
		require.NoError(t, err)
		require.True(t, deleted)
		setLatch(t, latch, 3)
		rig.NewAdmin(t, server).Do(rig.Await(t, soon, "the copy", copied).Args...)
		assert.Equal(t, 3, left(t, latch))
	})
}
