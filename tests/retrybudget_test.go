package tests

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// An attempt has no deadline of its own except the retry budget. It keeps the budget on a server
// that hangs, however many callers there are, and whatever their contexts.
func TestHung_tries_keep_the_retry_budget(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Process)
	// If the callers waited for each other, the last would take ten times the budget.
	const callers, inFlight, budget = 600, 60, 1500 * time.Millisecond
	cancelable, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	for name, ctx := range map[string]context.Context{
		"endless": context.Background(), "cancelable": cancelable, "ends later": within(t, time.Hour), // the tests run later
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := rig.Fresh(t)
			client := connect(t, server, latchkey.Options{RetryBudget: budget, Tuning: latchkey.Tuning{MaxInFlight: inFlight}})
			rig.Eventually(t, soon, "the client has used the server", func() error {
				return client.NewLock("first").Do(within(t, soon), func(context.Context) error { return nil })
			})
			server.Pause(t)
			defer server.Resume(t)
			var trying sync.WaitGroup
			times := rig.NewTally(callers)
			for i := range callers {
				lock := client.NewLock(fmt.Sprint("name ", i))
				trying.Go(func() {
					start := time.Now()
					_, err := lock.TryLock(ctx)
					times.Add(i, time.Since(start))
					if ctx.Err() == nil || errors.Is(err, latchkey.ErrUnavailable) { // else it may have begun too late to be sent
						requireUnavailable(t, err)
					}
				})
			}
			trying.Wait()
			t.Logf("the longest of %d took %v", callers, times.Longest())
			tookAbout(t, budget, times.Longest())
		})
	}
}

// A command that waited for a connection that never opened was never sent: its outcome is not in
// doubt, and there is nothing to undo when the server is back.
func TestHung_what_was_not_sent_is_not_in_doubt(t *testing.T) {
	rig.Need(t, rig.Process)
	const callers = 100
	server := rig.Fresh(t)
	admin, tap := rig.NewAdmin(t, server), rig.NewTap(t, server)
	client := connectVia(t, server, tap.Addr())
	mustUnlock(t, mustLock(t, client.NewLock("first")))
	before := admin.CommandStats()
	server.Pause(t)
	tap.Cut()
	opened := tap.Accepted()
	rig.Eventually(t, soon, "the client notices the cut", func() error {
		_, err := client.NewLock("notices the cut").TryLock(within(t, 50*time.Millisecond))
		require.Error(t, err)
		if tap.Accepted() == opened {
			return errors.New("it opens no new connection")
		}
		return nil
	})
	trying := rig.Goroutines(t)
	for i := range callers {
		lock := client.NewLock(fmt.Sprint("name ", i))
		trying.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_, err := lock.TryLock(ctx)
			requireUnavailable(t, err)
			assert.NotErrorIs(t, err, latchkey.ErrUnknownOutcome)
		})
	}
	trying.Wait()
	server.Resume(t)
	mustUnlock(t, mustLock(t, client.NewLock("last")))
	rest(300 * time.Millisecond) // for undo
	stats := admin.Since(before)
	t.Logf("since the cut: %v", stats)
	assert.Less(t, stats["evalsha"]+stats["eval"], int64(callers/2))
}
