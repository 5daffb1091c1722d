package tests

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// A RedLock may be made anew for each use: its clients ask their servers who they are
// once, and again after each reconnect.
func TestRedLockIsFreeToMake(t *testing.T) {
	t.Parallel()
	m := newMasters(t, 3)
	tap := rig.NewTap(t, m.servers[0])
	clients := m.clients(t)
	clients[0] = connectVia(t, m.servers[0], tap.Addr())
	use := func() {
		mustUnlock(t, mustLock(t, latchkey.NewRedLock(latchkey.RedLockOptions{}, each(clients, mutexX)...)))
	}
	asked := int64(0) // by ourselves, too
	infos := func() int64 { asked++; return m.admins[0].CommandStats()["info"] - asked + 1 }
	before := infos()
	for range 20 {
		use()
	}
	require.EqualValues(t, 1, infos()-before)
	tap.Cut()
	rig.Eventually(t, soon, "it is asked again", func() error {
		use()
		if infos()-before < 2 {
			return errors.New("not yet")
		}
		return nil
	})
	for range 20 {
		use()
	}
	require.LessOrEqual(t, infos()-before, int64(4), "several connections are cut")
}

// Nor does a member that is silent hold up each of them. What else runs here makes some uses
// slower, and none quicker: so the median counts, of the best of some series.
func TestRedLockIsFreeToMakeBesideASilentMember(t *testing.T) {
	t.Parallel()
	const uses, usedToWait = 20, 50 * time.Millisecond
	m := newMasters(t, 3)
	clients := m.clients(t)
	m.links[2].Silence()
	use := func() time.Duration {
		start := time.Now()
		l := latchkey.NewRedLock(latchkey.RedLockOptions{MemberTimeout: soon}, each(clients, mutexX)...)
		hold, err := l.TryLock(t.Context())
		require.NoError(t, err)
		require.NoError(t, hold.Unlock(context.Background()))
		return time.Since(start)
	}
	use() // the first waits
	var took []time.Duration
	for range 5 {
		took = took[:0]
		for range uses {
			took = append(took, use())
		}
		slices.Sort(took)
		t.Log(took)
		if took[uses/2] < usedToWait {
			return
		}
	}
	assert.Less(t, took[uses/2], usedToWait)
}
