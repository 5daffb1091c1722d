package tests

import (
	"context"
	"errors"
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

// Nor does a member that is silent hold up each of them.
func TestRedLockIsFreeToMakeBesideASilentMember(t *testing.T) {
	t.Parallel()
	m := newMasters(t, 3)
	clients := m.clients(t)
	m.links[2].Silence()
	use := func(l *latchkey.RedLock) {
		hold, err := l.TryLock(t.Context())
		require.NoError(t, err)
		require.NoError(t, hold.Unlock(context.Background()))
	}
	one := latchkey.NewRedLock(latchkey.RedLockOptions{}, each(clients, mutexX)...)
	use(one)
	const uses = 20
	of := func(lock func() *latchkey.RedLock) time.Duration {
		start := time.Now()
		for range uses {
			use(lock())
		}
		return time.Since(start)
	}
	// What else runs makes a series slower and none quicker: one that is quick is enough.
	var control, took time.Duration
	for range 5 {
		control = of(func() *latchkey.RedLock { return one })
		took = of(func() *latchkey.RedLock {
			return latchkey.NewRedLock(latchkey.RedLockOptions{}, each(clients, mutexX)...)
		})
		t.Logf("one lock %v, a new one each time %v", control, took)
		if took < control+uses*25*time.Millisecond {
			return
		}
	}
	assert.Less(t, took, control+uses*25*time.Millisecond, "each used to wait for 50 ms")
}
