package tests

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// pair is a MultiLock of two members. Another client holds the second one.
type pair struct {
	admin   *rig.Admin
	a, b    string
	lock    *latchkey.MultiLock
	blocker *latchkey.Hold
}

func newPair(t *testing.T, options ...latchkey.Options) *pair {
	t.Helper()
	server, name := rig.Shared(), rig.Name(t)
	client := connect(t, server, options...)
	p := &pair{admin: rig.NewAdmin(t, server), a: name + "a", b: name + "b"}
	p.lock = latchkey.NewMultiLock(client.NewLock(p.a), client.NewLock(p.b))
	p.blocker = mustLock(t, connect(t, server).NewLock(p.b))
	return p
}

// wait waits for the pair in the background, and returns when the first member is held and the
// second is not.
func (p *pair) wait(t *testing.T, options ...latchkey.LockOption) <-chan acquisition {
	t.Helper()
	waiting := lockInBackground(within(t, soon), p.lock, options...)
	awaitWaiter(t, p.admin, p.b)
	require.True(t, p.admin.Exists(p.a))
	return waiting
}

// The first member is gone when the last one is acquired. All members are acquired again after a
// pause, and the MultiLock gets the requested lease.
func TestMultiLockTakesAnewWhatIsGone(t *testing.T) {
	t.Parallel()
	const lease = time.Minute
	p := newPair(t)
	waiting := p.wait(t, latchkey.Lease(lease))
	p.admin.Do("DEL", p.a)
	rig.Eventually(t, soon, "the first is gone", free(p.admin, p.a))
	released := time.Now()
	mustUnlock(t, p.blocker)
	next := rig.Await(t, soon, "both", waiting)
	require.NoError(t, next.err)
	require.NoError(t, next.hold.Err())
	assert.GreaterOrEqual(t, next.at.Sub(released), 50*time.Millisecond, "it rests")
	assert.Greater(t, next.hold.ValidFor(), lease/2)
	mustUnlock(t, next.hold)
	rig.Eventually(t, soon, "nothing is left", free(p.admin, p.a))
}

// A fixed lease does not start again when the last member is acquired, if that would exceed the
// MaxHold.
func TestMultiLockKeepsToMaxHold(t *testing.T) {
	p := newPair(t)
	const lease = time.Minute
	waiting := p.wait(t, latchkey.Lease(lease), latchkey.MaxHold(lease))
	mustUnlock(t, p.blocker)
	next := rig.Await(t, soon, "both", waiting)
	require.NoError(t, next.err)
	assert.LessOrEqual(t, next.hold.ValidFor(), lease)
	mustUnlock(t, next.hold)
}

// The remaining members of a lost hold are released without an Unlock: they would exclude others
// for nothing.
func TestLostMultiLockFreesItsMembers(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	admin, client := rig.NewAdmin(t, server), connect(t, server, latchkey.Options{Lease: 2 * time.Second})
	hold := mustLock(t, latchkey.NewMultiLock(client.NewLock(name+"a"), client.NewLock(name+"b"), client.NewLock(name+"c")))
	freed, err := connect(t, server).NewLock(name + "b").ForceUnlock(t.Context())
	require.NoError(t, err)
	require.True(t, freed)
	rig.Await(t, soon, "the loss", hold.Lost())
	rig.Eventually(t, soon, "the others are free", free(admin, name))
	err = hold.Unlock(t.Context())
	assert.ErrorIs(t, err, latchkey.ErrNotHeld)
	assert.ErrorIs(t, err, latchkey.ErrLost)
	err = hold.Unlock(t.Context())
	assert.ErrorIs(t, err, latchkey.ErrNotHeld)
	assert.ErrorIs(t, err, latchkey.ErrLost, "however often it is asked")
}

// Of several calls of Unlock exactly one succeeds, and none affects the next holder.
func TestGroupUnlockedByMany(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	client := connect(t, server)
	var locks []latchkey.Locker
	for i := range 4 {
		locks = append(locks, client.NewLock(fmt.Sprint(name, i)))
	}
	for what, l := range map[string]latchkey.Locker{"multi": latchkey.NewMultiLock(locks...), "nested": latchkey.NewMultiLock(locks[0], latchkey.NewRedLock(latchkey.RedLockOptions{}, latchkey.NewMultiLock(locks[1:]...)))} {
		for range rig.Sized(50) {
			hold := mustLock(t, l)
			var unlocked atomic.Int32
			all := rig.Goroutines(t)
			for range 3 {
				all.Go(func() {
					switch err := hold.Unlock(context.Background()); {
					case err == nil:
						unlocked.Add(1)
					case errors.Is(err, latchkey.ErrLost) || !errors.Is(err, latchkey.ErrNotHeld):
						t.Errorf("%s: %v", what, err)
					}
				})
			}
			all.Wait()
			require.Equal(t, int32(1), unlocked.Load(), what)
		}
	}
}

// A member that cannot be acquired ends the call before it waits for one behind it.
func TestMultiLockReturnsWhatCannotBeMended(t *testing.T) {
	p := newPair(t)
	client := connect(t, rig.Shared())
	p.admin.Do("RPUSH", p.a+"list", "1")
	defer p.admin.Do("DEL", p.a+"list")
	_, err := latchkey.NewMultiLock(client.NewLock(p.a), client.NewLock(p.b), client.NewLock(p.a+"list")).Lock(within(t, soon))
	require.ErrorIs(t, err, latchkey.ErrWrongKind)
	require.NotErrorIs(t, err, latchkey.ErrNotAcquired)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	mustUnlock(t, mustLock(t, client.NewLock(p.a)))
	mustUnlock(t, p.blocker)
}

// A caller that leaves does not wait for a silent server. What it held there is released when the
// server answers again.
func TestMultiLockIsLeftAtOnce(t *testing.T) {
	t.Parallel()
	m := newMasters(t, 2)
	members := m.mutexes(t, "x", latchkey.Options{Lease: time.Minute, RetryBudget: time.Minute})
	blocker := mustLock(t, connect(t, m.servers[1]).NewMutex("x"))
	ctx, cancel := context.WithCancel(t.Context())
	waiting := lockInBackground(ctx, latchkey.NewMultiLock(members[0], connect(t, m.servers[1]).NewMutex("x2"), members[1]))
	m.comesTo(t, "x", 2)
	m.links[0].Silence()
	cancel()
	got := rig.Await(t, soon, "the one who leaves, long before the retry budget", waiting)
	require.ErrorIs(t, got.err, context.Canceled)
	m.links[0].Heal()
	m.comesTo(t, "x", 0, 0)
	mustUnlock(t, blocker)
}

// errorsLogged collects what is logged at level Error.
type errorsLogged struct {
	slog.Handler
	mu   sync.Mutex
	text strings.Builder
}

func (l *errorsLogged) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelError
}

func (l *errorsLogged) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.text.WriteString(r.Message)
	return err
}

func (l *errorsLogged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// A hold of several locks that nobody released is reported like a hold of one lock.
func TestDroppedGroupIsReported(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	log := &errorsLogged{Handler: slog.DiscardHandler}
	client := connect(t, server, latchkey.Options{Logger: slog.New(log), ReportDropped: true})
	l := latchkey.NewMultiLock(client.NewLock(name+"a"), client.NewLock(name+"b"))
	mustUnlock(t, mustLock(t, l))
	runtime.GC()
	assert.Empty(t, log.String())
	func() { _ = mustLock(t, l) }()
	rig.Eventually(t, soon, "the report", func() error {
		runtime.GC()
		if !strings.Contains(log.String(), "dropped without Unlock") {
			return errors.New("none")
		}
		return nil
	})
	locked, err := isLocked(t.Context(), l)
	require.NoError(t, err)
	assert.True(t, locked, "it is not released: the program may still be inside")
}

// groupLease is long enough for a busy machine to renew it.
const groupLease = 5 * time.Second

// groupHolderProcess holds a MultiLock or a RedLock over servers. Its arguments: which of them,
// name, servers.
var groupHolderProcess = rig.Child("group holder", func(ctx context.Context, args []string) error {
	var members []latchkey.Locker
	for _, ticket := range args[2:] {
		client, _, err := dialTicket(ticket, "", latchkey.Options{Lease: groupLease})
		if err != nil {
			return err
		}
		members = append(members, client.NewLock(args[1]))
	}
	hold, err := groupOf(args[0], members).Lock(ctx)
	if err != nil {
		return err
	}
	fmt.Println("held")
	<-hold.Lost()
	return hold.Err()
})

func groupOf(which string, members []latchkey.Locker) anyLock {
	if which == "red" {
		return latchkey.NewRedLock(latchkey.RedLockOptions{}, members...)
	}
	return latchkey.NewMultiLock(members...)
}

// A killed holder frees every member within one lease.
func TestKilledHolderFreesTheGroup(t *testing.T) {
	t.Parallel()
	for _, which := range []string{"multi", "red"} {
		t.Run(which, func(t *testing.T) {
			t.Parallel()
			m := newMasters(t, 3)
			args := []string{which, which}
			var members []latchkey.Locker
			for _, server := range m.servers {
				args = append(args, server.Ticket())
				members = append(members, connect(t, server, latchkey.Options{Lease: groupLease}).NewLock(which))
			}
			child := groupHolderProcess.Start(t, args...)
			child.Line(t, soon, "held")
			waiter := lockInBackground(within(t, soon), groupOf(which, members))
			rest(rand.N(groupLease / 2)) // so that the kill comes before or after a renewal
			require.Empty(t, waiter)
			killed := time.Now()
			child.Kill()
			next := rig.Await(t, soon, "the group", waiter)
			require.NoError(t, next.err)
			// A member that is acquired again, or a tie, costs another round.
			assert.Less(t, next.at.Sub(killed), groupLease+leeway)
			mustUnlock(t, next.hold)
			m.comesTo(t, which, 0)
		})
	}
}

// Acquisitions of groups are canceled at random instants. Nothing is left on any server.
func TestGroupsCancelledAtRandomInstants(t *testing.T) {
	t.Parallel()
	for _, which := range []string{"multi", "red"} {
		t.Run(which, func(t *testing.T) {
			t.Parallel()
			m := newMasters(t, 3)
			var all sync.WaitGroup
			for range 3 { // with the same members, so that they also contend
				l := groupOf(which, m.mutexes(t, which))
				all.Go(func() { cancelOften(t, l, rig.Sized(100)) })
			}
			all.Wait()
			m.comesTo(t, which, 0)
		})
	}
}
