package tests

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// Members of a RedLock that answer late.

// Nobody waits for servers that are silent from the beginning, not even to learn their identity.
// When they are back, the lock notices that one server occurs twice.
func TestRedLockOnServersThatAreSilentAtFirst(t *testing.T) {
	t.Parallel()
	notInCluster(t, "it has no name of its own by which it would be known again")
	m := newMasters(t, 4)
	again := rig.NewLink(t, m.servers[0])
	twin := connectVia(t, m.servers[0], again.Addr()).NewMutex("y")
	l := latchkey.NewRedLock(latchkey.RedLockOptions{MemberTimeout: time.Hour}, append(m.mutexes(t, "x"), twin)...)
	m.links[3].Silence()
	again.Silence()
	for range 3 {
		mustUnlock(t, mustLock(t, l)) // to ask the silent ones takes as long as a member may be tried
	}
	m.links[3].Heal()
	again.Heal()
	rig.Eventually(t, soon, "the twin is noticed", func() error {
		hold, err := l.TryLock(t.Context())
		_ = hold.Unlock(context.Background())
		if !errors.Is(err, latchkey.ErrInvalid) {
			return errors.Join(errors.New("it is not"), err)
		}
		return nil
	})
	m.comesTo(t, "x", 0)
}

// One of five servers stops answering while the lock is held. Neither an extension nor the release
// waits for it, and its key is deleted as soon as it is back.
func TestRedLockLeavesASilentServerBehind(t *testing.T) {
	t.Parallel()
	m := newMasters(t, 5)
	hold := mustLock(t, m.lock(t, "x", latchkey.Options{RetryBudget: defaultLease}))
	rig.Eventually(t, soon, "all members are held", func() error { // one that was late is tried again soon
		if slices.Contains(hold.Members(), nil) {
			return errors.New("one is missing")
		}
		return nil
	})
	m.servers[2].Pause(t)
	start := time.Now()
	require.NoError(t, hold.Extend(t.Context(), time.Minute))
	require.NoError(t, hold.Unlock(t.Context()))
	assert.Less(t, time.Since(start), soon, "less than the retry budget")
	m.comesTo(t, "x", 0, 0, 1, 3, 4)
	m.servers[2].Resume(t)
	m.comesTo(t, "x", 0)
}

// Extend waits for members whose acquisition is still in flight: another member may have fallen
// silent since the lock was granted, and the late members complete the majority.
func TestRedLockExtendsMembersThatAreOnTheirWay(t *testing.T) {
	t.Parallel()
	m := newMasters(t, 5)
	clients := m.clients(t)
	var held []*rig.Held
	for i := 3; i < 5; i++ {
		tap := rig.NewTap(t, m.servers[i])
		clients[i] = connectVia(t, m.servers[i], tap.Addr())
		mustUnlock(t, mustLock(t, clients[i].NewMutex("x")))
		held = append(held, tap.HoldReplies(rig.Mentions("x")))
	}
	options := latchkey.RedLockOptions{MemberTimeout: leeway}
	hold := mustLock(t, latchkey.NewRedLock(options, each(clients, mutexX)...))
	m.links[2].Silence()
	extended := make(chan error, 1)
	go func() { extended <- hold.Extend(t.Context(), time.Minute) }()
	staysPending(t, extended) // it waits for them
	for _, each := range held {
		each.Release()
	}
	require.NoError(t, rig.Await(t, soon, "the end of Extend", extended))
	assert.Greater(t, hold.ValidFor(), defaultLease)
	m.links[2].Heal()
	mustUnlock(t, hold)
	m.comesTo(t, "x", 0)
}

// Members that grant after the round was given up are released long before their leases end.
func TestRedLockReleasesWhoComesTooLate(t *testing.T) {
	t.Parallel()
	m := newMasters(t, 3)
	clients := m.clients(t)
	var taps []*rig.Tap
	var held []*rig.Held
	for i := range 2 {
		tap := rig.NewTap(t, m.servers[i])
		clients[i] = connectVia(t, m.servers[i], tap.Addr())
		mustUnlock(t, mustLock(t, clients[i].NewMutex("x")))
		tap.Forget()
		taps = append(taps, tap)
		held = append(held, tap.HoldCommand(rig.Mentions("x")))
	}
	_, err := latchkey.NewRedLock(latchkey.RedLockOptions{}, each(clients, mutexX)...).TryLock(t.Context())
	requireUnavailable(t, err)
	m.comesTo(t, "x", 0, 2)
	for i, tap := range taps {
		held[i].Release() // now the member grants
		rig.Eventually(t, soon, "the release", func() error {
			if n := len(tap.Commands()); n < 2 {
				return fmt.Errorf("%d commands", n)
			}
			return nil
		})
	}
	m.comesTo(t, "x", 0)
}

// Two members reply after the lock was released, and the first of them falls silent before it can
// be released. That does not delay the release of the other.
func TestRedLockReleasesLateMembersAtOnce(t *testing.T) {
	m := newMasters(t, 5)
	options := latchkey.Options{RetryBudget: defaultLease}
	clients := m.clients(t, options)
	var taps []*rig.Tap
	var replies []*rig.Held
	for i := range 2 {
		tap := rig.NewTap(t, m.servers[i])
		clients[i] = connectVia(t, m.servers[i], tap.Addr(), options)
		mustUnlock(t, mustLock(t, clients[i].NewMutex("x")))
		taps = append(taps, tap)
		replies = append(replies, tap.HoldReply(rig.Mentions("x")))
	}
	l := latchkey.NewRedLock(latchkey.RedLockOptions{MemberTimeout: soon}, each(clients, mutexX)...)
	hold := mustLock(t, l)
	for _, reply := range replies {
		rig.Await(t, soon, "a late answer", reply.Arrived)
	}
	mustUnlock(t, hold)
	silent := taps[0].HoldCommand(rig.Mentions("x"))
	defer silent.Release()
	replies[0].Release()
	rig.Await(t, soon, "the release that is not answered", silent.Arrived)
	replies[1].Release()
	m.comesTo(t, "x", 0, 1, 2, 3, 4) // sooner than the retry budget
}
