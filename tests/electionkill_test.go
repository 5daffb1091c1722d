package tests

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

const electionLease = 500 * time.Millisecond

var electionOptions = latchkey.Options{Lease: electionLease, StaleWaiterTimeout: electionLease}

// register is a storage that leaders write to, as in docs/reference/election.md: it remembers the largest term and
// refuses smaller ones. It also remembers who had each term, and counts violations.
var register = rueidis.NewLuaScript(`
local term, who = tonumber(ARGV[1]), ARGV[2]
local last = tonumber(redis.call('hget', KEYS[1], 'term') or 0)
local whose = redis.call('hget', KEYS[1], 'of ' .. term)
if whose and whose ~= who then
  redis.call('hincrby', KEYS[1], 'two in one term', 1)
end
if term < last then
  redis.call('hincrby', KEYS[1], 'refused', 1)
  return 0
end
redis.call('hset', KEYS[1], 'term', term, 'of ' .. term, who)
redis.call('hincrby', KEYS[1], 'written', 1)
return 1`)

func registerKey(name string) string { return "register:{" + name + "}" }

// refusedInTerm counts writes that were refused although the leadership was valid when the reply arrived: there were
// two leaders at once.
const refusedInTerm = "refused in a term that lasts"

// candidate is a process that leads again and again, and writes to the register all the time. Its arguments: the name,
// its value, the server, and the address by which to reach it.
var candidate = rig.Child("candidate", func(ctx context.Context, args []string) error {
	name, value := args[0], args[1]
	server, err := rig.Attach(args[2])
	if err != nil {
		return err
	}
	raw, err := server.Client()
	if err != nil {
		return err
	}
	client, _, err := dial(server, args[3], electionOptions)
	if err != nil {
		return err
	}
	fmt.Println("campaigns")
	return client.NewElection(name).Run(ctx, value, func(ctx context.Context, l *latchkey.Leadership) error {
		for ctx.Err() == nil {
			accepted, err := register.Exec(ctx, raw, []string{registerKey(name)}, []string{strconv.FormatInt(l.Term(), 10), value}).AsInt64()
			if err == nil && accepted == 0 && l.Err() == nil {
				_ = raw.Do(ctx, raw.B().Hincrby().Key(registerKey(name)).Field(refusedInTerm).Increment(1).Build()).Error()
			}
			rest(time.Millisecond)
		}
		return nil
	})
})

// Leaders are killed again and again. The next one leads within a lease, terms grow, two never lead at once, and an
// observer sees each leader.
func TestElection_killedLeaders(t *testing.T) {
	t.Parallel()
	kills := 15
	if n, err := strconv.Atoi(os.Getenv("LATCHKEY_TEST_ELECTION_KILLS")); err == nil {
		kills = n
	}
	kills = rig.Sized(kills)
	const candidates = 3
	server, name := rig.Shared(), rig.Name(t)
	processes := map[string]*rig.ChildProcess{}
	enter := func(n int) {
		value := fmt.Sprint("candidate ", n)
		processes[value] = candidate.Start(t, name, value, server.Ticket(), server.Addr())
		processes[value].Line(t, soon, "campaigns")
	}
	for n := range candidates {
		enter(n)
	}
	watched := leaders(t.Context(), connect(t, server, electionOptions).NewElection(name))
	leading := newer(t, watched, 0)
	var gaps []time.Duration
	kill := func() time.Duration {
		processes[leading.Value].Kill()
		killed := time.Now()
		delete(processes, leading.Value)
		leading = newer(t, watched, leading.Term)
		for processes[leading.Value] == nil { // on a busy machine a process led once more before it was killed
			leading = newer(t, watched, leading.Term)
		}
		gap := time.Since(killed)
		gaps = append(gaps, gap)
		enter(candidates + len(gaps))
		return gap
	}
	for len(gaps) < kills {
		assert.NoError(t, rig.InTime(t, func(int) error {
			if gap := kill(); gap > electionLease+leeway/5 {
				return fmt.Errorf("nobody led for %v, with a lease of %v", gap.Round(time.Millisecond), electionLease)
			}
			return nil
		}))
	}
	slices.Sort(gaps)
	t.Logf("%d kills; the next leader was seen after %v (median), %v (at most); the lease is %v",
		len(gaps), gaps[len(gaps)/2].Round(time.Millisecond), gaps[len(gaps)-1].Round(time.Millisecond), electionLease)
	written := rig.NewAdmin(t, server).Do("HGETALL", registerKey(name))
	counts, err := written.AsStrMap()
	require.NoError(t, err)
	assert.NotContains(t, counts, "two in one term")
	assert.NotContains(t, counts, refusedInTerm)
	t.Logf("%s writes of leaders, refused: %q", counts["written"], counts["refused"])
	for _, p := range processes {
		p.Kill()
	}
}

// newer waits until an observer yields a leader with a larger term, and checks that terms never decrease.
func newer(t *testing.T, all <-chan observed, term int64) latchkey.Leader {
	t.Helper()
	for {
		each := rig.Await(t, soon, "a new leader", all)
		if errors.Is(each.err, latchkey.ErrUnavailable) { // on a busy machine
			continue
		}
		require.NoError(t, each.err)
		if each.IsZero() {
			continue
		}
		require.GreaterOrEqual(t, each.Term, term)
		if each.Term > term {
			return each.Leader
		}
	}
}

// A leader that is stopped for longer than its lease, while another one is elected, campaigns again when it continues.
func TestElection_stoppedLeader(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	e := connect(t, server).NewElection(name)
	stopped := candidate.Start(t, name, "stopped", server.Ticket(), server.Addr())
	watched := leaders(t.Context(), e)
	first := sees(t, watched, "stopped")
	stopped.Stop(t)
	next := mustLead(t, e, "next")
	require.Greater(t, next.Term(), first.Term)
	stopped.Continue(t)
	mustResign(t, next)
	again := newer(t, watched, next.Term())
	assert.Equal(t, "stopped", again.Value)
	stopped.Kill()
}

// An observer whose connections are cut or fall silent sees each leader that lasts.
func TestElectionObserve_connectionCut(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	tap := rig.NewTap(t, server)
	options := latchkey.Options{PollCeiling: 500 * time.Millisecond}
	watched := leaders(t.Context(), connectVia(t, server, tap.Addr(), options).NewElection(name))
	sees(t, watched, "")
	e := connect(t, server).NewElection(name)
	for n := range 6 {
		switch n % 3 {
		case 0:
			tap.Cut()
		case 1:
			tap.CutSubscribers()
		case 2:
			tap.FreezeSubscribers()
		}
		value := fmt.Sprint("leader ", n)
		l := mustLead(t, e, value)
		assert.Equal(t, l.Term(), sees(t, watched, value).Term)
		require.NoError(t, l.Proclaim(t.Context(), value+" again"))
		sees(t, watched, value+" again")
		mustResign(t, l)
		sees(t, watched, "")
	}
}

// patientObserver relies on messages, on the end of a lease and on its subscription, and hardly polls.
var patientObserver = latchkey.Options{Lease: 4 * time.Minute, PollCeiling: time.Minute, StaleWaiterTimeout: time.Minute}

// An observer does not miss what is published while its subscription is down: it queries the leader when the
// subscription is back.
func TestElectionObserve_resubscribes(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	tap := rig.NewTap(t, server)
	watched := leaders(t.Context(), connectVia(t, server, tap.Addr(), patientObserver).NewElection(name))
	sees(t, watched, "")
	e := connect(t, server).NewElection(name)
	for n := range 5 {
		rig.Eventually(t, soon, "it listens", func() error {
			if tap.CutSubscribers() == 0 {
				return fmt.Errorf("it does not")
			}
			return nil
		})
		value := fmt.Sprint("leader ", n)
		l := mustLead(t, e, value)
		sees(t, watched, value)
		mustResign(t, l)
		sees(t, watched, "")
	}
}

// While the server is unavailable an observer yields an error once, and afterwards the leader.
func TestElectionObserve_unavailable(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	link := rig.NewLink(t, server)
	options := latchkey.Options{PollCeiling: 300 * time.Millisecond, RetryBudget: 300 * time.Millisecond}
	l := mustLead(t, connect(t, server).NewElection(name), "a")
	watched := leaders(t.Context(), connectVia(t, server, link.Addr(), options).NewElection(name))
	sees(t, watched, "a")
	link.Silence()
	told := rig.Await(t, soon, "the observer is told", watched)
	require.ErrorIs(t, told.err, latchkey.ErrUnavailable)
	require.True(t, told.IsZero())
	rig.Throughout(t, time.Second, "it is told once", func() error {
		if len(watched) > 0 {
			return fmt.Errorf("%d more", len(watched))
		}
		return nil
	})
	link.Heal()
	sees(t, watched, "a")
	mustResign(t, l)
	sees(t, watched, "")
}

// An observer that stops, or whose context ends, leaves nothing.
func TestElectionObserve_leavesNothing(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	admin, e := rig.NewAdmin(t, server), connect(t, server).NewElection(name)
	ctx, cancel := context.WithCancel(t.Context())
	watched := leaders(ctx, e)
	sees(t, watched, "")
	rig.Eventually(t, soon, "it listens", func() error {
		if subscribed(admin, name) == nil {
			return fmt.Errorf("nobody does")
		}
		return nil
	})
	cancel()
	_, open := <-watched
	require.False(t, open, "no error at the end of the context")
	for leader, err := range e.Observe(t.Context()) {
		require.NoError(t, err)
		require.True(t, leader.IsZero())
		break
	}
	rig.Eventually(t, soon, "nobody listens", func() error { return subscribed(admin, name) })
}
