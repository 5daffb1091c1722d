package tests

import (
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

// electionFleet is the processes of an election, whose leaders are killed and stopped.
type electionFleet struct {
	t       *testing.T
	server  *rig.Server
	admin   *rig.Admin
	name    string
	entered int
	running map[string]*rig.ChildProcess // by their values
	watched <-chan observed
	leader  latchkey.Leader // as the observer saw it last
	gaps    []time.Duration // between the end of a leader and the next one
}

func newElectionFleet(t *testing.T, candidates int) *electionFleet {
	server, name := rig.Shared(), rig.Name(t)
	e := &electionFleet{t: t, server: server, admin: rig.NewAdmin(t, server), name: name, running: map[string]*rig.ChildProcess{}}
	for range candidates {
		e.enter()
	}
	e.watched = leaders(t.Context(), connect(t, server, electionOptions).NewElection(name))
	e.awaitLeader()
	e.awaitWrite()
	return e
}

// enter starts one more candidate.
func (e *electionFleet) enter() {
	value := fmt.Sprint("candidate ", e.entered)
	e.entered++
	e.running[value] = candidate.Start(e.t, e.name, value, e.server.Ticket(), e.server.Addr())
	e.running[value].Line(e.t, soon, "campaigns")
}

// awaitLeader waits until the observer sees a running process lead in a larger term. On a busy
// machine a process may have led once more before it was killed or stopped.
func (e *electionFleet) awaitLeader() {
	e.t.Helper()
	e.leader = newer(e.t, e.watched, e.leader.Term)
	for e.running[e.leader.Value] == nil {
		e.leader = newer(e.t, e.watched, e.leader.Term)
	}
}

// awaitWrite waits until the leader has written in its term. On a busy machine there may be another
// leader by then.
func (e *electionFleet) awaitWrite() {
	e.t.Helper()
	for written := int64(-1); written != e.leader.Term; {
		if written > e.leader.Term {
			e.awaitLeader()
		}
		rig.Eventually(e.t, soon, "the leader writes", func() error {
			if written = termWritten(e.admin, e.name); written < e.leader.Term {
				return fmt.Errorf("the last write is of term %d, not %d", written, e.leader.Term)
			}
			return nil
		})
	}
}

// end kills or stops the leader, and waits until the next one has written.
func (e *electionFleet) end(how func(*rig.ChildProcess)) (gone *rig.ChildProcess, gap time.Duration) {
	e.t.Helper()
	gone = e.running[e.leader.Value]
	delete(e.running, e.leader.Value)
	how(gone)
	ended := time.Now()
	e.awaitLeader()
	gap = time.Since(ended)
	e.gaps = append(e.gaps, gap)
	e.awaitWrite()
	return gone, gap
}

// kill kills the leader and starts another candidate.
func (e *electionFleet) kill() (gap time.Duration) {
	e.t.Helper()
	_, gap = e.end((*rig.ChildProcess).Kill)
	e.enter()
	return gap
}

// resumption is the end of a leadership whose process was stopped.
type resumption struct {
	ending

	stopped, resumed time.Time
}

// stop stops the leader until the next one has written, and lets it continue.
func (e *electionFleet) stop() (r resumption, gap time.Duration) {
	e.t.Helper()
	was := e.leader
	process, gap := e.end(func(p *rig.ChildProcess) { p.Stop(e.t); r.stopped = time.Now() })
	r.resumed = time.Now()
	process.Continue(e.t)
	e.running[was.Value] = process
	r.ending = endingOf(e.t, process, was.Term)
	return r, gap
}

// inTime requires that a leader is followed by the next one within its lease. The processes of the
// fleet may be late without this one being late, so that the bound is loose.
func (e *electionFleet) inTime(end func() (gap time.Duration)) {
	e.t.Helper()
	assert.NoError(e.t, rig.InTime(e.t, func(int) error {
		if gap := end(); gap > electionLease+leeway {
			return fmt.Errorf("nobody led for %v, with a lease of %v", gap.Round(time.Millisecond), electionLease)
		}
		return nil
	}))
}

// Leaders are stopped for longer than their lease and continue, and are killed, again and again.
// The next one leads within a lease, terms grow, two never lead at once, and an observer sees each
// leader. A leader that continues learns that its leadership is lost, and what it still writes is
// refused.
func TestElection_killedLeaders(t *testing.T) {
	t.Parallel()
	n := rig.Count(t, "LATCHKEY_TEST_ELECTION_KILLS", rig.Sized(6))
	e := newElectionFleet(t, 3)
	kills := 0
	var noticed []time.Duration // after the process continued
	for len(noticed) < n {
		e.inTime(func() time.Duration {
			r, gap := e.stop()
			if r.noticed.Before(r.stopped) {
				t.Log("on a busy machine a leadership was lost before its process was stopped")
				return gap
			}
			noticed = append(noticed, r.noticed.Sub(r.resumed))
			assert.True(t, r.lost, "the process that continued knows that its leadership is lost")
			assert.False(t, r.accepted, "a write was accepted after the next leader had written")
			return gap
		})
		e.inTime(func() time.Duration { kills++; return e.kill() })
	}
	median, most := spread(e.gaps)
	t.Logf("%d kills, %d leaders stopped; the next leader was seen after %v (median), %v (at most); the lease is %v",
		kills, len(noticed), median, most, electionLease)
	median, most = spread(noticed)
	t.Logf("all %d learned of their loss when they continued, after %v (median), %v (at most)", len(noticed), median, most)
	for _, p := range e.running {
		p.Kill()
	}
	accepted, refused := checkRegister(t, e.admin, e.name)
	t.Logf("%s writes of leaders were accepted, %s refused", accepted, refused)
}

// A leader that is stopped for longer than its lease, while another one is elected, campaigns again
// when it continues.
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

// spread returns the median and the maximum.
func spread(all []time.Duration) (median, most time.Duration) {
	slices.Sort(all)
	return all[len(all)/2].Round(time.Millisecond), all[len(all)-1].Round(time.Millisecond)
}

// newer waits until an observer yields a leader with a larger term, and checks that terms never
// decrease.
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
