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

// You can make a new RedLock for each use: its clients query the identity of their servers once,
// and again after each reconnect.
func TestRedLockIsFreeToMake(t *testing.T) {
	t.Parallel()
	m := newMasters(t, 3)
	tap := rig.NewTap(t, m.servers[0])
	clients := m.clients(t)
	clients[0] = connectVia(t, m.servers[0], tap.Addr())
	use := func() {
		mustUnlock(t, mustLock(t, latchkey.NewRedLock(latchkey.RedLockOptions{}, each(clients, mutexX)...)))
	}
	asked := int64(0) // including our own queries
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

// A silent member does not delay each new RedLock either. Other load makes some uses slower and
// none faster, so the test compares the median, and the best of several series counts.
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
	use() // the first use waits
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
