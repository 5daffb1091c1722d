package tests

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// candidacy is the outcome of a campaign in another goroutine.
type candidacy struct {
	leadership *latchkey.Leadership
	err        error
	at         time.Time // when the call returned
}

// campaignInBackground campaigns in another goroutine.
func campaignInBackground(ctx context.Context, e *latchkey.Election, value string, options ...latchkey.LockOption) <-chan candidacy {
	done := make(chan candidacy, 1)
	go func() {
		l, err := e.Campaign(ctx, value, options...)
		done <- candidacy{l, err, time.Now()}
	}()
	return done
}

func mustLead(t testing.TB, e *latchkey.Election, value string, options ...latchkey.LockOption) *latchkey.Leadership {
	t.Helper()
	l, err := e.Campaign(within(t, soon), value, options...)
	require.NoError(t, err)
	return l
}

func mustResign(t testing.TB, l *latchkey.Leadership) {
	t.Helper()
	require.NoError(t, l.Resign(context.Background()))
}

// leaderIs queries the leader and requires this value and term, or no leader for the term 0.
func leaderIs(t testing.TB, e *latchkey.Election, value string, term int64) latchkey.Leader {
	t.Helper()
	found, err := e.Leader(within(t, soon))
	require.NoError(t, err)
	require.Equal(t, value, found.Value)
	require.Equal(t, term, found.Term)
	require.Equal(t, term == 0, found.IsZero())
	return found
}

// electionQueued waits until n candidates are in the queue of the server.
func electionQueued(t testing.TB, admin *rig.Admin, name string, n int) {
	t.Helper()
	queue := "latchkey_queue:{" + name + "}"
	if strings.Contains(name, "{") {
		queue = "latchkey_queue:" + name
	}
	rig.Eventually(t, soon, fmt.Sprint(n, " candidates wait on the server"), func() error {
		if found := admin.Int("ZCARD", queue); found != int64(n) {
			return fmt.Errorf("%d do", found)
		}
		return nil
	})
}

// leaders observes an election in another goroutine and sends everything that it observes to the
// channel. It closes the channel at the end.
func leaders(ctx context.Context, e *latchkey.Election) <-chan observed {
	all := make(chan observed, 10_000)
	go func() {
		defer close(all)
		for leader, err := range e.Observe(ctx) {
			all <- observed{leader, err}
		}
	}()
	return all
}

type observed struct {
	latchkey.Leader

	err error
}

// sees waits until an observer yields the value, "" for no leader, and checks that terms never
// decrease.
func sees(t testing.TB, all <-chan observed, value string) latchkey.Leader {
	t.Helper()
	var last int64
	for {
		each := rig.Await(t, soon, "the observer sees "+value, all)
		if errors.Is(each.err, latchkey.ErrUnavailable) { // on a busy machine
			continue
		}
		require.NoError(t, each.err)
		if each.Term > 0 {
			require.GreaterOrEqual(t, each.Term, last)
			last = each.Term
		}
		if each.Value == value && each.IsZero() == (value == "") {
			return each.Leader
		}
	}
}

// holdCommands holds the next matching command, and loses its retries, until it is released.
func holdCommands(tap *rig.Tap, match rig.Match) (held *rig.Held, release func()) {
	held = tap.HoldCommand(match)
	stop := tap.LoseAll(match, rig.CutRequest)
	return held, func() { stop(); held.Release() }
}
