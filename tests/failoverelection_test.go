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

// failoverElection is an election during failovers: candidates of two clients lead briefly, one after the other. The
// clients count terms by the time of the server, so that a lost counter does not repeat a term.
type failoverElection struct {
	c      *failoverSeries
	a, b   *latchkey.Client
	mu     sync.Mutex
	terms  map[int64]string
	latest int64
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
			r.note(l)
			r.c.guard.stay(e.Name(), latchkey.HoldFrom(ctx), time.After(rand.N(20*time.Millisecond)))
			return nil
		})
		if err != nil {
			rest(10 * time.Millisecond)
		}
	}
}

// note checks that no other leader was given this term, and that terms grow.
func (r *failoverElection) note(l *latchkey.Leadership) {
	r.mu.Lock()
	defer r.mu.Unlock()
	assert.Empty(r.c.t, r.terms[l.Term()], "two believe in the term %d", l.Term())
	assert.Greater(r.c.t, l.Term(), r.latest, "terms grow")
	r.terms[l.Term()], r.latest = l.Value(), l.Term()
}

// leads lets a candidate lead through a failover while another one campaigns. The function that it returns checks that
// the leader and the server agree, and that the other candidate leads next, in a larger term.
func (r *failoverElection) leads(name string) (end func()) {
	ctx := within(r.c.t, time.Minute)
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
		found, err := r.b.NewElection(name).Leader(within(r.c.t, soon))
		require.NoError(r.c.t, err)
		if l.Err() == nil {
			assert.Equal(r.c.t, "first", found.Value, "the leader does not know that it has lost its term")
			assert.Equal(r.c.t, l.Term(), found.Term)
		} else {
			assert.ErrorIs(r.c.t, l.Err(), latchkey.ErrLost)
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

// The replica that takes over does not know the last election. The old leader learns this at its next renewal or
// announcement, and does not change the value of its successor. Terms that count by time grow; otherwise the same term
// may be given twice, as docs/explain/guarantees.md says.
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
			rig.Await(t, faultLease+leeway, "the old leader is told", old.Lost())
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

// An announcement in flight is refused if another master takes over and another leader is elected there.
func TestFailover_refuses_the_announcement_of_a_lost_term(t *testing.T) {
	t.Parallel()
	f := newLockFailover(t, fencedKind)
	tap := f.tap()
	f.fallBehind()
	old := mustLead(t, f.connect(tap).NewElection(f.name), "old")
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

// A slot that stays half moved for three leases costs no leader its term. At the latest after the move the leader can
// resign, and the next one leads and is known.
func TestMigration_of_an_election(t *testing.T) {
	t.Parallel()
	const lease = 3 * time.Second
	eachHalf(t, func(t *testing.T, cluster *rig.Cluster, which func(key string) bool) {
		client, other := connectCluster(t, cluster, latchkey.Options{Lease: lease}), connectCluster(t, cluster, latchkey.Options{Lease: lease})
		name := "{" + rig.Name(t) + "}:election"
		watched := leaders(t.Context(), other.NewElection(name))
		l := mustLead(t, client.NewElection(name), "first")
		sees(t, watched, "first")
		next := campaignInBackground(within(t, time.Minute), other.NewElection(name), "second")
		electionQueued(t, rig.NewAdmin(t, cluster.Server()), name, 1)
		moveKeys, finish := cluster.BeginMove(name)
		moveKeys(which)
		rig.Throughout(t, 3*lease, "it leads", l.Err)
		proclaimed := make(chan error, 1)
		go func() { proclaimed <- l.Proclaim(within(t, 2*soon), "again") }()
		moveKeys(rig.EveryKey)
		finish()
		require.NoError(t, rig.Await(t, 2*soon, "the announcement", proclaimed))
		sees(t, skippingErrors(watched), "again")
		mustResign(t, l)
		got := rig.Await(t, 2*soon, "the next leader", next)
		require.NoError(t, got.err)
		assert.Greater(t, got.leadership.Term(), l.Term())
		leaderIs(t, client.NewElection(name), "second", got.leadership.Term())
		mustResign(t, got.leadership)
	})
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
