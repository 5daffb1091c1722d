package tests

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// failoverElection is an election during failovers: candidates of two clients lead briefly, one
// after the other. The clients count terms by the time of the server, so that a lost counter does
// not repeat a term.
type failoverElection struct {
	c      *failoverSeries
	a, b   *latchkey.Client
	mu     sync.Mutex
	terms  map[int64]string
	latest int64
	lead   int // how many lead now
}

func newFailoverElection(c *failoverSeries) *failoverElection {
	options := c.options
	options.TimeFencing = true
	return &failoverElection{c: c, a: c.connect(options), b: c.connect(options), terms: map[int64]string{}}
}

// churn makes a candidate lead without end.
func (r *failoverElection) churn(ctx context.Context, i int) {
	e, value := []*latchkey.Client{r.a, r.b}[i%2].NewElection(r.c.prefix+"election"), fmt.Sprint("candidate ", i)
	for ctx.Err() == nil {
		err := e.Run(ctx, value, func(ctx context.Context, l *latchkey.Leadership) error {
			defer r.note(l)()
			r.c.guard.stay(e.Name(), e.HoldFrom(ctx), time.After(rand.N(20*time.Millisecond)))
			return nil
		})
		if err != nil {
			rest(10 * time.Millisecond)
		}
	}
}

// note checks that no other leader was given this term, and that terms grow. It returns what ends
// the leadership. While two lead, two masters serve, each with a counter of its own, as for a
// moment after a pause: guard bounds that time.
func (r *failoverElection) note(l *latchkey.Leadership) (end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	assert.Empty(r.c.t, r.terms[l.Term()], "two believe in the term %d", l.Term())
	if r.lead == 0 {
		assert.Greater(r.c.t, l.Term(), r.latest, "terms grow")
	}
	r.terms[l.Term()], r.latest = l.Value(), max(r.latest, l.Term())
	r.lead++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.lead--
	}
}

// leads lets a candidate lead through a failover while another one campaigns. The function that it
// returns checks that the leader and the server agree, and that the other candidate leads next, in
// a larger term.
func (r *failoverElection) leads(name string) (end func()) {
	ctx := within(r.c.t, 3*time.Minute)
	var l *latchkey.Leadership
	_ = r.c.again(ctx, func() (err error) { l, err = r.a.NewElection(name).Campaign(ctx, "first"); return err })
	require.NotNil(r.c.t, l)
	next := make(chan candidacy, 1)
	go func() {
		var n candidacy
		_ = r.c.again(ctx, func() error {
			n.leadership, n.err = r.b.NewElection(name).Campaign(ctx, "second")
			return n.err
		})
		next <- n
	}()
	return func() {
		rig.Eventually(r.c.t, r.c.options.Lease+soon, "the leader and the server agree", func() error {
			if l.Err() != nil {
				return nil //nolint:nilerr // the leader knows of the loss
			}
			found, err := r.b.NewElection(name).Leader(ctx)
			if err == nil && (found.Value != "first" || found.Term != l.Term()) {
				err = errors.New("the leader does not know that it has lost its term")
			}
			return err
		})
		if err := l.Err(); err != nil {
			assert.ErrorIs(r.c.t, err, latchkey.ErrLost)
		}
		if err := l.Resign(ctx); err != nil {
			assert.ErrorIs(r.c.t, err, latchkey.ErrNotHeld)
		}
		n := rig.Await(r.c.t, r.c.options.Lease+soon, "the next leader", next)
		require.NoError(r.c.t, n.err)
		assert.Greater(r.c.t, n.leadership.Term(), l.Term())
		leaderIs(r.c.t, r.a.NewElection(name), "second", n.leadership.Term())
		if err := n.leadership.Resign(ctx); err != nil {
			assert.ErrorIs(r.c.t, err, latchkey.ErrNotHeld)
		}
	}
}

// The replica that takes over does not know the last election. The old leader learns this at its
// next renewal or announcement, and does not change the value of its successor. Terms that count by
// time grow; otherwise the same term may be given twice, as docs/explain/guarantees.md says.
func TestFailover_that_loses_a_term(t *testing.T) {
	t.Parallel()
	for _, timed := range []bool{true, false} {
		t.Run(fmt.Sprint("TimeFencing ", timed), func(t *testing.T) {
			t.Parallel()
			f := newLockFailover(t, fencedKind)
			options := faultOptions
			options.TimeFencing = timed
			election := func() *latchkey.Election {
				return connectVia(t, f.Master, f.tap().Addr(), options).NewElection(f.name)
			}
			first := mustLead(t, election(), "before")
			mustResign(t, first)
			watched := leaders(t.Context(), election())
			sees(t, watched, "")
			f.fallBehind()
			for n := range 3 { // terms that the next master does not know
				mustResign(t, mustLead(t, election(), fmt.Sprint("short ", n)))
			}
			old := mustLead(t, election(), "old")
			sees(t, watched, "old")
			other := campaignInBackground(within(t, time.Minute), election(), "new")
			f.comesTo(f.master, 1)
			f.over()
			next := rig.Await(t, soon, "the next leader", other)
			require.NoError(t, next.err)
			if timed {
				assert.Greater(t, next.leadership.Term(), old.Term())
			} else {
				assert.Greater(t, next.leadership.Term(), first.Term(), "of what the next master knows")
			}
			rig.Await(t, soon, "the old leader is told", old.Lost())
			require.ErrorIs(t, old.Proclaim(t.Context(), "late"), latchkey.ErrLost)
			require.ErrorIs(t, old.Resign(t.Context()), latchkey.ErrLost)
			leaderIs(t, connect(t, f.Replicas[0]).NewElection(f.name), "new", next.leadership.Term())
			rig.Eventually(t, soon, "the observer sees the new leader", func() error {
				if each := rig.Await(t, soon, "the observer", watched); each.Value != "new" {
					return errors.Join(fmt.Errorf("it sees %q", each.Value), each.err)
				}
				return nil
			})
			mustResign(t, next.leadership)
		})
	}
}

// An announcement in flight is refused if another master takes over and another leader is elected
// there.
func TestFailover_refuses_the_announcement_of_a_lost_term(t *testing.T) {
	t.Parallel()
	f := newLockFailover(t, fencedKind)
	tap := f.tap()
	f.fallBehind()
	patient := faultOptions
	patient.Lease, patient.RetryBudget = time.Minute, time.Minute
	old := mustLead(t, connectVia(t, f.Master, tap.Addr(), patient).NewElection(f.name), "old")
	stop := tap.LoseAll(rig.Mentions("late"), rig.CutRequest)
	late := make(chan error, 1)
	go func() { late <- old.Proclaim(within(t, soon), "late") }()
	f.over()
	next := mustLead(t, connect(t, f.Replicas[0], faultOptions).NewElection(f.name), "new")
	stop()
	err := rig.Await(t, soon, "the announcement", late)
	require.ErrorIs(t, err, latchkey.ErrNotHeld)
	require.ErrorIs(t, err, latchkey.ErrLost)
	leaderIs(t, connect(t, f.Replicas[0]).NewElection(f.name), "new", next.Term())
	mustResign(t, next)
}

// movingElection is an election whose slot moves.
type movingElection struct {
	half          string
	leader, other *latchkey.Election
	watched       <-chan observed
	l             *latchkey.Leadership
	next          <-chan candidacy
	proclaimed    chan error
	finish        func() // the move
}

// A slot that stays half moved for two leases costs no leader its term. At the latest after the
// move the leader can resign, and the next one leads and is known.
func TestMigration_of_an_election(t *testing.T) {
	rig.Long(t)
	t.Parallel()
	options := latchkey.Options{Lease: 10 * time.Second}
	cluster, ctx := rig.NewCluster(t), within(t, 3*time.Minute)
	admin := rig.NewAdmin(t, cluster.Server())
	var all []*movingElection
	for half, which := range halves() {
		name := "{" + rig.Name(t) + "}:election"
		open := func() *latchkey.Election { return connectCluster(t, cluster, options).NewElection(name) }
		e := &movingElection{half: half, leader: open(), other: open(), proclaimed: make(chan error, 1)}
		e.watched = leaders(t.Context(), e.other)
		e.l = mustLead(t, e.leader, "first")
		sees(t, e.watched, "first")
		e.next = campaignInBackground(ctx, e.other, "second")
		electionQueued(t, admin, name, 1)
		e.finish = moveHalf(cluster, name, which)
		all = append(all, e)
	}
	rig.Throughout(t, 2*options.Lease, "they lead", func() error {
		for _, e := range all {
			if err := e.l.Err(); err != nil {
				return fmt.Errorf("%s: %w", e.half, err)
			}
		}
		return nil
	})
	for _, e := range all {
		go func() {
			err := e.l.Proclaim(ctx, "again")
			for errors.Is(err, latchkey.ErrUnavailable) && ctx.Err() == nil {
				err = e.l.Proclaim(ctx, "again")
			}
			e.proclaimed <- err
		}()
	}
	for _, e := range all {
		e.finish()
	}
	for _, e := range all {
		require.NoError(t, rig.Await(t, 2*soon, "the announcement", e.proclaimed), e.half)
		sees(t, skippingErrors(e.watched), "again")
		mustResign(t, e.l)
		got := rig.Await(t, 2*soon, "the next leader", e.next)
		require.NoError(t, got.err, e.half)
		assert.Greater(t, got.leadership.Term(), e.l.Term(), e.half)
		leaderIs(t, e.leader, "second", got.leadership.Term())
		mustResign(t, got.leadership)
	}
}

// skippingErrors drops the errors that an observer yields while the server is unavailable.
func skippingErrors(all <-chan observed) <-chan observed {
	known := make(chan observed, cap(all))
	go func() {
		defer close(known)
		for each := range all {
			if each.err == nil {
				known <- each
			}
		}
	}()
	return known
}
