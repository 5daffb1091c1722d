package tests

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// Elections when replies, announcements and leases are late or lost.

// A leader that lost its term does not overwrite the value of its successor, and neither does a
// late or repeated command.
func TestElection_staleProclaim(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	admin, tap := rig.NewAdmin(t, server), rig.NewTap(t, server)
	old := mustLead(t, connectVia(t, server, tap.Addr()).NewElection(name), "old")
	held, release := holdCommands(tap, rig.Mentions("late"))
	late := make(chan error, 1)
	go func() { late <- old.Proclaim(within(t, soon), "late") }()
	rig.Await(t, soon, "the value is on its way", held.Arrived)

	forced, err := connect(t, server).ForceUnlock(t.Context(), name)
	require.NoError(t, err)
	require.True(t, forced)
	e := connect(t, server).NewElection(name)
	leaderIs(t, e, "", 0)
	next := mustLead(t, e, "new")
	before := admin.Dump(name)
	release()
	err = rig.Await(t, soon, "the late value", late)
	require.ErrorIs(t, err, latchkey.ErrNotHeld)
	require.ErrorIs(t, err, latchkey.ErrLost)
	assert.Equal(t, before["latchkey_leader:{"+name+"}"], admin.Dump(name)["latchkey_leader:{"+name+"}"])
	rig.Await(t, soon, "the old leader is told", old.Lost())
	assert.Equal(t, "old", old.Value())
	require.ErrorIs(t, old.Resign(t.Context()), latchkey.ErrLost)
	leaderIs(t, e, "new", next.Term())
	mustResign(t, next)
}

// A leadership that is lost before it was announced does not count: a campaign continues, and an
// attempt fails.
func TestElection_lostBeforeItIsAnnounced(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	tap, admin := rig.NewTap(t, server), rig.NewAdmin(t, server)
	e := connectVia(t, server, tap.Addr()).NewElection(name)
	held, release := holdCommands(tap, rig.Mentions("again"))
	campaign := campaignInBackground(within(t, time.Minute), e, "again")
	rig.Await(t, soon, "the announcement is on its way", held.Arrived)
	leaderIs(t, connect(t, server).NewElection(name), "", 0)
	admin.Do("DEL", name)
	release()
	got := rig.Await(t, soon, "the campaign", campaign)
	require.NoError(t, got.err)
	assert.Equal(t, int64(2), got.leadership.Term())
	leaderIs(t, e, "again", 2)
	mustResign(t, got.leadership)

	held, release = holdCommands(tap, rig.Mentions("once"))
	failed := make(chan error, 1)
	go func() {
		_, err := e.TryCampaign(within(t, soon), "once")
		failed <- err
	}()
	rig.Await(t, soon, "the announcement is on its way", held.Arrived)
	admin.Do("DEL", name)
	release()
	err := rig.Await(t, soon, "the attempt", failed)
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
	require.ErrorIs(t, err, latchkey.ErrLost)
	leaderIs(t, e, "", 0)
}

// Of two proclaimed values the later one stays, whichever arrives last.
func TestElection_lateProclaimOfTheSameTerm(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	tap := rig.NewTap(t, server)
	l := mustLead(t, connectVia(t, server, tap.Addr()).NewElection(name), "one")
	lost := tap.Lose(1, rig.Mentions("two"), rig.CutRequest)
	ctx, cancel := context.WithCancel(t.Context())
	two := make(chan error, 1)
	go func() { two <- l.Proclaim(ctx, "two") }()
	rig.Await(t, soon, "the value is lost", lost)
	require.NoError(t, l.Proclaim(within(t, soon), "three"))
	err := rig.Await(t, soon, "the earlier call", two)
	cancel()
	if err != nil {
		require.ErrorIs(t, err, latchkey.ErrUnavailable)
	}
	assert.Equal(t, "three", l.Value())
	leaderIs(t, connect(t, server).NewElection(name), "three", l.Term())
	mustResign(t, l)
}

// A lost reply causes no second term and no leader without a value.
func TestElection_lostReplies(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	admin := rig.NewAdmin(t, server)
	for n := 1; n <= 3; n++ {
		tap := rig.NewTap(t, server)
		e := connectVia(t, server, tap.Addr()).NewElection(fmt.Sprint(name, " ", n))
		leaderIs(t, e, "", 0)
		lost := tap.Lose(n, rig.Named("EVAL", "EVALSHA"), rig.Cut)
		l := mustLead(t, e, "a")
		if n < 3 {
			rig.Await(t, soon, "a reply is lost", lost)
		}
		assert.Equal(t, int64(1), l.Term())
		leaderIs(t, e, "a", 1)
		mustResign(t, l)
		rig.Eventually(t, soon, "nothing is left", free(admin, fmt.Sprint(name, " ", n)))
	}
}

// A leader whose lease ends, here a fixed one, no longer leads, and the next candidate leads within
// the lease.
func TestElection_endOfTheLease(t *testing.T) {
	t.Parallel()
	const lease = 2 * time.Second // the observer has to see the leader before it is over
	server, name := rig.Shared(), rig.Name(t)
	e := connect(t, server).NewElection(name)
	watched := leaders(t.Context(), connect(t, server, patientObserver).NewElection(name))
	l := mustLead(t, e, "a", latchkey.Lease(lease))
	sees(t, watched, "a")
	rig.Await(t, soon, "the loss", l.Lost())
	require.ErrorIs(t, l.Err(), latchkey.ErrLost)
	require.ErrorIs(t, context.Cause(l.Context(t.Context())), latchkey.ErrLost)
	sees(t, watched, "")
	next := mustLead(t, e, "b")
	assert.Greater(t, next.Term(), l.Term())
	sees(t, watched, "b")
	mustResign(t, next)
}

// A campaign has won when the server falls silent, before the value is announced. The campaign ends
// when its time is over, and resigns in the background.
func TestElection_silentBeforeItIsAnnounced(t *testing.T) {
	t.Parallel()
	const patience = 5 * time.Second // a busy machine may take a second to win
	for what, campaign := range map[string]func(e *latchkey.Election) error{
		"Wait": func(e *latchkey.Election) error {
			_, err := e.Campaign(context.Background(), "me", latchkey.Wait(patience))
			return err
		},
		"a deadline": func(e *latchkey.Election) error {
			_, err := e.Campaign(within(t, patience), "me")
			return err
		},
		"a try with a deadline": func(e *latchkey.Election) error {
			_, err := e.TryCampaign(within(t, patience), "me")
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			server, name := rig.Shared(), rig.Name(t)
			tap := rig.NewTap(t, server)
			e := connectVia(t, server, tap.Addr()).NewElection(name) // which releases for ten seconds
			var announced atomic.Bool
			leader := rig.Mentions("latchkey_leader:{" + name + "}")
			_, release := holdCommands(tap, func(c rig.Command) bool {
				announced.CompareAndSwap(false, leader(c))
				return announced.Load()
			})
			defer release()
			began := time.Now()
			err := campaign(e)
			require.True(t, announced.Load())
			require.ErrorIs(t, err, latchkey.ErrUnavailable)
			require.ErrorIs(t, err, latchkey.ErrUnknownOutcome)
			require.NotErrorIs(t, err, latchkey.ErrNotAcquired)
			require.Less(t, time.Since(began), patience+leeway)
			release()
			rig.Eventually(t, soon, "all is free", free(rig.NewAdmin(t, server), name))
		})
	}
}
