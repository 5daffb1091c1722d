package tests

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// Groups that cannot be held are refused before anything is sent for any of their members.
func TestMultiLockThatCannotBeHeldSendsNothing(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	tap := rig.NewTap(t, server)
	client := connectVia(t, server, tap.Addr())
	a, b, c := client.NewLock(name+"a"), client.NewLock(name+"b"), client.NewLock(name+"c")
	rw := client.NewRWLock(name + "rw")
	mustUnlock(t, mustLock(t, a))
	tap.Forget()
	var noMulti *latchkey.MultiLock
	var noRed *latchkey.RedLock
	var noLock *latchkey.Lock
	for what, l := range map[string]anyLock{
		"a group of none":            latchkey.NewMultiLock(a, latchkey.NewMultiLock()),
		"a group of none, deeper":    latchkey.NewMultiLock(a, latchkey.NewMultiLock(b, latchkey.NewMultiLock())),
		"a majority of none":         latchkey.NewMultiLock(a, latchkey.NewRedLock(latchkey.RedLockOptions{})),
		"a group of none, red":       latchkey.NewRedLock(latchkey.RedLockOptions{}, a, b, latchkey.NewMultiLock()),
		"a name that cannot be used": latchkey.NewMultiLock(a, client.NewLock("")),
		"such a name, red":           latchkey.NewRedLock(latchkey.RedLockOptions{}, a, b, client.NewLock("")),
		"nil pointer to a group":     latchkey.NewMultiLock(a, noMulti),
		"nil pointer to a red lock":  latchkey.NewRedLock(latchkey.RedLockOptions{}, a, noRed),
		"nil pointer to a lock":      latchkey.NewMultiLock(noLock, a),
		"two majorities, one member": latchkey.NewMultiLock(latchkey.NewRedLock(latchkey.RedLockOptions{}, a, b), latchkey.NewRedLock(latchkey.RedLockOptions{}, b, c)),
		"a majority and a member":    latchkey.NewMultiLock(b, latchkey.NewRedLock(latchkey.RedLockOptions{}, a, b, c)),
		"one vote in two groups":     latchkey.NewRedLock(latchkey.RedLockOptions{}, latchkey.NewMultiLock(a, b), latchkey.NewMultiLock(b, c), client.NewLock(name+"d")),
		"two sides in two groups":    latchkey.NewMultiLock(latchkey.NewRedLock(latchkey.RedLockOptions{}, a, rw.Reader()), latchkey.NewRedLock(latchkey.RedLockOptions{}, b, rw.Writer())),
	} {
		_, err := l.Lock(within(t, soon))
		require.ErrorIs(t, err, latchkey.ErrInvalid, what)
		_, err = l.IsLocked(t.Context())
		assert.ErrorIs(t, err, latchkey.ErrInvalid, what)
	}
	assert.Empty(t, tap.Commands())
}

// The same majority twice is one member.
func TestMultiLockOfOneMajorityTwice(t *testing.T) {
	m := newMasters(t, 3)
	red := m.lock(t, "x")
	mustUnlock(t, mustLock(t, latchkey.NewMultiLock(red, red)))
	m.comesTo(t, "x", 0)
}

// noted is a lock of another package, of a type that cannot be compared.
type noted struct {
	anyLock
	notes []string
}

// Locks of other packages are members like all others.
func TestMultiLockOfForeignLocks(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	client := connect(t, server)
	wrap := func(l anyLock) anyLock { return noted{l, []string{"seen"}} }
	a, b := client.NewLock(name+"a"), client.NewLock(name+"b")
	hold := mustLock(t, latchkey.NewMultiLock(wrap(a), wrap(b)))
	_, err := connect(t, server).NewLock(name + "b").TryLock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
	mustUnlock(t, hold)
	mustUnlock(t, mustLock(t, latchkey.NewRedLock(latchkey.RedLockOptions{}, wrap(a), wrap(b), client.NewLock(name+"c"))))
	rig.Eventually(t, soon, "nothing is left", free(rig.NewAdmin(t, server), name))
}
