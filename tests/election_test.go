package tests

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

func TestElection(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	a, b := connect(t, server).NewElection(name), connect(t, server).NewElection(name)
	leaderIs(t, b, "", 0)

	first := mustLead(t, a, "a:1")
	require.NoError(t, first.Err())
	assert.Equal(t, "a:1", first.Value())
	assert.Equal(t, int64(1), first.Term())
	found := leaderIs(t, b, "a:1", 1)
	assert.Greater(t, found.Lease, 10*time.Second)
	assert.LessOrEqual(t, found.Lease, defaultLease)
	assert.Less(t, found.Age, soon)
	inspection, err := connect(t, server).Inspect(t.Context(), name)
	require.NoError(t, err)
	assert.Equal(t, []latchkey.Holder{{Owner: found.Owner, Count: 1}}, inspection.Holders)

	_, err = b.TryCampaign(t.Context(), "b:1")
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
	err = refused(t, func(wait latchkey.WaitOption) error {
		_, err := b.Campaign(t.Context(), "b:1", wait)
		return err
	})
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	electionQueued(t, rig.NewAdmin(t, server), name, 0) // or it is elected before it leaves

	require.NoError(t, first.Proclaim(t.Context(), "a:2"))
	assert.Equal(t, "a:2", first.Value())
	again := leaderIs(t, b, "a:2", 1)
	assert.Equal(t, found.Since, again.Since, "of the term, not of the value")

	ctx := first.Context(t.Context())
	mustResign(t, first)
	require.ErrorIs(t, context.Cause(ctx), latchkey.ErrNotHeld)
	require.ErrorIs(t, first.Resign(t.Context()), latchkey.ErrNotHeld)
	require.ErrorIs(t, first.Proclaim(t.Context(), "a:3"), latchkey.ErrNotHeld)
	leaderIs(t, b, "", 0)

	second, err := b.TryCampaign(t.Context(), "")
	require.NoError(t, err)
	leaderIs(t, a, "", 2)
	mustResign(t, second)
}

// Redis stores the hash of a fenced lock, its counter and the value of the leader, which goes with
// the lock. It stores nothing else.
func TestGoldenElection(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	admin := rig.NewAdmin(t, server)
	e := connectLabelled(t, server, "node-1").NewElection(name)
	l := mustLead(t, e, "a:1")
	leader := leaderIs(t, e, "a:1", 1)
	requireOwner(t, leader.Owner.String())
	record := func(revision, value string) rig.Entry {
		return rig.Entry{Type: "hash", TTL: rig.NoTTL, Hash: map[string]string{
			"owner": leader.Owner.String(), "term": "1", "since": fmt.Sprint(leader.Since.UnixMilli()), "revision": revision, "value": value, "label": "node-1",
		}}
	}
	counter := rig.Entry{Type: "string", String: "1", TTL: rig.NoTTL}
	golden(t, admin, name, map[string]rig.Entry{
		name: hash(leader.Owner.String(), "1"), tokenKey(name): counter, "latchkey_leader:{" + name + "}": record("1", "a:1"),
	})
	require.NoError(t, l.Proclaim(t.Context(), "a:2"))
	golden(t, admin, name, map[string]rig.Entry{
		name: hash(leader.Owner.String(), "1"), tokenKey(name): counter, "latchkey_leader:{" + name + "}": record("2", "a:2"),
	})
	mustResign(t, l)
	golden(t, admin, name, map[string]rig.Entry{tokenKey(name): counter})
}

// Candidates of several clients lead one after the other, each right after the previous one has
// resigned, in terms that grow by one, both between clients and inside a client. An observer sees
// each of them.
func TestElection_handsOver(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	admin := rig.NewAdmin(t, server)
	watched := leaders(t.Context(), connect(t, server).NewElection(name))
	sees(t, watched, "")
	const clients, each = 3, 3
	leading := mustLead(t, connect(t, server).NewElection(name), "first")
	won := make(chan candidacy, clients*each)
	for i := range clients {
		e := connect(t, server).NewElection(name)
		for j := range each {
			go func() {
				l, err := e.Campaign(within(t, time.Minute), fmt.Sprintf("client %d, candidate %d", i, j))
				won <- candidacy{leadership: l, err: err}
			}()
		}
	}
	electionQueued(t, admin, name, clients)
	last := leading.Term()
	for range clients * each {
		mustResign(t, leading)
		next := rig.Await(t, soon, "the next leader", won)
		require.NoError(t, next.err)
		leading = next.leadership
		require.Equal(t, last+1, leading.Term(), "no term is left out, and none is used twice")
		last = leading.Term()
		seen := sees(t, watched, leading.Value())
		require.Equal(t, last, seen.Term)
	}
	mustResign(t, leading)
	sees(t, watched, "")
}

// After a resignation the next candidate leads and the observer sees it, because they poll, even if
// no message arrives. Without that they would wait for the end of a lease.
func TestElection_withoutMessages(t *testing.T) {
	t.Parallel()
	const ceiling = 500 * time.Millisecond
	server, name := rig.Shared(), rig.Name(t)
	admin, tap := rig.NewAdmin(t, server), rig.NewTap(t, server)
	options := latchkey.Options{Lease: time.Hour, Tuning: latchkey.Tuning{PollCeiling: ceiling}}
	leading := mustLead(t, connect(t, server, options).NewElection(name), "first")
	deaf := func() *latchkey.Election { return connectVia(t, server, tap.Addr(), options).NewElection(name) }
	watched := leaders(t.Context(), deaf())
	sees(t, watched, "first")
	next := campaignInBackground(within(t, time.Minute), deaf(), "second")
	electionQueued(t, admin, name, 1)
	tap.DropMessages(true)
	for i := range 2 {
		mustResign(t, leading)
		resigned := time.Now()
		got := rig.Await(t, soon, "the next leader", next)
		require.NoError(t, got.err)
		t.Logf("%v after the resignation", got.at.Sub(resigned).Round(time.Millisecond))
		leading = got.leadership
		sees(t, watched, leading.Value())
		next = campaignInBackground(within(t, time.Minute), deaf(), fmt.Sprint("leader ", i))
		electionQueued(t, admin, name, 1)
	}
	mustResign(t, leading)
	got := rig.Await(t, soon, "the last leader", next)
	require.NoError(t, got.err)
	mustResign(t, got.leadership)
}

// A campaign that ends leaves no entry in the queue and no leader.
func TestElection_cancelledCampaign(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	admin := rig.NewAdmin(t, server)
	l := mustLead(t, connect(t, server).NewElection(name), "a")
	ctx, cancel := context.WithCancel(t.Context())
	client, refused := connectRefused(t, server, patient)
	waits := campaignInBackground(ctx, client.NewElection(name), "b")
	electionQueued(t, admin, name, 1)
	atRest(t, refused) // an answer that is on its way when the call ends would be unknown
	cancel()
	got := rig.Await(t, soon, "the campaign", waits)
	require.ErrorIs(t, got.err, latchkey.ErrNotAcquired)
	require.ErrorIs(t, got.err, context.Canceled)
	electionQueued(t, admin, name, 0)

	waits = campaignInBackground(t.Context(), client.NewElection(name), "b")
	electionQueued(t, admin, name, 1)
	require.NoError(t, client.Close(within(t, soon)))
	got = rig.Await(t, soon, "the campaign", waits)
	require.ErrorIs(t, got.err, latchkey.ErrClosed)
	mustResign(t, l)
	rig.Eventually(t, soon, "nothing is left", free(admin, name))
}

// A call with invalid arguments sends nothing.
func TestElection_badInput(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	client := connect(t, server)
	e := client.NewElection(name)
	long := strings.Repeat("x", longestValue+1)
	_, err := e.Campaign(t.Context(), long)
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	_, err = e.Campaign(t.Context(), "a", latchkey.As(client.NewOwner()))
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	require.ErrorContains(t, err, "an election, which is not re-entrant")
	_, err = client.NewElection("").Campaign(t.Context(), "a")
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	_, err = client.NewElection("").Leader(t.Context())
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	tagged := client.NewElection("{" + name + "}") // it shares its terms with e
	_, err = tagged.TryCampaign(t.Context(), "a")
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	_, err = tagged.Leader(t.Context())
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	for _, err := range client.NewElection("").Observe(t.Context()) {
		require.ErrorIs(t, err, latchkey.ErrInvalid)
	}
	require.Empty(t, rig.NewAdmin(t, server).KeysOf(name))

	l := mustLead(t, e, long[1:])
	require.ErrorIs(t, l.Proclaim(t.Context(), long), latchkey.ErrInvalid)
	_, err = e.Campaign(l.Context(t.Context()), "a")
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	assert.Equal(t, l.Term(), e.HoldFrom(l.Context(t.Context())).Token())
	leaderIs(t, e, long[1:], l.Term())
	mustResign(t, l)

	var none *latchkey.Leadership
	require.ErrorIs(t, none.Err(), latchkey.ErrNotHeld)
	require.ErrorIs(t, none.Resign(t.Context()), latchkey.ErrNotHeld)
	require.ErrorIs(t, none.Proclaim(t.Context(), "a"), latchkey.ErrNotHeld)
	assert.Zero(t, none.Term())
	assert.Empty(t, none.Value())
}

// A key that is not an election stays as it is. A lock that is held under the name has no leader.
func TestElection_wrongKind(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	admin, client := rig.NewAdmin(t, server), connect(t, server)
	admin.Do("RPUSH", name, "data")
	e := client.NewElection(name)
	_, err := e.Campaign(within(t, soon), "a")
	require.ErrorIs(t, err, latchkey.ErrWrongKind)
	_, err = e.Leader(t.Context())
	require.ErrorIs(t, err, latchkey.ErrWrongKind)
	for _, err := range e.Observe(within(t, soon)) {
		require.ErrorIs(t, err, latchkey.ErrWrongKind)
	}

	other := client.NewElection(name + " 2")
	admin.Do("RPUSH", "latchkey_leader:{"+name+" 2}", "data")
	_, err = other.Campaign(within(t, soon), "a")
	require.ErrorIs(t, err, latchkey.ErrWrongKind)
	require.False(t, admin.Exists(name+" 2"), "it does not stay leader")
	admin.Do("DEL", "latchkey_leader:{"+name+" 2}")

	hold := mustLock(t, client.NewFencedLock(name+" 2"))
	leaderIs(t, other, "", 0)
	_, err = other.TryCampaign(t.Context(), "a")
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
	mustUnlock(t, hold)
	l := mustLead(t, other, "a")
	assert.Greater(t, l.Term(), hold.Token())
	mustResign(t, l)
}

// Close ends a leadership and gives it to the next candidate.
func TestElection_closedClient(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	client := connect(t, server)
	l := mustLead(t, client.NewElection(name), "a")
	e := connect(t, server).NewElection(name)
	next := campaignInBackground(within(t, time.Minute), e, "b")
	electionQueued(t, rig.NewAdmin(t, server), name, 1)
	watched := leaders(t.Context(), client.NewElection(name))
	sees(t, watched, "a")
	require.NoError(t, client.Close(within(t, soon)))
	require.ErrorIs(t, l.Err(), latchkey.ErrClosed)
	require.ErrorIs(t, l.Proclaim(t.Context(), "c"), latchkey.ErrNotHeld)
	got := rig.Await(t, soon, "the next leader", next)
	require.NoError(t, got.err)
	leaderIs(t, e, "b", got.leadership.Term())
	var last observed
	for each := range watched {
		last = each
	}
	require.ErrorIs(t, last.err, latchkey.ErrClosed)
	mustResign(t, got.leadership)
}

// Run leads again after a loss, but not after fn has returned without one.
func TestElectionRun(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	client := connect(t, server)
	e := client.NewElection(name)
	wanted := errors.New("wanted")
	var terms []int64
	err := e.Run(within(t, soon), "a", func(ctx context.Context, l *latchkey.Leadership) error {
		terms = append(terms, l.Term())
		leaderIs(t, e, "a", l.Term())
		if len(terms) == 3 {
			return wanted
		}
		admin := rig.NewAdmin(t, server)
		admin.Do("DEL", name)
		assert.ErrorIs(t, l.Proclaim(ctx, "b"), latchkey.ErrLost)
		<-ctx.Done()
		assert.ErrorIs(t, context.Cause(ctx), latchkey.ErrLost)
		return errors.New("dropped")
	})
	require.Equal(t, wanted, err)
	assert.Equal(t, []int64{1, 2, 3}, terms)
	leaderIs(t, e, "", 0)

	require.NoError(t, e.Run(within(t, soon), "a", func(context.Context, *latchkey.Leadership) error { return nil }))
	leaderIs(t, e, "", 0)
	require.PanicsWithValue(t, "now", func() {
		_ = e.Run(within(t, soon), "a", func(context.Context, *latchkey.Leadership) error { panic("now") })
	})
	leaderIs(t, e, "", 0)

	ctx, cancel := context.WithCancel(t.Context())
	err = e.Run(ctx, "a", func(ctx context.Context, _ *latchkey.Leadership) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	})
	require.ErrorIs(t, err, context.Canceled)
	leaderIs(t, e, "", 0)
	err = e.Run(ctx, "a", func(context.Context, *latchkey.Leadership) error { panic("it cannot lead") })
	require.ErrorIs(t, err, context.Canceled)

	require.NoError(t, e.Run(within(t, soon), "a", func(ctx context.Context, l *latchkey.Leadership) error { return l.Resign(ctx) }))
	err = e.Run(within(t, soon), "a", func(context.Context, *latchkey.Leadership) error { return client.Close(within(t, soon)) })
	require.ErrorIs(t, err, latchkey.ErrClosed)
}

// AtLeast is refused, because the next candidate must lead right after a resignation.
func TestElectionRefusesAtLeast(t *testing.T) {
	t.Parallel()
	_, err := connect(t, rig.Shared()).NewElection(rig.Name(t)).TryCampaign(t.Context(), "a", latchkey.AtLeast(time.Second))
	require.ErrorIs(t, err, latchkey.ErrInvalid)
}

// Observe ends with ErrClosed, even if it has just yielded that the server is unavailable.
func TestElectionObserveEndsWithTheClient(t *testing.T) {
	t.Parallel()
	link := rig.NewLink(t, rig.Shared())
	client := connectVia(t, rig.Shared(), link.Addr(), latchkey.Options{RetryBudget: 100 * time.Millisecond, Tuning: latchkey.Tuning{PollCeiling: 200 * time.Millisecond}})
	var seen []error
	for _, err := range client.NewElection(rig.Name(t)).Observe(within(t, time.Minute)) {
		switch {
		case err == nil:
			link.Cut()
			continue
		case errors.Is(err, latchkey.ErrUnavailable):
			_ = client.Close(t.Context())
		}
		if seen = append(seen, err); len(seen) > 2 {
			break
		}
	}
	require.Len(t, seen, 2)
	require.ErrorIs(t, seen[0], latchkey.ErrUnavailable)
	require.ErrorIs(t, seen[1], latchkey.ErrClosed)
}
