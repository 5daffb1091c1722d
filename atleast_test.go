package latchkey

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/primitive/lock"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// When an ownership that is over is undone, its lock stays taken only if the hold was not released. An
// acquisition that arrives late, after a confirmed release, is removed.
func TestAtLeast_undo_of_what_is_over(t *testing.T) {
	for why, cause := range map[string]error{"lost": ErrLost, "released": nil} {
		t.Run(why, func(t *testing.T) {
			c := newTestClient(t, Options{})
			lock := acquire.NewLock(c.engine(), lock.Reentrant, uniqueName(t, c))
			o := c.engine().Registry.Fresh(&lock.Lock)
			o.Phase, o.Holds.Cause, o.KeptUntil = ownership.Over, cause, lease.NewBound(time.Minute, c.engine().Clock())
			runScript(c.engine(), script.LockAcquire, lock.Names.Queued(), o.Wire, "90000")
			owed := o.LastRelease()
			require.Equal(t, outcome.Answered, owed.Undo(context.Background(), nil))
			left := pttlOf(c.engine(), t, lock.Names.Key)
			if cause == nil {
				require.Equal(t, int64(-2), left)
				return
			}
			require.Equal(t, map[string]string{o.Wire + identity.KeptSuffix: "1"}, hashOf(c.engine(), t, lock.Names.Key))
			require.InDelta(t, 60000, left, 5000)

			owed.Kept.D = 0 // it is over
			runScript(c.engine(), script.LockRelease, lock.Names.Queued(), o.Wire+identity.KeptSuffix, lock.Names.Channel)
			runScript(c.engine(), script.LockAcquire, lock.Names.Queued(), o.Wire, "90000")
			require.Equal(t, outcome.Answered, owed.Undo(context.Background(), nil))
			require.Equal(t, int64(-2), pttlOf(c.engine(), t, lock.Names.Key))
		})
	}
}

// Setting the wall clock forward does not end the time sooner.
func TestAtLeast_counts_by_the_monotonic_clock(t *testing.T) {
	start := lease.Stamp{Mono: time.Hour, Wall: time.Hour}
	least := lease.NewBound(time.Minute, start)
	require.Equal(t, 50*time.Second, least.KeptFor(lease.Stamp{Mono: time.Hour + 10*time.Second, Wall: 3 * time.Hour}))
	require.Zero(t, least.KeptFor(lease.Stamp{Mono: 3 * time.Hour, Wall: time.Hour}))
	require.Zero(t, (*lease.Bound)(nil).KeptFor(start))
}

// Each form of a holder in Redis parses, and encodes to the same text again.
func TestHolders_that_are_kept(t *testing.T) {
	owner := identity.Of(ownerA)
	for text, want := range map[string]identity.Holder{
		ownerA:                 {Owner: owner, Count: 1},
		ownerA + ":kept":       {Owner: owner, Count: 1, Kept: true},
		ownerA + ":write":      {Owner: owner, Count: 1, Write: true},
		ownerA + ":kept:write": {Owner: owner, Count: 1, Write: true, Kept: true},
		"a token of mine:kept": {Owner: identity.Of("a token of mine:kept"), Count: 1},
	} {
		h := identity.ReadHolder(text, 1, strings.HasSuffix(text, ":write"))
		require.Equal(t, want, h)
		require.Equal(t, text, h.Field())
	}
}
