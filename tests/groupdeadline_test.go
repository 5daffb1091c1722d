package tests

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// A group cannot be acquired, and a member that it acquired is slow to release. The call keeps its
// deadline nevertheless, and in the end nothing is held.
func TestGroupsKeepToTheDeadline(t *testing.T) {
	const deadline, margin = 400 * time.Millisecond, 400 * time.Millisecond
	for what, group := range map[string]func(members []latchkey.Locker) anyLock{
		"MultiLock": func(members []latchkey.Locker) anyLock { return latchkey.NewMultiLock(members...) },
		"RedLock": func(members []latchkey.Locker) anyLock {
			return latchkey.NewRedLock(latchkey.RedLockOptions{MemberTimeout: soon}, members...)
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			m := newMasters(t, 3)
			tap := rig.NewTap(t, m.servers[0])
			clients := m.clients(t)
			clients[0] = connectVia(t, m.servers[0], tap.Addr())
			lock := group(each(clients, mutexX))
			mustUnlock(t, mustLock(t, lock)) // scripts and connections are ready
			m.comesTo(t, "x", 0)
			m.takeAway(1, "x")
			m.takeAway(2, "x")
			m.links[1].DelayReplies(deadline / 4) // the first member is acquired before the others refuse
			m.links[2].DelayReplies(deadline / 4)
			try := func(int) error {
				taken := tap.HoldReplies(rig.Both(rig.Mentions("x"), rig.Named("EVALSHA")))
				defer m.comesTo(t, "x", 0, 0)
				defer taken.Release()
				ctx, cancel := context.WithTimeout(t.Context(), deadline)
				defer cancel()
				start := time.Now()
				_, err := lock.TryLock(ctx)
				took := time.Since(start)
				if errors.Is(err, latchkey.ErrUnavailable) {
					return fmt.Errorf("the deadline passed before the others had refused: %w", err)
				}
				require.ErrorIs(t, err, latchkey.ErrNotAcquired)
				if took >= deadline+margin {
					return fmt.Errorf("it took %v: a member is waited for 500 ms more, or as long as it may take", took)
				}
				return nil
			}
			assert.NoError(t, rig.InTime(t, try))
		})
	}
}
