package tests

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// The queue of those that wait for the permits of a Semaphore.

// Beside others that know no queue, the first waiter is told to ask when their turn is over. The
// message may be faster than the reply that says that it waits. It is not left to its next poll.
func TestSemaphoreQueue_beside_a_stranger(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	options := seldom()
	options.Tuning.Turn = -1
	s := newSemaphore(t, connect(t, server, options), 1)
	listenRaw(t, server, semaphoreChannelOf(s.Name()), func() {})
	all := rig.Goroutines(t)
	for range 4 {
		all.Go(func() {
			for range rig.Sized(500) {
				if !assert.NoError(t, s.Acquire(within(t, soon))) || !assert.NoError(t, s.Release(t.Context())) {
					return
				}
			}
		})
	}
	all.Wait()
}

// An entry that a living client has left behind is called, and its client takes it out of the queue
// at once.
func TestSemaphoreQueue_entry_left_behind(t *testing.T) {
	t.Parallel()
	cluster := rig.NewCluster(t)
	options := seldom()
	options.Tuning.Turn = -1
	options.Tuning.StaleWaiterTimeout = 20 * time.Minute // permits are kept for 4 minutes
	t.Run("server", func(t *testing.T) {
		entryLeftBehind(t, connect(t, rig.Shared(), options), rig.Shared().Raw(t))
	})
	t.Run("cluster", func(t *testing.T) {
		raw := cluster.Server().Raw(t)
		entryLeftBehind(t, connectCluster(t, cluster, options), raw)
	})
}

// hearsCalls reports whether a client listens on the channel on which it is called.
func hearsCalls(t *testing.T, raw rueidis.Client, name, id string) bool {
	t.Helper()
	for _, node := range raw.Nodes() {
		for count, channel := range map[string]string{"NUMSUB": "latchkey:{" + id + "}", "SHARDNUMSUB": "latchkey:{" + name + "}:" + id} {
			reply, err := node.Do(t.Context(), node.B().Arbitrary("PUBSUB", count, channel).Build()).AsIntMap()
			if err == nil && reply[channel] > 0 {
				return true
			}
		}
	}
	return false
}

func entryLeftBehind(t *testing.T, client *latchkey.Client, raw rueidis.Client) {
	t.Helper()
	s := newSemaphore(t, client, 1)
	require.NoError(t, s.Acquire(t.Context()))
	all := rig.Goroutines(t)
	all.Go(func() { assert.NoError(t, s.Acquire(within(t, soon))) })
	queue := "latchkey_sc_waiting:{" + s.Name() + "}"
	rig.Eventually(t, soon, "the client is in the queue", func() error {
		entries, err := raw.Do(t.Context(), raw.B().Zrange().Key(queue).Min("0").Max("-1").Build()).AsStrSlice()
		if err != nil || len(entries) == 0 {
			return errors.Join(err, errors.New("not yet"))
		}
		id, _, _ := strings.Cut(entries[0], ":")
		if !hearsCalls(t, raw, s.Name(), id) {
			return errors.New("it does not listen yet")
		}
		return raw.Do(t.Context(), raw.B().Zadd().Key(queue).ScoreMember().ScoreMember(1, id+":999 1").Build()).Error()
	})
	require.NoError(t, s.Release(t.Context()))
	all.Wait()
}

// The front gives up while the reply that gives it the permit is on its way. The next one finds the
// permit, and does not rest until its poll.
func TestSemaphoreQueue_front_gives_up_when_it_is_served(t *testing.T) {
	t.Parallel()
	options := seldom()
	options.Tuning.Turn = -1
	s := newHotSemaphore(t, 1, options)
	require.NoError(t, s.AcquireN(t.Context(), 1))
	ctx, cancel := context.WithCancel(within(t, soon))
	first := s.acquireInLine(ctx, t, 1)
	quiet(t, s.tap)
	second := s.acquireInLine(within(t, soon), t, 1)
	reply := s.tap.HoldReply(func(c rig.Command) bool { return rig.Mentions(s.Name())(c) && !rig.Mentions("release")(c) })
	require.NoError(t, s.ReleaseN(t.Context(), 1))
	rig.Await(t, soon, "the front asks", reply.Arrived)
	cancel()
	require.ErrorIs(t, rig.Await(t, soon, "the front", first), context.Canceled)
	reply.Release()
	require.NoError(t, rig.Await(t, soon, "the next", second))
	require.NoError(t, s.ReleaseN(t.Context(), 1))
	allBack(t, s.Semaphore, 1)
}

// When the semaphore goes, all who wait learn of it, not only the first of each client.
func TestSemaphoreQueue_deleted(t *testing.T) {
	t.Parallel()
	s := newHotSemaphore(t, 1, seldom())
	require.NoError(t, s.AcquireN(t.Context(), 1))
	var waiting []<-chan error
	for range 5 {
		waiting = append(waiting, s.acquireInLine(within(t, soon), t, 1))
	}
	quiet(t, s.tap)
	_, err := s.Delete(t.Context())
	require.NoError(t, err)
	for _, each := range waiting {
		require.ErrorIs(t, rig.Await(t, soon, "a waiter", each), latchkey.ErrNotSet)
	}
}

// A line polls even if each of its waiters gives up sooner.
func TestSemaphoreQueue_waits_shorter_than_a_poll(t *testing.T) {
	t.Parallel()
	options := seldom()
	options.Tuning.PollCeiling = time.Second
	s := newHotSemaphore(t, 1, options)
	require.NoError(t, s.AcquireN(t.Context(), 1))
	var had atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	all := rig.Goroutines(t)
	defer stop()
	for range 4 {
		all.Go(func() {
			for ctx.Err() == nil {
				if s.AcquireN(ctx, 1, latchkey.Wait(300*time.Millisecond)) == nil {
					had.Add(1)
					return
				}
			}
		})
	}
	rest(time.Second)
	raw := rig.Shared().Raw(t)
	require.NoError(t, raw.Do(t.Context(), raw.B().Incr().Key(s.Name()).Build()).Error()) // without a message
	rig.Eventually(t, soon, "one has it", func() error {
		if had.Load() == 0 {
			return errors.New("none")
		}
		return nil
	})
}

// Requests for more permits than there are do not wait for one another.
func TestSemaphoreQueue_above_the_total(t *testing.T) {
	t.Parallel()
	s := newHotSemaphore(t, 4, seldom())
	ctx, cancel := context.WithCancel(t.Context())
	first := s.acquireInLine(ctx, t, 10)
	quiet(t, s.tap)
	second := s.acquireInLine(within(t, soon), t, 6)
	quiet(t, s.tap)
	require.NoError(t, s.SetPermits(t.Context(), 8))
	require.NoError(t, rig.Await(t, soon, "the one that fits", second))
	cancel()
	require.ErrorIs(t, rig.Await(t, soon, "the other one", first), context.Canceled)
}
