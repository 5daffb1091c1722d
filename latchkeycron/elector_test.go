package latchkeycron_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeycron"
	"github.com/latchkey-go/latchkey/latchkeytest"
)

// Inside synctest.Test time is faked: a Sleep moves it, and takes no real time.

// leading waits until the bubble is idle, and returns the indexes of the electors that lead.
func leading(t *testing.T, electors ...*latchkeycron.Elector) (which []int) {
	t.Helper()
	synctest.Wait()
	for i, e := range electors {
		if err := e.IsLeader(t.Context()); err == nil {
			which = append(which, i)
		} else {
			require.ErrorIs(t, err, latchkeycron.ErrNotLeader)
		}
	}
	return which
}

// When a leader resigns, the next one leads at once.
func TestElectorThatIsClosedIsFollowedAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, server *latchkeytest.Server) {
		var all []*latchkeycron.Elector
		for range 3 {
			all = append(all, latchkeycron.NewElector(server.Client(), "scheduler"))
			time.Sleep(time.Second)
		}
		for i := range all {
			assert.Equal(t, []int{i}, leading(t, all...))
			began := time.Now()
			require.NoError(t, all[i].Close(t.Context()))
			require.ErrorIs(t, all[i].Leadership().Err(), latchkey.ErrNotHeld)
			if i < 2 {
				assert.Equal(t, []int{i + 1}, leading(t, all...))
				assert.Less(t, time.Since(began), 50*time.Millisecond, "the lease is 30 s")
			}
		}
		require.NoError(t, all[0].Close(t.Context()), "once more")
	})
}

// When a leader vanishes, the next one leads once the lease ends, and not before the first knows of
// its loss.
func TestElectorThatVanishesIsFollowedWithinALease(t *testing.T) {
	inBubble(t, func(t *testing.T, server *latchkeytest.Server) {
		doomed := server.Client()
		first := latchkeycron.NewElector(doomed, "scheduler")
		time.Sleep(time.Second)
		second := latchkeycron.NewElector(server.Client(), "scheduler")
		assert.Equal(t, []int{0}, leading(t, first, second))
		work := first.Leadership().Context(t.Context())
		time.Sleep(5 * time.Minute) // renewed

		server.Crash(doomed)
		began := time.Now()
		for len(leading(t, second)) == 0 {
			require.Less(t, time.Since(began), 30*time.Second+50*time.Millisecond)
			time.Sleep(10 * time.Millisecond)
		}
		assert.Empty(t, leading(t, first), "two lead")
		require.ErrorIs(t, context.Cause(work), latchkey.ErrLost)
		assert.Greater(t, second.Leadership().Term(), first.Leadership().Term())
		require.NoError(t, second.Close(t.Context()))
		_ = first.Close(t.Context()) // the client is cut off: the outcome is unknown
	})
}

// Closing the client ends its elector, and another one leads at once.
func TestElectorOfAClientThatIsClosed(t *testing.T) {
	inBubble(t, func(t *testing.T, server *latchkeytest.Server) {
		client := server.Client()
		first := latchkeycron.NewElector(client, "scheduler")
		time.Sleep(time.Second)
		second := latchkeycron.NewElector(server.Client(), "scheduler")
		assert.Equal(t, []int{0}, leading(t, first, second))
		require.NoError(t, client.Close(t.Context()))
		assert.Equal(t, []int{1}, leading(t, first, second))
		require.ErrorIs(t, first.IsLeader(t.Context()), latchkey.ErrClosed)
		require.NoError(t, first.Close(t.Context()))
		require.NoError(t, second.Close(t.Context()))
	})
}

// A job that resigns the leadership does not end the campaign.
func TestElectorWhoseLeadershipIsResigned(t *testing.T) {
	inBubble(t, func(t *testing.T, server *latchkeytest.Server) {
		first := latchkeycron.NewElector(server.Client(), "scheduler")
		time.Sleep(time.Second)
		second := latchkeycron.NewElector(server.Client(), "scheduler")
		for i, e := range []*latchkeycron.Elector{first, second, first} {
			assert.Equal(t, []int{i % 2}, leading(t, first, second))
			_ = e.Leadership().Resign(t.Context()) // the elector resigns too, and may be the one that gets the reply
			time.Sleep(time.Second)
		}
		require.NoError(t, first.Close(t.Context()))
		require.NoError(t, second.Close(t.Context()))
	})
}

// A server that does not answer does not delay IsLeader, and the leader leads until its lease is
// over.
func TestIsLeaderAsksNobody(t *testing.T) {
	inBubble(t, func(t *testing.T, server *latchkeytest.Server) {
		e := latchkeycron.NewElector(server.Client(), "scheduler")
		assert.Equal(t, []int{0}, leading(t, e))
		server.Stop()
		began := time.Now()
		require.NoError(t, e.IsLeader(t.Context()))
		time.Sleep(30 * time.Second)
		require.ErrorIs(t, e.IsLeader(t.Context()), latchkeycron.ErrNotLeader)
		assert.Equal(t, 30*time.Second, time.Since(began))
		server.Restart()
		time.Sleep(time.Minute)
		assert.Equal(t, []int{0}, leading(t, e))
		require.NoError(t, e.Close(t.Context()))
	})
}

// A campaign that the server refuses is logged once, reported by IsLeader, and tried again.
func TestElectorThatTheServerRefuses(t *testing.T) {
	inBubble(t, func(t *testing.T, server *latchkeytest.Server) {
		var log bytes.Buffer
		client := server.Client()
		taken, err := client.NewMutex("scheduler").TryLock(t.Context())
		require.NoError(t, err)
		e := latchkeycron.NewElector(server.Client(), "scheduler", latchkeycron.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		time.Sleep(time.Minute)
		synctest.Wait()
		err = e.IsLeader(t.Context())
		require.ErrorIs(t, err, latchkeycron.ErrNotLeader)
		require.ErrorIs(t, err, latchkey.ErrWrongKind)
		assert.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
		require.NoError(t, taken.Unlock(t.Context()))
		time.Sleep(10 * time.Second)
		assert.Equal(t, []int{0}, leading(t, e))
		require.NoError(t, e.Close(t.Context()))
		err = e.IsLeader(t.Context())
		require.EqualError(t, err, `latchkeycron: election "scheduler": not the leader`)
	})
}

// A name or a value that cannot be used ends the campaign; nothing has to be closed.
func TestElectorWithBadInput(t *testing.T) {
	inBubble(t, func(t *testing.T, server *latchkeytest.Server) {
		quiet := latchkeycron.WithLogger(slog.New(slog.DiscardHandler))
		for _, e := range []*latchkeycron.Elector{
			latchkeycron.NewElector(server.Client(), "{scheduler}", quiet),
			latchkeycron.NewElector(server.Client(), "x", quiet, latchkeycron.WithValue(strings.Repeat("x", 65536+1))),
		} {
			assert.Empty(t, leading(t, e))
			require.ErrorIs(t, e.IsLeader(t.Context()), latchkey.ErrInvalid)
		}
	})
}

// The leader announces a value.
func TestValueOfAnElector(t *testing.T) {
	inBubble(t, func(t *testing.T, server *latchkeytest.Server) {
		client := server.Client()
		e := latchkeycron.NewElector(client, "scheduler", latchkeycron.WithValue("10.0.0.7"))
		assert.Equal(t, []int{0}, leading(t, e))
		leader, err := client.NewElection("scheduler").Leader(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "10.0.0.7", leader.Value)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		server.Stop()
		require.ErrorIs(t, e.Close(ctx), context.Canceled)
		require.ErrorIs(t, e.Close(t.Context()), latchkey.ErrUnknownOutcome)
	})
}
