package tests

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// Locks and releases that goroutines of a client request at the same moment go to the server in one
// command.

const companions = 64

// startOthers starts goroutines that each acquire and release a lock of their own, as often as they
// can, until stop is called. stop returns the number of acquisitions.
func startOthers(t *testing.T, client *latchkey.Client, prefix string) (stop func() int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	all := rig.Goroutines(t)
	var done atomic.Int64
	for i := range companions {
		all.Go(func() {
			lock := client.NewLock(fmt.Sprint(prefix, i))
			for ctx.Err() == nil {
				hold, err := lock.Lock(context.WithoutCancel(ctx))
				if !assert.NoError(t, err) || !assert.NoError(t, hold.Unlock(t.Context())) {
					return
				}
				done.Add(1)
			}
		})
	}
	return func() int64 {
		cancel()
		all.Wait()
		return done.Load()
	}
}

// Many requests at the same moment cost the server a fraction of a command each.
func TestTogether_costs_few_commands(t *testing.T) {
	rig.Need(t, rig.Single)
	name, tap := rig.Name(t), rig.NewTap(t, rig.Shared())
	client := connectVia(t, rig.Shared(), tap.Addr(), persistent)
	stop := startOthers(t, client, name)
	rest(300 * time.Millisecond)
	acquired := stop()
	sent := len(tap.Commands())
	t.Logf("%d commands for %d acquisitions", sent, acquired)
	assert.Less(t, int64(sent), acquired)
	assert.Empty(t, rig.NewAdmin(t, rig.Shared()).Dump(name+"*"))
}

// A key of another kind is an error only for the call that uses it.
func TestTogether_keeps_errors_apart(t *testing.T) {
	rig.Need(t, rig.Single)
	name, admin := rig.Name(t), rig.NewAdmin(t, rig.Shared())
	client := connect(t, rig.Shared(), persistent)
	admin.Do("SET", name+"string", "of an application that is no token")
	admin.Do("LPUSH", name+"list", "x")
	stop := startOthers(t, client, name)
	for range 15 {
		for _, wrong := range []string{"string", "list"} {
			_, err := client.NewLock(name + wrong).TryLock(t.Context())
			require.ErrorIs(t, err, latchkey.ErrWrongKind)
		}
	}
	assert.Positive(t, stop())
	assert.Equal(t, "of an application that is no token", admin.Text("GET", name+"string"))
}

// A key that the user may not use is an error only for the call that uses it.
func TestTogether_keeps_rights_apart(t *testing.T) {
	rig.Need(t, rig.Settings, rig.Single)
	server := rig.Fresh(t)
	rig.NewAdmin(t, server).Do("ACL", "SETUSER", "narrow", "on", "nopass", "~mine*", "~*{mine*", "&*", "+@all")
	option := rueidis.ClientOption{InitAddress: []string{server.Addr()}, Username: "narrow", Password: "any"}
	client, err := latchkey.Open(within(t, soon), option, latchkey.Options{RetryBudget: soon, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close(within(t, soon))) })
	stop := startOthers(t, client, "mine")
	for range 15 {
		var refusal *rueidis.RedisError
		_, err := client.NewLock("theirs").TryLock(t.Context())
		require.ErrorAs(t, err, &refusal)
		require.ErrorContains(t, refusal, "NOPERM")
	}
	assert.Positive(t, stop())
}

// A caller that gives up does not affect the others: they are served, and its own request is
// undone.
func TestTogether_a_caller_leaves(t *testing.T) {
	rig.Need(t, rig.Single)
	name, tap := rig.Name(t), rig.NewTap(t, rig.Shared())
	client, admin := connectVia(t, rig.Shared(), tap.Addr(), persistent), rig.NewAdmin(t, rig.Shared())
	stop := startOthers(t, client, name)
	for i := range 8 {
		lock := fmt.Sprint(name, "leaves", i)
		asked := tap.HoldReply(rig.Mentions(lock))
		ctx, cancel := context.WithCancel(t.Context())
		done := lockInBackground(ctx, client.NewLock(lock))
		rig.Await(t, soon, "the question", asked.Arrived)
		cancel()
		left := rig.Await(t, soon, "the caller", done)
		require.ErrorIs(t, left.err, latchkey.ErrUnknownOutcome)
		asked.Release()
		rig.Eventually(t, soon, "it is undone", free(admin, lock))
	}
	assert.Positive(t, stop())
}

// A call without a limit waits for its reply, even if that takes longer than the retry budget.
func TestTogether_waits_for_a_server_that_stands_still(t *testing.T) {
	rig.Need(t, rig.Single, rig.Settings)
	t.Parallel()
	const calls = 16
	server := rig.Fresh(t)
	var failed atomic.Int64
	client := connect(t, server, latchkey.Options{RetryBudget: 300 * time.Millisecond, Observer: func(e latchkey.Event) {
		if e.Type == latchkey.EventAttempt && e.Err != nil {
			failed.Add(1)
		}
	}})
	_ = client.NewLock("warm").Do(within(t, soon), func(context.Context) error { return nil }) // loads the script
	failed.Store(0)
	for round := range 2 {
		rig.NewAdmin(t, server).Do("CLIENT", "PAUSE", "1000")
		all := rig.Goroutines(t)
		for i := range calls {
			all.Go(func() {
				hold, err := client.NewLock(fmt.Sprint("still", round, i)).Lock(t.Context())
				if !assert.NoError(t, err) {
					return
				}
				if err := hold.Unlock(t.Context()); err != nil { // on a busy machine it may take longer than the budget
					assert.ErrorIs(t, err, latchkey.ErrUnknownOutcome)
				}
			})
		}
		all.Wait()
	}
	rig.Eventually(t, soon, "all is released", free(rig.NewAdmin(t, server), "still"))
	require.NoError(t, client.Close(within(t, soon))) // which delivers all events
	assert.Zero(t, failed.Load(), "attempts")
}

// Callers give up at every moment, and the server forgets its scripts, so that groups are sent
// late: what these callers acquired does not stay held.
func TestTogether_callers_leave_and_groups_are_late(t *testing.T) {
	rig.Need(t, rig.Single, rig.Settings)
	t.Parallel()
	server := rig.Fresh(t)
	client, admin := connect(t, server, persistent), rig.NewAdmin(t, server)
	stop := startOthers(t, client, "stays")
	ctx, cancel := context.WithTimeout(t.Context(), rig.Lasting(time.Second))
	defer cancel()
	leaving := rig.Goroutines(t)
	for i := range 4 {
		leaving.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				brief, cancel := context.WithTimeout(ctx, rand.N(15*time.Millisecond))
				hold, err := client.NewLock(fmt.Sprint("leaves", i, ":", n)).Lock(brief)
				cancel()
				if err == nil {
					assert.NoError(t, hold.Unlock(t.Context()))
				}
			}
		})
	}
	for ctx.Err() == nil {
		admin.Do("SCRIPT", "FLUSH")
		rest(3 * time.Millisecond)
	}
	leaving.Wait()
	assert.Positive(t, stop())
	rig.Eventually(t, soon, "nothing is left", func() error {
		if left := admin.Keys("leaves*"); len(left) > 0 {
			return fmt.Errorf("%d locks", len(left))
		}
		return nil
	})
}

// Replies are lost, and callers give up: no lock has two holders, and none stays held.
func TestTogether_with_lost_replies(t *testing.T) {
	rig.Need(t, rig.Single)
	name, tap := rig.Name(t), rig.NewTap(t, rig.Shared())
	client := connectVia(t, rig.Shared(), tap.Addr(), persistent)
	stop := startOthers(t, client, name)
	for range 6 {
		rig.Await(t, soon, "a lost reply", tap.Lose(10, rig.MentionsPrefix(name), rig.Cut))
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		if hold, err := client.NewLock(name + "impatient").Lock(ctx); err == nil {
			mustUnlock(t, hold)
		}
		cancel()
	}
	assert.Positive(t, stop())
	admin := rig.NewAdmin(t, rig.Shared())
	rig.Eventually(t, soon, "nothing is left", func() error {
		if left := admin.Keys(name + "*"); len(left) > 0 {
			return fmt.Errorf("%v", left)
		}
		return nil
	})
}
