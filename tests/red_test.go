package tests

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/history"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// masters are independent servers, with links to them.
type masters struct {
	servers []*rig.Server
	links   []*rig.Link
	admins  []*rig.Admin
	taken   map[string]int64 // the commands of a server when a key was taken away
}

// newMasters starts servers for a test that is left out in short mode, because it needs that many.
func newMasters(t *testing.T, n int) *masters {
	t.Helper()
	rig.Long(t)
	return startMasters(t, n)
}

func startMasters(t *testing.T, n int) *masters {
	t.Helper()
	rig.Need(t, rig.Process)
	m := &masters{}
	for range n {
		server := rig.Fresh(t)
		m.servers = append(m.servers, server)
		m.links = append(m.links, rig.NewLink(t, server))
		m.admins = append(m.admins, rig.NewAdmin(t, server))
	}
	return m
}

// mutexes returns mutexes of new clients that connect through the links.
func (m *masters) mutexes(t *testing.T, name string, options ...latchkey.Options) (members []latchkey.Locker) {
	t.Helper()
	for i, server := range m.servers {
		members = append(members, connectVia(t, server, m.links[i].Addr(), options...).NewMutex(name))
	}
	return members
}

// lock returns a RedLock over all masters.
func (m *masters) lock(t *testing.T, name string, options ...latchkey.Options) *latchkey.MultiLock {
	t.Helper()
	return latchkey.NewRedLock(latchkey.RedLockOptions{}, m.mutexes(t, name, options...)...)
}

// unhurried returns a RedLock over all masters whose attempts do not fail because the machine is
// slow.
func (m *masters) unhurried(t *testing.T, name string, options ...latchkey.Options) *latchkey.MultiLock {
	t.Helper()
	return latchkey.NewRedLock(latchkey.RedLockOptions{MemberTimeout: soon}, m.mutexes(t, name, options...)...)
}

// held returns the number of servers that have the key.
func (m *masters) held(name string, servers ...int) (n int) {
	for i, admin := range m.admins {
		if len(servers) > 0 && !slices.Contains(servers, i) {
			continue
		}
		if admin.Exists(name) {
			n++
		}
	}
	return n
}

// comesTo waits until exactly n of the servers have the key.
func (m *masters) comesTo(t *testing.T, name string, n int, servers ...int) {
	t.Helper()
	rig.Eventually(t, soon, fmt.Sprintf("%d servers have it", n), func() error {
		if got := m.held(name, servers...); got != n {
			return fmt.Errorf("%d have it", got)
		}
		return nil
	})
}

func TestRedLock(t *testing.T) {
	m := startMasters(t, 5)
	first, second := m.unhurried(t, "x"), m.unhurried(t, "x")
	hold := mustLock(t, first)
	m.comesTo(t, "x", 5)
	_, err := second.TryLock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
	locked, err := isLocked(t.Context(), second)
	require.NoError(t, err)
	assert.True(t, locked)
	waiting := lockInBackground(within(t, soon), second)
	mustUnlock(t, hold)
	assert.ErrorIs(t, hold.Unlock(t.Context()), latchkey.ErrNotHeld)
	next := rig.Await(t, soon, "the waiter", waiting)
	require.NoError(t, next.err)
	mustUnlock(t, next.hold)
	m.comesTo(t, "x", 0)
}

// Any two of five servers are silent or gone: the lock is still granted, renewed and released.
func TestRedLockWithoutAMinority(t *testing.T) {
	t.Parallel()
	for what, fail := range map[string]func(*rig.Link){"silent": (*rig.Link).Silence, "gone": (*rig.Link).Cut} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			m := newMasters(t, 5)
			const lease = 4 * time.Second
			patient := latchkey.RedLockOptions{MemberTimeout: time.Hour}
			l := latchkey.NewRedLock(patient, m.mutexes(t, "x", latchkey.Options{Lease: lease})...)
			rival := m.unhurried(t, "x")
			mustUnlock(t, mustLock(t, l))
			fail(m.links[0])
			fail(m.links[3])
			hold := mustLock(t, l)    // nobody waits for those who are silent
			awaitRenewals(t, 3, hold) // one lease
			_, err := rival.TryLock(t.Context())
			require.ErrorIs(t, err, latchkey.ErrNotAcquired)
			require.NoError(t, hold.Unlock(t.Context()))
			m.comesTo(t, "x", 0, 1, 2, 4)
		})
	}
}

// Three of five servers are gone: the call ends in time, and leaves nothing behind on the others.
func TestRedLockWithoutAMajority(t *testing.T) {
	t.Parallel()
	m := newMasters(t, 5)
	l := m.lock(t, "x", latchkey.Options{Lease: 5 * time.Second, RetryBudget: 200 * time.Millisecond})
	for i := range 3 {
		m.links[i].Cut()
	}
	start := time.Now()
	_, err := l.Lock(within(t, time.Second))
	requireUnavailable(t, err)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Less(t, time.Since(start), time.Second+leeway)
	m.comesTo(t, "x", 0, 3, 4)
	_, err = l.TryLock(t.Context())
	requireUnavailable(t, err)
	m.comesTo(t, "x", 0, 3, 4)
}

// The hold ends when its majority does, before anybody else can acquire the lock.
func TestRedLockIsLostWithItsMajority(t *testing.T) {
	t.Parallel()
	m := newMasters(t, 3)
	const lease = 3 * time.Second
	hold := mustLock(t, m.unhurried(t, "x", latchkey.Options{Lease: lease}))
	m.comesTo(t, "x", 3)
	ctx := hold.Context(t.Context())
	other := lockInBackground(within(t, soon), m.lock(t, "x", latchkey.Options{Lease: lease}))
	m.links[0].Silence()
	awaitRenewals(t, 2, hold) // two are enough
	m.links[1].Silence()
	rig.Await(t, soon, "the loss", ctx.Done())
	assert.ErrorIs(t, context.Cause(ctx), latchkey.ErrLost)
	assert.ErrorIs(t, hold.Unlock(t.Context()), latchkey.ErrLost)
	m.links[0].Heal()
	m.links[1].Heal()
	got := rig.Await(t, soon, "the next", other)
	require.NoError(t, got.err)
	mustUnlock(t, got.hold)
}

// A member that is back, or that lost its key, is acquired again while the hold lasts.
func TestRedLockMendsItself(t *testing.T) {
	t.Parallel()
	m := newMasters(t, 3)
	l := m.unhurried(t, "x", latchkey.Options{Lease: 5 * time.Second})
	m.links[0].Cut()
	hold := mustLock(t, l)
	m.comesTo(t, "x", 2)
	m.links[0].Restore()
	m.comesTo(t, "x", 3)
	m.admins[1].Do("DEL", "x")
	m.comesTo(t, "x", 3)
	m.links[0].Cut()
	m.admins[2].Do("DEL", "x")
	require.NoError(t, hold.Err(), "two were enough all the time")
	m.comesTo(t, "x", 2, 1, 2)
	awaitRenewals(t, 2, hold) // it lasts without the one that is away
	mustUnlock(t, hold)
	m.comesTo(t, "x", 0, 1, 2)
}

// The time that slow replies take reduces the validity of the hold. If too little of the lease is
// left, there is no hold.
func TestRedLockValidity(t *testing.T) {
	t.Parallel()
	m := newMasters(t, 3)
	l := latchkey.NewRedLock(latchkey.RedLockOptions{MemberTimeout: soon}, m.mutexes(t, "x")...)
	mustUnlock(t, mustLock(t, l))
	const long, short = time.Minute, 2 * time.Second
	m.links[0].DelayReplies(300 * time.Millisecond)
	m.links[1].DelayReplies(300 * time.Millisecond)
	hold, err := l.TryLock(t.Context(), latchkey.Lease(long))
	require.NoError(t, err)
	assert.LessOrEqual(t, hold.ValidFor(), long-300*time.Millisecond, "the second answer took so long")
	assert.Greater(t, hold.ValidFor(), long/2)
	mustUnlock(t, hold)
	m.comesTo(t, "x", 0)
	for _, link := range m.links[:2] {
		link.Heal()
		link.DelayReplies(short * 37 / 40)
	}
	rig.Eventually(t, time.Minute, "less than a tenth of the lease is left, and not nothing", func() error {
		_, err := l.TryLock(t.Context(), latchkey.Lease(short))
		requireUnavailable(t, err)
		if !strings.Contains(err.Error(), "too little of the lease is left") {
			return err
		}
		return nil
	})
	m.comesTo(t, "x", 0)
}

// A RedLock that contains the same server twice is refused once the server has told its id: one
// vote would count twice.
func TestRedLockOnOneServer(t *testing.T) {
	rig.Need(t, rig.Stats)
	notInCluster(t, "it has no name of its own by which it would be known again")
	server, name := rig.Shared(), rig.Name(t)
	l := latchkey.NewRedLock(latchkey.RedLockOptions{}, connect(t, server).NewMutex(name), connect(t, server).NewMutex(name), connect(t, server).NewMutex(name))
	rig.Eventually(t, soon, "the refusal", func() error {
		if _, err := l.TryLock(t.Context()); !errors.Is(err, latchkey.ErrInvalid) {
			return fmt.Errorf("it is not refused: %w", err)
		}
		return nil
	})
	rig.Eventually(t, soon, "what the first attempts got is given back", free(rig.NewAdmin(t, server), name))
}

// While servers fail, up to two at a time, processes contend: there are never two inside, and the
// lock keeps being granted.
func TestRedLockUnderContention(t *testing.T) {
	t.Parallel()
	m := newMasters(t, 5)
	const lease, rounds = 700 * time.Millisecond, 6
	ctx, stop := context.WithCancel(t.Context())
	var s stays
	var passes, losses atomic.Int32
	var all sync.WaitGroup
	for range 4 {
		l := m.lock(t, "x", latchkey.Options{Lease: lease, RetryBudget: 200 * time.Millisecond})
		all.Go(func() {
			for ctx.Err() == nil {
				hold, err := l.Lock(ctx)
				if err != nil {
					continue
				}
				leave := s.enter(hold)
				work := hold.Context(context.Background())
				select {
				case <-work.Done():
					losses.Add(1)
				case <-time.After(10 * time.Millisecond):
				}
				leave()
				passes.Add(1)
				_ = hold.Unlock(context.WithoutCancel(ctx))
			}
		})
	}
	for round := range rounds {
		a, b, before := round%5, (round+2)%5, passes.Load()
		m.links[a].Silence()
		m.links[b].Cut()
		rest(500 * time.Millisecond)
		rig.Eventually(t, soon, "the lock is granted", func() error {
			if passes.Load() == before {
				return errors.New("not yet")
			}
			return nil
		})
		m.links[a].Heal()
		m.links[b].Restore()
		rest(100 * time.Millisecond)
	}
	stop()
	all.Wait()
	t.Logf("%d passes, %d losses", passes.Load(), losses.Load())
	history.CheckStays(t, 1, s.all)
}

// stays records when a lock was held. A goroutine that does not run may leave after its hold has
// ended, so a stay ends when it left, or when the hold is known to have ended.
type stays struct {
	mu  sync.Mutex
	all []history.Stay
}

// enter begins a stay, and returns the function that ends it.
func (s *stays) enter(hold *latchkey.Hold) (leave func()) {
	from := time.Now()
	until := from.Add(hold.ValidFor())
	return func() {
		to := time.Now()
		if hold.Err() != nil && to.After(until) {
			to = until // at least
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all = append(s.all, history.Stay{From: from.UnixNano(), To: to.UnixNano(), Permits: 1})
	}
}

// jitterOf returns a random time up to d.
func jitterOf(d time.Duration) time.Duration { return rand.N(d) }
