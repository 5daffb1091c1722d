package ownership_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/primitive/lock"
	"github.com/latchkey-go/latchkey/internal/testredis"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// When an ownership that is over is undone, its lock stays taken only if the hold was not released.
// An acquisition that arrives late, after a confirmed release, is removed.
func TestAtLeast_undo_of_what_is_over(t *testing.T) {
	for why, cause := range map[string]error{"lost": fault.ErrLost, "released": nil} {
		t.Run(why, func(t *testing.T) {
			c := testredis.NewEngine(t)
			lock := acquire.NewLock(c, lock.Reentrant, testredis.UniqueName(t, c))
			o := ownership.Fresh(&lock.Lock)
			o.Phase, o.Holds.Cause, o.KeptUntil = ownership.Over, cause, lease.NewBound(time.Minute, c.Clock())
			testredis.RunScript(c, script.LockAcquire, lock.Names.Queued(), o.Wire, "90000")
			owed := o.LastRelease()
			require.Equal(t, outcome.Answered, owed.Undo(context.Background(), nil))
			left := testredis.PTTLOf(t, c, lock.Names.Key)
			if cause == nil {
				require.Equal(t, int64(-2), left)
				return
			}
			require.Equal(t, map[string]string{o.Wire + identity.KeptSuffix: "1"}, testredis.HashOf(t, c, lock.Names.Key))
			require.InDelta(t, 60000, left, 5000)

			owed.Kept.D = 0 // it is over
			testredis.RunScript(c, script.LockRelease, lock.Names.Queued(), o.Wire+identity.KeptSuffix, lock.Names.Channel)
			testredis.RunScript(c, script.LockAcquire, lock.Names.Queued(), o.Wire, "90000")
			require.Equal(t, outcome.Answered, owed.Undo(context.Background(), nil))
			require.Equal(t, int64(-2), testredis.PTTLOf(t, c, lock.Names.Key))
		})
	}
}
