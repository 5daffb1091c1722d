package tests

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
)

// Two of five servers are down when the RedLock is made: it still needs three of the five. When
// they are back, it uses them.
func TestRedLockMadeWhileServersAreDown(t *testing.T) {
	t.Parallel()
	m := newMasters(t, 5)
	m.links[0].Cut()
	m.links[1].Cut()
	l := m.unhurried(t, "x", latchkey.Options{LazyConnect: true, Lease: 5 * time.Second, RetryBudget: 2 * time.Second})
	mustUnlock(t, mustLock(t, l))
	m.comesTo(t, "x", 0)
	m.takeAway(4, "x")
	_, err := l.TryLock(t.Context())
	requireBusy(t, err) // two would be a majority of the three reachable members
	require.ErrorContains(t, err, "2 of 5 members acquired, 3 needed")
	m.admins[4].Do("DEL", "x")

	hold := mustLock(t, l)
	m.comesTo(t, "x", 3)
	m.links[0].Restore()
	m.links[1].Restore()
	m.comesTo(t, "x", 5)
	mustUnlock(t, hold)
	m.comesTo(t, "x", 0)
	m.links[2].Cut()
	m.links[3].Cut()
	mustUnlock(t, mustLock(t, l))
	m.comesTo(t, "x", 0, 0, 1, 4)
}
