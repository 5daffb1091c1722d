package tests

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// contenderOptions are for those who are killed, and survivorOptions for those who go on.
var (
	contenderOptions = latchkey.Options{Lease: crashLease, Tuning: latchkey.Tuning{StaleWaiterTimeout: crashLease}}
	survivorOptions  = latchkey.Options{Lease: soon, Tuning: latchkey.Tuning{StaleWaiterTimeout: crashLease}}
)

// contenderProcess is a process in which two goroutines in each role contend all the time. Its
// arguments: the kind, the name of the lock, a name for itself, and for each server its ticket and
// the address by which to reach it.
var contenderProcess = rig.Child("contender", func(ctx context.Context, args []string) error {
	l, err := contendedNamed(args[0])
	if err != nil {
		return err
	}
	var raw rueidis.Client
	var clients []*latchkey.Client
	for each := range slices.Chunk(args[3:], 2) {
		server, err := rig.Attach(each[0])
		if err != nil {
			return err
		}
		client, _, err := dial(server, each[1], contenderOptions)
		if err == nil && raw == nil {
			raw, err = server.Client()
		}
		if err != nil {
			return err
		}
		clients = append(clients, client)
	}
	passed := sync.OnceFunc(func() { fmt.Println("passed") })
	failed := make(chan error, 1)
	for _, r := range l.roles(clients, args[1]) {
		r = entrance{raw, args[1], args[2]}.guarded(r)
		for range 2 {
			go func() { failed <- r.contend(ctx, passed) }()
		}
	}
	return <-failed
})

// contend acquires and releases without end. On a busy machine it may lose a hold, or get no answer
// in time.
func (r role) contend(ctx context.Context, passed func()) error {
	for {
		got, err := r.acquire(ctx)
		if err == nil {
			err = got.release(ctx)
		}
		switch {
		case errors.Is(err, latchkey.ErrLost) || errors.Is(err, latchkey.ErrUnavailable):
		case err != nil:
			return err
		default:
			passed()
		}
	}
}

// survivors are goroutines of two clients in this process that go on when others are killed.
type survivors struct {
	contest

	t        *testing.T
	of       contended
	servers  []*rig.Server
	name     string
	entrance entrance
	ended    <-chan error
	killed   []string
	calm     time.Duration   // how long all survivors took to go on just before, without a kill
	gaps     []time.Duration // how long all survivors took to go on after each kill
	excess   time.Duration   // of the longest gap, beyond what the speed of this machine explains
}

func newSurvivors(t *testing.T, l contended) *survivors {
	t.Helper()
	servers := []*rig.Server{rig.Shared()}
	if l.servers > 1 {
		rig.Need(t, rig.Single) // several of them start quickly
		servers = freshServers(t, l.servers)
	}
	s := &survivors{t: t, of: l, servers: servers, name: rig.Name(t)}
	s.compete()
	return s
}

// compete makes the survivors contend.
func (s *survivors) compete() {
	s.t.Helper()
	s.entrance = entrance{s.servers[0].Raw(s.t), s.name, "a survivor"}
	for i := range 2 {
		var clients []*latchkey.Client
		for _, server := range s.servers {
			clients = append(clients, connect(s.t, server, survivorOptions))
		}
		for _, p := range s.of.contenders(clients, s.name, fmt.Sprint("survivor ", i), 2) {
			p.acquire = s.entrance.guarded(role{p.acquire, p.weight}).acquire
			s.contenders = append(s.contenders, p)
		}
	}
	s.passes, s.punctual, s.dump = math.MaxInt64, punctualFor(crashLease), dumpOf(s.t, s.servers, s.name)
	s.answers = s.entrance.raw // a renewal waits for a timer and an answer
	s.ended = s.begin(s.t.Context())
}

// newcomer starts a process that contends. It reaches the first server by addr, if that is not
// empty.
func (s *survivors) newcomer(addr string) (child *rig.ChildProcess, who string) {
	s.t.Helper()
	who = strconv.Itoa(rand.Int())
	args := []string{s.of.name, s.name, who}
	for _, server := range s.servers {
		args = append(args, server.Ticket(), cmp.Or(addr, server.Addr()))
		addr = ""
	}
	return contenderProcess.Start(s.t, args...), who
}

// kill kills a process and waits until the survivors have gone on, all clients in all roles.
func (s *survivors) kill(child *rig.ChildProcess, who string) {
	s.t.Helper()
	child.Kill()
	s.killed = append(s.killed, who)
	gap := s.goOn()
	s.gaps = append(s.gaps, gap)
	s.excess = max(s.excess, gap-slowness*s.calm)
}

// slowness is the factor by which a busy machine alone may delay the survivors after a kill.
const slowness = 4

// goOn waits until all survivors have gone on, and returns how long that took.
func (s *survivors) goOn() time.Duration {
	s.t.Helper()
	began, before := time.Now(), s.byContender()
	rig.Eventually(s.t, 3*soon, "the survivors go on", func() error {
		for i, n := range s.byContender() {
			if n < before[i]+4 { // one for each of the two goroutines, and as many again to be sure
				return fmt.Errorf("%v passes, and before %v", s.byContender(), before)
			}
		}
		return nil
	})
	return time.Since(began)
}

// finish ends the contest, checks it, and prints how long the survivors took to go on.
func (s *survivors) finish() {
	s.t.Helper()
	s.finished.Store(true)
	require.NoError(s.t, rig.Await(s.t, soon, "the survivors end", s.ended))
	s.check(s.t)
	s.entrance.verify(s.t, s.killed)
	slices.Sort(s.gaps)
	s.t.Logf("%d kills; the others went on after %v (median), %v (at most); the longest wait %v",
		len(s.gaps), s.gaps[len(s.gaps)/2].Round(time.Millisecond), s.gaps[len(s.gaps)-1].Round(time.Millisecond),
		s.tally.Longest().Round(time.Millisecond))
	assert.Less(s.t, s.excess, limit)
}

// limit is well below the lease of survivors: what those wait for is the lease of the dead, plus a
// stale period for kinds whose waiters wait for dead ones. Readers and writers may wait for dead
// ones of both sides, and then for each other.
const limit = soon * 3 / 4

// eachContended runs a test for all contended kinds, or with -short for those that differ most.
func eachContended(t *testing.T, test func(t *testing.T, l contended)) {
	t.Helper()
	for _, l := range contendedKinds() {
		if !testing.Short() || slices.Contains([]string{"Lock", "FairLock", "ReadWriteLock"}, l.name) {
			t.Run(l.name, func(t *testing.T) { test(t, l) }) // not in parallel: each of them is busy all the time
		}
	}
}

// killEach starts the survivors and kills the given number of newcomers. If a killed process never
// gives back what it holds, each newcomer gets survivors of its own.
func killEach(t *testing.T, l contended, kills int, kill func(s *survivors, n int)) {
	t.Helper()
	killOne := func(s *survivors, n int) {
		s.calm = s.goOn()
		kill(s, n)
	}
	if !l.lasting {
		s := newSurvivors(t, l)
		for n := range kills {
			killOne(s, n)
		}
		s.finish()
		return
	}
	for n := range kills {
		s := newSurvivors(t, l)
		killOne(s, n)
		s.finish()
		left := available(t, connect(t, s.servers[0]).NewSemaphore(s.name))
		t.Logf("%d of %d permits are left", left, contendedPermits)
		assert.LessOrEqual(t, left, contendedPermits)
		assert.GreaterOrEqual(t, left, contendedPermits-2, "one for each goroutine that was killed")
	}
}

// If contending processes are killed at random instants, the others go on after one lease.
func TestKilledContender_at_random_instants(t *testing.T) {
	t.Parallel()
	rig.Long(t)
	eachContended(t, func(t *testing.T, l contended) {
		killEach(t, l, rig.Paced(3), func(s *survivors, _ int) {
			child, who := s.newcomer("")
			child.Line(t, soon, "passed")
			rest(rand.N(20 * time.Millisecond))
			s.kill(child, who)
		})
	})
}

// Processes are killed before one of their first commands reaches the server, or after it was
// executed and before they get the reply. These commands are acquisitions, releases and everything
// in between.
func TestKilledContender_at_each_command(t *testing.T) {
	t.Parallel()
	eachContended(t, func(t *testing.T, l contended) {
		killEach(t, l, 2*max(rig.Sized(3), 1), func(s *survivors, n int) {
			hold := (*rig.Tap).HoldNthCommand
			if n%2 == 1 {
				hold = (*rig.Tap).HoldNthReply
			}
			tap := rig.NewTap(t, s.servers[0])
			held := hold(tap, n/2+1, rig.MentionsPrefix(s.name))
			child, who := s.newcomer(tap.Addr())
			rig.Await(t, soon, "the command", held.Arrived)
			s.kill(child, who)
			tap.Stop()
		})
	})
}
