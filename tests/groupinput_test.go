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
	var noRed *latchkey.MultiLock
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
		_, err = isLocked(t.Context(), l)
		assert.ErrorIs(t, err, latchkey.ErrInvalid, what)
	}
	assert.Empty(t, tap.Commands())
}

// The same majority twice counts as one member.
func TestMultiLockOfOneMajorityTwice(t *testing.T) {
	m := newMasters(t, 3)
	red := m.lock(t, "x")
	mustUnlock(t, mustLock(t, latchkey.NewMultiLock(red, red)))
	m.comesTo(t, "x", 0)
}

// noted is a lock with additional data of the program, of a type that cannot be compared.
type noted struct {
	latchkey.Locker
	notes []string
}

// account is a lock with an additional field.
type account struct {
	latchkey.Locker
	owner string
}

// A type of the program that embeds a lock counts as that lock: together with others, twice, and in
// nested groups.
func TestGroupsOfWrappedLocks(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	client := connect(t, server)
	a, b := client.NewFencedLock(name+"a"), client.NewFencedLock(name+"b")
	for what, l := range map[string]latchkey.Locker{
		"interfaces": latchkey.NewMultiLock(noted{a, []string{"seen"}}, noted{b, nil}, b),
		"pointers":   latchkey.NewMultiLock(account{a, "ann"}, &account{b, "bob"}),
		"a group":    latchkey.NewMultiLock(a, noted{latchkey.NewMultiLock(noted{a, nil}, b), nil}),
		"red":        latchkey.NewRedLock(latchkey.RedLockOptions{}, latchkey.NewMultiLock(noted{a, nil}, account{b, "bob"})),
	} {
		hold := mustLock(t, l)
		_, err := connect(t, server).NewFencedLock(name + "b").TryLock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrNotAcquired, what)
		inner, err := a.TryLock(hold.Context(t.Context()))
		require.NoError(t, err, "%s: the member is known under the hold's context", what)
		mustUnlock(t, inner)
		mustUnlock(t, hold)
	}
	rig.Eventually(t, soon, "nothing is left", free(rig.NewAdmin(t, server), name))
	for what, l := range map[string]latchkey.Locker{
		"an interface": noted{}, "a pointer": account{}, "a nil pointer": (*account)(nil), "no lock made": &latchkey.Lock{},
	} {
		_, err := latchkey.NewMultiLock(a, l).TryLock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrInvalid, what)
		require.ErrorContains(t, err, "member 2 is nil", what)
	}
	_, err := latchkey.NewRedLock(latchkey.RedLockOptions{}, noted{a, nil}, account{a, "ann"}).TryLock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrInvalid, "one lock has one vote")
	_, err = new(latchkey.MultiLock).TryLock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrInvalid, "a group that nobody has made")
}
