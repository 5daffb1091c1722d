package tests

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// An observer whose connections are cut or fall silent sees each leader that lasts.
func TestElectionObserve_connectionCut(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	tap := rig.NewTap(t, server)
	options := latchkey.Options{Tuning: latchkey.Tuning{PollCeiling: 500 * time.Millisecond}}
	watched := leaders(t.Context(), connectVia(t, server, tap.Addr(), options).NewElection(name))
	sees(t, watched, "")
	e := connect(t, server).NewElection(name)
	for n := range 3 {
		switch n {
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

// patientObserver relies on messages, on the end of a lease and on its subscription, and hardly
// polls.
var patientObserver = latchkey.Options{Lease: 4 * time.Minute, Tuning: latchkey.Tuning{PollCeiling: time.Minute, StaleWaiterTimeout: time.Minute}}

// An observer does not miss what is published while its subscription is down: it queries the leader
// when the subscription is back.
func TestElectionObserve_resubscribes(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	tap := rig.NewTap(t, server)
	watched := leaders(t.Context(), connectVia(t, server, tap.Addr(), patientObserver).NewElection(name))
	sees(t, watched, "")
	e := connect(t, server).NewElection(name)
	for n := range 3 {
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
	options := latchkey.Options{Tuning: latchkey.Tuning{PollCeiling: 300 * time.Millisecond}, RetryBudget: 2 * time.Second}
	l := mustLead(t, connect(t, server).NewElection(name), "a")
	watched := leaders(t.Context(), connectVia(t, server, link.Addr(), options).NewElection(name))
	sees(t, watched, "a")
	link.Silence()
	told := rig.Await(t, soon, "the observer is told", watched)
	require.ErrorIs(t, told.err, latchkey.ErrUnavailable)
	require.True(t, told.IsZero())
	rig.Throughout(t, 500*time.Millisecond, "it is told once", func() error {
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
	rig.Eventually(t, soon, "it listens", hasSubscribed(admin, name))
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
