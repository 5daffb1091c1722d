package tests

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// An attempt has no deadline of its own except the retry budget. It keeps the budget on a server that hangs, however
// many callers there are, and whatever their contexts.
func TestHung_tries_keep_the_retry_budget(t *testing.T) {
	rig.Need(t, rig.Process)
	const callers, budget, margin = 2000, 1500 * time.Millisecond, 1500 * time.Millisecond
	cancelable, cancel := context.WithCancel(context.Background())
	defer cancel()
	for name, ctx := range map[string]context.Context{"endless": context.Background(), "cancelable": cancelable} {
		t.Run(name, func(t *testing.T) {
			server := rig.Fresh(t)
			client := connect(t, server, latchkey.Options{RetryBudget: budget})
			mustUnlock(t, mustLock(t, client.NewLock("first")))
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
					requireUnavailable(t, err)
				})
			}
			trying.Wait()
			t.Logf("the longest of %d took %v", callers, times.Longest())
			assert.Less(t, times.Longest(), budget+margin)
		})
	}
}

// A command that waited for a connection that never opened was never sent: its outcome is not in doubt, and there is
// nothing to undo when the server is back.
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
	_, err := client.NewLock("notices the cut").TryLock(within(t, 200*time.Millisecond))
	require.Error(t, err)
	var trying sync.WaitGroup
	for i := range callers {
		lock := client.NewLock(fmt.Sprint("name ", i))
		trying.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			defer cancel()
			_, err := lock.TryLock(ctx)
			requireUnavailable(t, err)
			assert.NotErrorIs(t, err, latchkey.ErrUnknownOutcome)
		})
	}
	trying.Wait()
	server.Resume(t)
	mustUnlock(t, mustLock(t, client.NewLock("last")))
	rest(time.Second) // for undo
	stats := admin.Since(before)
	t.Logf("since the cut: %v", stats)
	assert.Less(t, stats["evalsha"]+stats["eval"], int64(callers/2))
}
