package tests

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// clients returns new clients of the masters that connect through the links.
func (m *masters) clients(t *testing.T, options ...latchkey.Options) (all []*latchkey.Client) {
	t.Helper()
	for i, server := range m.servers {
		all = append(all, connectVia(t, server, m.links[i].Addr(), options...))
	}
	return all
}

// each opens a lock with every client.
func each[L anyLock](clients []*latchkey.Client, open func(*latchkey.Client) L) (members []latchkey.Locker) {
	for _, client := range clients {
		members = append(members, open(client))
	}
	return members
}

func lockX(c *latchkey.Client) *latchkey.Lock { return c.NewLock("x") }

func mutexX(c *latchkey.Client) *latchkey.Lock { return c.NewMutex("x") }

// takeAway lets somebody else hold the key on one server. giveBackAfterTheRound ends that when the
// round that finds the key busy is over.
func (m *masters) takeAway(server int, name string) {
	m.admins[server].Do("SET", name, "somebody", "PX", "60000")
	m.taken = m.admins[server].CommandStats()
}

func (m *masters) giveBackAfterTheRound(t *testing.T, server int, name string) {
	t.Helper()
	rig.Eventually(t, soon, "it is asked for", func() error {
		if calls := m.admins[server].Since(m.taken); calls["set"]+scripts(calls) == 0 {
			return errors.New("not yet")
		}
		return nil
	})
	rig.Throughout(t, 100*time.Millisecond, "somebody has it", func() error {
		if kind := m.admins[server].Text("TYPE", name); kind != "string" {
			return fmt.Errorf("it is a %s", kind)
		}
		return nil
	})
	m.admins[server].Do("DEL", name)
}

// With a maximum hold, a member that becomes free is left alone, because its limit would begin
// later.
func TestRedLockWithMaxHoldDoesNotMend(t *testing.T) {
	t.Parallel()
	m := newMasters(t, 3)
	l := m.lock(t, "x")
	m.takeAway(0, "x")
	const limit = 3 * time.Second
	hold := mustLock(t, l, latchkey.MaxHold(limit))
	m.giveBackAfterTheRound(t, 0, "x")
	rig.Throughout(t, limit/2, "the missing member is left alone", func() error { return free(m.admins[0], "x")() })
	rig.Await(t, soon, "the end", hold.Lost())
	assert.ErrorIs(t, hold.Err(), latchkey.ErrMaxHold)
	m.comesTo(t, "x", 0)
}

// A member whose reply is late is not tried a second time: read locks would grant that, and nobody
// would know of one of the two holds.
func TestRedLockTriesALateMemberOnce(t *testing.T) {
	t.Parallel()
	m := newMasters(t, 3)
	tap := rig.NewTap(t, m.servers[0])
	const lease = 3 * time.Second // the hold looks for missing members three times in that period
	clients := m.clients(t, latchkey.Options{Lease: lease})
	clients[0] = connectVia(t, m.servers[0], tap.Addr(), latchkey.Options{Lease: lease})
	l := latchkey.NewRedLock(latchkey.RedLockOptions{MemberTimeout: soon},
		each(clients, func(c *latchkey.Client) *latchkey.Lock { return c.NewRWLock("x").Reader() })...)
	warm := mustLock(t, l)
	m.comesTo(t, "x", 3)
	mustUnlock(t, warm)
	m.comesTo(t, "x", 0)
	tap.Forget()
	reply := tap.HoldReply(rig.Mentions("x"))
	hold := mustLock(t, l)
	rig.Await(t, soon, "the late answer", reply.Arrived)
	rig.Throughout(t, lease*2/3, "it is asked once", func() error {
		if n := len(tap.Commands()); n > 1 {
			return fmt.Errorf("%d commands: %v", n, tap.Commands())
		}
		return nil
	})
	reply.Release()
	m.comesTo(t, "x", 3)
	mustUnlock(t, hold)
	m.comesTo(t, "x", 0)
}

// If a majority of the members can never grant the lock, the wait ends with their error alone.
func TestRedLockWithAHopelessMajority(t *testing.T) {
	t.Parallel()
	m := newMasters(t, 3)
	for what, c := range map[string]struct {
		want  error
		spoil func(t *testing.T, ctx context.Context, clients []*latchkey.Client) context.Context
	}{
		"another kind": {latchkey.ErrWrongKind, func(_ *testing.T, ctx context.Context, _ []*latchkey.Client) context.Context {
			for _, admin := range m.admins[:2] {
				admin.Do("RPUSH", "x", "1")
			}
			return ctx
		}},
		"closed": {latchkey.ErrClosed, func(t *testing.T, ctx context.Context, clients []*latchkey.Client) context.Context {
			t.Helper()
			for _, client := range clients[:2] {
				require.NoError(t, client.Close(ctx))
			}
			return ctx
		}},
		"a mutex once more": {latchkey.ErrInvalid, func(t *testing.T, ctx context.Context, clients []*latchkey.Client) context.Context {
			t.Helper()
			for _, client := range clients[:2] {
				ctx = mustLock(t, client.NewMutex("x")).Context(ctx) //nolint:fatcontext // nested holds
			}
			return ctx
		}},
	} {
		for _, third := range []string{"free", "busy"} {
			t.Run(what+", the third "+third, func(t *testing.T) {
				clients := m.clients(t)
				l := latchkey.NewRedLock(latchkey.RedLockOptions{}, each(clients, lockX)...)
				if c.want == latchkey.ErrInvalid { //nolint:errorlint // selects the case
					l = latchkey.NewRedLock(latchkey.RedLockOptions{}, each(clients, mutexX)...)
				}
				ctx := c.spoil(t, within(t, soon), clients)
				if third == "busy" {
					mustLock(t, connect(t, m.servers[2]).NewLock("x"))
					m.links[1].DelayReplies(30 * time.Millisecond) // the round is already lost by then
					defer m.links[1].Heal()
				}
				_, err := l.Lock(ctx)
				require.ErrorIs(t, err, c.want)
				require.NotErrorIs(t, err, context.DeadlineExceeded)
				if c.want != latchkey.ErrClosed { //nolint:errorlint // selects the case
					assert.NotErrorIs(t, err, latchkey.ErrNotAcquired)
				}
				if third == "free" {
					m.comesTo(t, "x", 0, 2)
				}
				for _, admin := range m.admins {
					admin.Do("DEL", "x")
				}
			})
		}
	}
}

// One client is closed. The other members are enough to lock and to wait, and the error of the
// whole is not ErrClosed.
func TestRedLockWithAClosedMember(t *testing.T) {
	t.Parallel()
	m := newMasters(t, 3)
	clients := m.clients(t)
	l := latchkey.NewRedLock(latchkey.RedLockOptions{MemberTimeout: soon}, each(clients, mutexX)...)
	require.NoError(t, clients[0].Close(t.Context()))
	mustUnlock(t, mustLock(t, l))
	m.comesTo(t, "x", 0)

	rival := mustLock(t, m.unhurried(t, "x"))
	m.comesTo(t, "x", 3)
	err := refused(t, func(wait latchkey.WaitOption) error { return firstOf(l.Lock(t.Context(), wait)) })
	require.ErrorContains(t, err, "the wait of ", "it waited")
	require.NotErrorIs(t, err, latchkey.ErrClosed)
	require.ErrorContains(t, err, "closed")
	multi := latchkey.NewMultiLock(l, clients[1].NewMutex("y"))
	err = refused(t, func(wait latchkey.WaitOption) error { return firstOf(multi.Lock(t.Context(), wait)) })
	require.ErrorContains(t, err, "the wait of ", "as a member, too")
	waiting := lockInBackground(within(t, soon), l)
	rest(300 * time.Millisecond) // some rounds
	require.Empty(t, waiting)
	mustUnlock(t, rival)
	next := rig.Await(t, soon, "the majority", waiting)
	require.NoError(t, next.err)
	mustUnlock(t, next.hold)
	m.comesTo(t, "x", 0)
}

// Members of a majority are extended, and then lost before the last member has replied: Extend
// fails.
func TestRedLockExtendedAndLost(t *testing.T) {
	t.Parallel()
	m := newMasters(t, 3)
	const lease = 3 * time.Second
	// Extend waits for the third member: it may take as long as MemberTimeout.
	l := latchkey.NewRedLock(latchkey.RedLockOptions{MemberTimeout: 5 * time.Second},
		m.mutexes(t, "x", latchkey.Options{Lease: lease, RetryBudget: lease})...)
	hold := mustLock(t, l)
	rig.Eventually(t, soon, "all are members, the last one too, and are extended", func() error {
		err := hold.Extend(t.Context(), 2*lease)
		for _, admin := range m.admins {
			if left := admin.PTTL("x"); left <= lease {
				err = errors.Join(err, fmt.Errorf("%v left", left))
			}
		}
		return err
	})
	m.links[2].SilenceReplies()
	extended := make(chan error, 1)
	go func() { extended <- hold.Extend(context.Background(), 20*time.Second) }()
	for _, admin := range m.admins[:2] {
		rig.Eventually(t, soon, "the extension", func() error {
			if left := admin.PTTL("x"); left < 10*time.Second {
				return fmt.Errorf("%v left", left)
			}
			return nil
		})
		admin.Do("SET", "x", "somebody", "PX", "60000") // so that the member cannot be acquired again either
	}
	rig.Await(t, soon, "the loss", hold.Lost())
	require.ErrorIs(t, rig.Await(t, soon, "the end of Extend", extended), latchkey.ErrNotHeld)
	m.links[2].Heal()
	m.comesTo(t, "x", 0, 2)
}

// The end of a member's timeout is not reported as the end of the caller's context, and does not
// hide that the caller canceled.
func TestRedLockTellsWhoseTimeWasOver(t *testing.T) {
	t.Parallel()
	m := newMasters(t, 3)
	l := m.lock(t, "x")
	mustUnlock(t, mustLock(t, l))
	m.comesTo(t, "x", 0)
	m.links[0].Silence()
	m.links[1].Silence()
	_, err := l.TryLock(t.Context())
	requireUnavailable(t, err)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	require.GreaterOrEqual(t, strings.Count(err.Error(), "no answer within"), 2, "on a busy machine also of the third member: %v", err)
	ctx, cancel := context.WithCancel(t.Context())
	waiting := lockInBackground(ctx, l)
	rest(300 * time.Millisecond) // some rounds
	cancel()
	got := rig.Await(t, soon, "the one who leaves", waiting)
	require.ErrorIs(t, got.err, context.Canceled)
	require.NotErrorIs(t, got.err, context.DeadlineExceeded)
	m.comesTo(t, "x", 0, 2)

	m.links[0].Heal()
	m.links[1].Heal()
	m.links[0].Cut()
	m.links[1].Cut()
	rig.Eventually(t, soon, "what was wrong with the member is still there", func() error {
		_, err := l.TryLock(t.Context())
		requireUnavailable(t, err)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		if network := (*net.OpError)(nil); !errors.As(err, &network) {
			return err // the member timed out before a connection was refused
		}
		return nil
	})
	m.comesTo(t, "x", 0, 2)
}

// A member that was acquired during the hold can be re-entered like all others: under an older
// context of the hold, and by the owner that the hold was acquired with.
func TestRedLockReentersWhatWasMended(t *testing.T) {
	t.Parallel()
	m := newMasters(t, 3)
	clients := m.clients(t, latchkey.Options{Lease: 5 * time.Second})
	l := latchkey.NewRedLock(latchkey.RedLockOptions{MemberTimeout: soon}, each(clients, lockX)...)
	owned := latchkey.WithOwner(t.Context(), clients[0].NewOwner())
	m.takeAway(0, "x")
	hold, err := l.Lock(owned)
	require.NoError(t, err)
	ctx := hold.Context(t.Context())
	m.giveBackAfterTheRound(t, 0, "x")
	m.comesTo(t, "x", 3)
	for what, under := range map[string]context.Context{"the hold's context": ctx, "the owner": owned} {
		rig.Eventually(t, soon, "the member is known", func() error {
			inner, err := clients[0].NewLock("x").TryLock(under)
			if err != nil {
				return fmt.Errorf("under %s: %w", what, err)
			}
			n := countInRedis(t, m.admins[0], "x")
			if err := inner.Unlock(t.Context()); err != nil || n == 2 {
				return err
			}
			return fmt.Errorf("a hold of its own under %s", what) // on a busy machine the member may be lost and mended again
		})
	}
	mustUnlock(t, hold)
	_, err = clients[0].NewLock("x").TryLock(context.WithoutCancel(ctx))
	require.NoError(t, err, "no hold is found in a context that has none any more")
	m.admins[0].Do("DEL", "x")
	m.comesTo(t, "x", 0)
}

// Whether a majority is held is unknown if that depends on servers that are unreachable.
func TestRedLockIsLockedOrNobodyKnows(t *testing.T) {
	t.Parallel()
	m := newMasters(t, 5)
	l := m.unhurried(t, "x", latchkey.Options{RetryBudget: 2 * time.Second})
	hold := mustLock(t, l)
	m.comesTo(t, "x", 5)
	m.links[0].Cut()
	m.links[1].Cut()
	locked, err := isLocked(t.Context(), l)
	require.NoError(t, err)
	assert.True(t, locked, "three of five")
	mustUnlock(t, hold)
	m.comesTo(t, "x", 0, 2, 3, 4)
	locked, err = isLocked(t.Context(), l)
	require.NoError(t, err)
	assert.False(t, locked, "no two can be a majority")
	m.admins[4].Do("SET", "x", "somebody", "PX", "60000")
	_, err = isLocked(t.Context(), l)
	require.Error(t, err, "one is held, two are unknown")
	_, err = remainingLease(t.Context(), l)
	require.Error(t, err)
}

// One member is lost before the others have replied, and with it the last chance of the round: the
// round ends.
func TestRedLockDoesNotHangOnAMemberThatIsLostEarly(t *testing.T) {
	m := newMasters(t, 3)
	tap := rig.NewTap(t, m.servers[2])
	acquired := make(chan struct{}, 10)
	clients := m.clients(t)
	clients[0] = connect(t, m.servers[0], latchkey.Options{Observer: func(e latchkey.Event) {
		if e.Type == latchkey.EventAcquired {
			acquired <- struct{}{}
		}
	}})
	clients[2] = connectVia(t, m.servers[2], tap.Addr())
	l := latchkey.NewRedLock(latchkey.RedLockOptions{MemberTimeout: soon}, each(clients, mutexX)...)
	warm := mustLock(t, l)
	m.comesTo(t, "x", 3)
	mustUnlock(t, warm)
	m.comesTo(t, "x", 0)
	rig.Await(t, soon, "the event", acquired)
	m.admins[1].Do("SET", "x", "somebody", "PX", "60000")
	reply := tap.HoldReply(rig.Mentions("x"))
	done := make(chan error, 1)
	go func() {
		_, err := l.TryLock(context.Background())
		done <- err
	}()
	rig.Await(t, soon, "the late answer", reply.Arrived)
	rig.Await(t, soon, "the early one", acquired)
	require.NoError(t, clients[0].Close(t.Context()))
	m.comesTo(t, "x", 0, 0)
	reply.Release()
	require.ErrorIs(t, rig.Await(t, soon, "the end of the round", done), latchkey.ErrNotAcquired)
	m.comesTo(t, "x", 0, 2)
}
