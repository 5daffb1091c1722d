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
		mustUnlock(t, mustLock(t, latchkey.NewRedLock(latchkey.RedLockOptions{MemberTimeout: soon}, each(clients, mutexX)...)))
	}
	asked := int64(0) // including our own queries
	infos := func() int64 { asked++; return m.admins[0].CommandStats()["info"] - asked + 1 }
	before := infos()
	untilAsked := func(times int64) {
		t.Helper()
		rig.Eventually(t, soon, "it is asked", func() error {
			use()
			if infos()-before < times {
				return errors.New("not yet")
			}
			return nil
		})
	}
	untilAsked(1)
	for range 20 {
		use()
	}
	require.EqualValues(t, 1, infos()-before)
	tap.Cut()
	untilAsked(2)
	for range 20 {
		use()
	}
	require.LessOrEqual(t, infos()-before, int64(4), "several connections are cut")
}

// A silent member does not delay each new RedLock either. The control is a RedLock without a silent
// member, used in turn with the other. Other load makes some uses slower, so the test compares
// medians, and the best of several series counts.
func TestRedLockIsFreeToMakeBesideASilentMember(t *testing.T) {
	t.Parallel()
	const uses, usedToWait = 10, 50 * time.Millisecond
	m := newMasters(t, 3)
	besideSilent, control := m.clients(t), make([]*latchkey.Client, len(m.servers))
	for i, server := range m.servers {
		control[i] = connect(t, server)
	}
	m.links[2].Silence()
	use := func(name string, clients []*latchkey.Client) time.Duration {
		start := time.Now()
		mutex := func(c *latchkey.Client) *latchkey.Lock { return c.NewMutex(name) }
		l := latchkey.NewRedLock(latchkey.RedLockOptions{MemberTimeout: soon}, each(clients, mutex)...)
		hold, err := l.TryLock(t.Context())
		require.NoError(t, err)
		require.NoError(t, hold.Unlock(context.Background()))
		return time.Since(start)
	}
	use("x", besideSilent)
	use("control", control)
	var slow, usual time.Duration
	for range 5 {
		var all [2][]time.Duration
		for range uses {
			all[0], all[1] = append(all[0], use("x", besideSilent)), append(all[1], use("control", control))
		}
		slices.Sort(all[0])
		slices.Sort(all[1])
		slow, usual = median(all[0]), median(all[1])
		t.Logf("%v, without a silent member %v", slow, usual)
		if slow < 2*usual+usedToWait {
			return
		}
	}
	assert.Less(t, slow, 2*usual+usedToWait)
}
