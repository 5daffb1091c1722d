package tests

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// Each member of a MultiLock has its token, found by its name, in whatever order the program gave
// the members, and also in nested groups.
func TestMembersHaveTheirTokens(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	client := connect(t, server)
	locks := map[string]*latchkey.Lock{}
	for i, each := range []string{"a", "b", "c"} {
		locks[each] = client.NewFencedLock(name + each)
		for range 3*i + 1 { // so that the tokens differ
			mustUnlock(t, mustLock(t, locks[each]))
		}
	}
	multi := latchkey.NewMultiLock(locks["c"], latchkey.NewRedLock(latchkey.RedLockOptions{}, locks["b"]),
		latchkey.NewMultiLock(locks["a"], client.NewMutex(name+"d")))
	hold := mustLock(t, multi)
	for each, lock := range locks {
		found, err := lock.Inspect(t.Context())
		require.NoError(t, err)
		member := hold.Member(name + each)
		assert.Equal(t, found.Token, member.Token(), each)
		assert.Equal(t, lock.Name(), member.Name())
		assert.NoError(t, member.Err())
	}
	assert.Zero(t, hold.Member(name+"d").Token(), "a mutex has none")
	assert.Nil(t, hold.Member(name), "there is no such member")
	assert.Nil(t, hold.Member("red("+name+"b)").Member(name+"a"), "that is no member of the RedLock")
	assert.Equal(t, hold.Member(name+"b"), hold.Member("red("+name+"b)").Member(name+"b"))
	var names []string
	for _, member := range hold.Members() {
		names = append(names, member.Name())
	}
	assert.Equal(t, []string{name + "a", name + "c", name + "d", "red(" + name + "b)"}, names)

	token := hold.Member(name + "a").Token()
	mustUnlock(t, hold)
	assert.Equal(t, token, hold.Member(name+"a").Token(), "as that of a single lock, after the end too")
	assert.ErrorIs(t, hold.Member(name+"a").Err(), latchkey.ErrNotHeld)
}

// Only a group has members.
func TestOtherHoldsHaveNoMembers(t *testing.T) {
	client, name := connect(t, rig.Shared()), rig.Name(t)
	single := mustLock(t, client.NewFencedLock(name))
	for what, hold := range map[string]*latchkey.Hold{"single": single, "nil": nil} {
		assert.Nil(t, hold.Members(), what)
		member := hold.Member(name)
		assert.Nil(t, member, what)
		assert.ErrorIs(t, member.Err(), latchkey.ErrNotHeld, "a nil Hold behaves as released")
		assert.Zero(t, member.Token())
	}
	mustUnlock(t, single)
}

// All members of a RedLock have the same name, which finds one that is held. A member that could
// not be acquired is nil until it is, and a lost one reports the loss.
func TestMembersOfARedLock(t *testing.T) {
	t.Parallel()
	m := newMasters(t, 3)
	const lease = 5 * time.Second
	l := latchkey.NewRedLock(latchkey.RedLockOptions{}, each(m.clients(t, latchkey.Options{Lease: lease}),
		func(c *latchkey.Client) *latchkey.Lock { return c.NewFencedLock("x") })...)
	m.links[0].Cut()
	hold := mustLock(t, l)
	m.comesTo(t, "x", 2)
	require.Len(t, hold.Members(), 3)
	require.Nil(t, hold.Members()[0])
	require.NoError(t, hold.Member("x").Err())
	require.Positive(t, hold.Member("x").Token())
	m.links[0].Restore()
	m.comesTo(t, "x", 3)
	rig.Eventually(t, soon, "the first is a member", func() error { return hold.Members()[0].Err() })
	lost := hold.Members()[1]
	m.links[1].Cut()
	rig.Await(t, soon, "the loss of one", lost.Lost())
	require.ErrorIs(t, hold.Members()[1].Err(), latchkey.ErrLost)
	require.NoError(t, hold.Err())

	// On a busy machine the reply may take longer than the retry budget.
	rig.Eventually(t, soon, "a member is given up", func() error { return hold.Members()[2].Unlock(context.Background()) })
	rig.Await(t, soon, "a member that is given up is no vote any more", hold.Lost())
	m.links[1].Restore()
	m.comesTo(t, "x", 0)
}
