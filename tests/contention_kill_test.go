package tests

import (
	"cmp"
	"context"
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

var rusherOptions = latchkey.Options{Lease: crashLease, StaleWaiterTimeout: crashLease}

// rusher is a process in which two goroutines in each role contend all the time. Its arguments: for
// what, its name, a name for itself, and for each server that and the address by which it is reached.
var rusher = rig.Child("rusher", func(ctx context.Context, args []string) error {
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
		client, _, err := dial(server, each[1], rusherOptions)
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
			go func() { failed <- r.rush(ctx, passed) }()
		}
	}
	return <-failed
})

// rush acquires and releases without end.
func (r role) rush(ctx context.Context, passed func()) error {
	for {
		got, err := r.acquire(ctx)
		if err == nil {
			err = got.release(ctx)
		}
		if err != nil {
			return err
		}
		passed()
	}
}

// survivors are goroutines of two clients in this process, which go on when others are
// killed.
type survivors struct {
	contest

	t        *testing.T
	of       contended
	servers  []*rig.Server
	name     string
	entrance entrance
	ended    <-chan error
	killed   []string
	calm     time.Duration   // that all survivors took to go on without a kill, just before
	gaps     []time.Duration // until all survivors went on
	excess   time.Duration   // of the longest gap, beyond what a machine as slow as this one explains
}

func newSurvivors(t *testing.T, l contended) *survivors {
	t.Helper()
	servers := []*rig.Server{rig.Shared()}
	if l.servers > 1 {
		rig.Need(t, rig.Single) // of which a few are soon started
		servers = freshServers(t, l.servers)
	}
	s := &survivors{t: t, of: l, servers: servers, name: rig.Name(t)}
	s.compete()
	return s
}

// compete has the survivors contend.
func (s *survivors) compete() {
	s.t.Helper()
	s.entrance = entrance{s.servers[0].Raw(s.t), s.name, "a survivor"}
	for i := range 2 {
		var clients []*latchkey.Client
		for _, server := range s.servers {
			clients = append(clients, connect(s.t, server, rusherOptions))
		}
		for _, p := range s.of.parties(clients, s.name, fmt.Sprint("survivor ", i), 2) {
			p.acquire = s.entrance.guarded(role{p.acquire, p.weight}).acquire
			s.parties = append(s.parties, p)
		}
	}
	s.passes, s.punctual, s.dump = math.MaxInt64, crashLease/5, dumpOf(s.t, s.servers, s.name)
	s.ended = s.begin(s.t.Context())
}

// newcomer starts a process that contends. Its way to the first server is by the address.
func (s *survivors) newcomer(addr string) (child *rig.ChildProcess, who string) {
	s.t.Helper()
	who = strconv.Itoa(rand.Int())
	args := []string{s.of.name, s.name, who}
	for _, server := range s.servers {
		args = append(args, server.Ticket(), cmp.Or(addr, server.Addr()))
		addr = ""
	}
	return rusher.Start(s.t, args...), who
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

// slowness is how many times longer than before the survivors may take after a kill only because the
// machine is busy.
const slowness = 4

// goOn waits until all survivors have gone on, and returns how long that took.
func (s *survivors) goOn() time.Duration {
	s.t.Helper()
	began, before := time.Now(), s.byParty()
	rig.Eventually(s.t, soon, "the survivors go on", func() error {
		for i, n := range s.byParty() {
			if n < before[i]+4 { // each of the two goroutines, and as many to be sure
				return fmt.Errorf("%v passes, and before %v", s.byParty(), before)
			}
		}
		return nil
	})
	return time.Since(began)
}

// finish ends the contest, checks it, and prints after which times the survivors went on.
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
	assert.Less(s.t, s.excess, s.limit())
}

// limit is one lease, and a period for those who waited if others wait for the dead. Readers and
// writers may wait for those of both sides, and then for each other.
func (s *survivors) limit() time.Duration {
	switch {
	case len(s.parties) > 2:
		return 3*crashLease + leeway
	case s.of.queued:
		return 2*crashLease + leeway
	}
	return crashLease + leeway
}

// eachContended runs a test for everything that can be contended for, at the same time.
func eachContended(t *testing.T, test func(t *testing.T, l contended)) {
	t.Helper()
	for _, l := range contendedKinds() {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			test(t, l)
		})
	}
}

// killEach starts the survivors, and has each of so many newcomers killed. What the killed have
// kept for ever, each of them has for itself.
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

// Processes that contend are killed at random instants: the others go on after one lease.
func TestKilledContender_at_random_instants(t *testing.T) {
	t.Parallel()
	eachContended(t, func(t *testing.T, l contended) {
		killEach(t, l, rig.Sized(10), func(s *survivors, _ int) {
			child, who := s.newcomer("")
			child.Line(t, soon, "passed")
			rest(rand.N(20 * time.Millisecond))
			s.kill(child, who)
		})
	})
}

// They are killed before each of their first commands has reached the server, and after it was
// executed, before they know: asks, releases and what is between.
func TestKilledContender_at_each_command(t *testing.T) {
	t.Parallel()
	eachContended(t, func(t *testing.T, l contended) {
		killEach(t, l, 2*max(rig.Sized(8), 2), func(s *survivors, n int) {
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
