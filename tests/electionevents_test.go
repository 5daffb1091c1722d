package tests

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// electionEvents are the events of the elections of one client.
type electionEvents struct {
	t    *testing.T
	name string
	next func(...latchkey.EventType) latchkey.Event
}

// of waits for the next event of a type. It must be of the election, and in the context of the
// call.
func (e electionEvents) of(what latchkey.EventType, call string) latchkey.Event {
	e.t.Helper()
	got := e.next(what)
	assert.Equal(e.t, latchkey.KindElection, got.Kind)
	assert.Equal(e.t, e.name, got.Name)
	assert.Equal(e.t, call, callOf(got))
	assert.False(e.t, got.Reentry)
	assert.False(e.t, got.Time.IsZero())
	return got
}

// A leadership has the events of a hold: an attempt, an acquisition, renewals, a release.
func TestEventsOfALeader(t *testing.T) {
	t.Parallel()
	client, next := observedClient(t, rig.Shared().Addr(), latchkey.Options{Lease: 6 * time.Second})
	events := electionEvents{t, rig.Name(t), next}
	election := client.NewElection(events.name)
	l, err := election.Campaign(inCall(within(t, soon), "campaign"), "value")
	require.NoError(t, err)
	leader := leaderIs(t, election, "value", l.Term())

	attempt := events.of(latchkey.EventAttempt, "campaign")
	assert.NoError(t, attempt.Err)
	assert.Equal(t, leader.Owner, attempt.Owner)
	acquired := events.of(latchkey.EventAcquired, "campaign")
	assert.Equal(t, leader.Owner, acquired.Owner)
	assert.Positive(t, acquired.Wait)
	assert.NoError(t, acquired.Err)
	assert.Equal(t, leader.Owner, events.of(latchkey.EventRenewed, "campaign").Owner)

	mustResign(t, l)
	released := events.of(latchkey.EventReleased, "campaign")
	assert.Equal(t, leader.Owner, released.Owner)
	assert.Positive(t, released.Held)
	assert.NoError(t, released.Err)
}

// A leadership that is lost says why.
func TestEventsOfALeaderThatIsLost(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	for name, test := range map[string]struct {
		why    error
		option latchkey.LockOption
	}{
		"deposed":  {latchkey.ErrLost, latchkey.Wait(soon)},
		"max hold": {latchkey.ErrMaxHold, latchkey.MaxHold(2 * time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, next := observedClient(t, server.Addr(), latchkey.Options{Lease: 6 * time.Second})
			events := electionEvents{t, rig.Name(t), next}
			election := client.NewElection(events.name)
			l, err := election.Campaign(inCall(within(t, soon), "campaign"), "value", test.option)
			require.NoError(t, err)
			acquired := events.of(latchkey.EventAcquired, "campaign")
			if test.why == latchkey.ErrLost { //nolint:errorlint // the value in the table
				gone, err := connect(t, server).ForceUnlock(within(t, soon), events.name)
				require.NoError(t, err)
				require.True(t, gone)
			}
			lost := events.of(latchkey.EventLost, "campaign")
			require.ErrorIs(t, lost.Err, test.why)
			assert.Equal(t, acquired.Owner, lost.Owner)
			assert.Positive(t, lost.Held)
			require.ErrorIs(t, l.Err(), test.why)
		})
	}
}

// A candidate that is not elected reports that it gave up, after what time, and why.
func TestEventsOfACandidateThatGivesUp(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	client, next := observedClient(t, server.Addr(), latchkey.Options{})
	events := electionEvents{t, rig.Name(t), next}
	leader := mustLead(t, connect(t, server).NewElection(events.name), "leader")
	election := client.NewElection(events.name)

	_, err := election.TryCampaign(inCall(t.Context(), "try"), "value")
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
	attempt := events.of(latchkey.EventAttempt, "try")
	require.ErrorIs(t, attempt.Err, latchkey.ErrNotAcquired)
	gaveUp := events.of(latchkey.EventGaveUp, "try")
	assert.Equal(t, err, gaveUp.Err)
	assert.Equal(t, attempt.Owner, gaveUp.Owner)
	assert.False(t, gaveUp.Owner.IsZero())
	assert.Positive(t, gaveUp.Wait)

	_, err = election.Campaign(inCall(t.Context(), "wait"), "value", latchkey.Wait(300*time.Millisecond))
	require.Error(t, err)
	gaveUp = events.of(latchkey.EventGaveUp, "wait")
	assert.Equal(t, err, gaveUp.Err)
	assert.GreaterOrEqual(t, gaveUp.Wait, 290*time.Millisecond) // the clock of the event starts a moment later
	mustResign(t, leader)
}
