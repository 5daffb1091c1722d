package tests

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// latchChannelOf is Redisson's channel, except for a name with braces in a cluster, where that
// channel belongs to another slot.
func latchChannelOf(name string) string {
	if rig.Shared().Clustered() && strings.Contains(name, "{") {
		return "latchkey_latch__channel:" + name
	}
	return "redisson_countdownlatch__channel__{" + name + "}"
}

// setLatch sets the count, which must be new.
func setLatch(t *testing.T, latch *latchkey.CountDownLatch, n int, options ...latchkey.SetOption) {
	t.Helper()
	set, err := latch.TrySetCount(t.Context(), n, options...)
	require.NoError(t, err)
	require.True(t, set)
}

// newLatch returns a latch with a new name that is closed for n counts.
func newLatch(t *testing.T, client *latchkey.Client, n int, options ...latchkey.SetOption) *latchkey.CountDownLatch {
	t.Helper()
	latch := client.NewCountDownLatch(rig.Name(t))
	setLatch(t, latch, n, options...)
	return latch
}

func countDown(t *testing.T, latch *latchkey.CountDownLatch, want int) {
	t.Helper()
	left, err := latch.CountDown(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, left)
}

func left(t *testing.T, latch *latchkey.CountDownLatch) int {
	t.Helper()
	n, err := latch.Count(t.Context())
	require.NoError(t, err)
	return n
}

// awaitInBackground awaits in another goroutine.
func awaitInBackground(ctx context.Context, latch *latchkey.CountDownLatch, options ...latchkey.AwaitOption) <-chan error {
	done := make(chan error, 1)
	go func() { done <- latch.Await(ctx, options...) }()
	return done
}

// The state in Redis and the messages are exactly Redisson's. Our own keys are stored in addition.
func TestGoldenLatch(t *testing.T) {
	for _, name := range []string{rig.Name(t), "{" + rig.Name(t) + "}job"} {
		t.Run(name, func(t *testing.T) {
			server := rig.Shared()
			admin, heard := rig.NewAdmin(t, server), subscribeRaw(t, server, latchChannelOf(name))
			latch := connect(t, server).NewCountDownLatch(name)
			stands := func(count string) {
				t.Helper()
				found := admin.Dump(name)
				assert.Equal(t, rig.Entry{Type: "string", String: count, TTL: rig.NoTTL}, found[name])
			}
			setLatch(t, latch, 2)
			stands("2")
			assert.Equal(t, "1", rig.Await(t, soon, "the message of the set", heard))
			countDown(t, latch, 1)
			stands("1")
			assert.Empty(t, heard, "no message before zero")
			countDown(t, latch, 0)
			assert.False(t, admin.Exists(name))
			assert.Equal(t, "0", rig.Await(t, soon, "the message of zero", heard))
			countDown(t, latch, 0)
			set, err := latch.TrySetCount(t.Context(), 3)
			require.NoError(t, err)
			assert.True(t, set, "an open latch can be set again")
			assert.Equal(t, "1", rig.Await(t, soon, "the message of the set", heard))
			set, err = latch.TrySetCount(t.Context(), 7)
			require.NoError(t, err)
			assert.False(t, set, "a closed one cannot")
			stands("3")
			deleted, err := latch.Delete(t.Context())
			require.NoError(t, err)
			assert.True(t, deleted)
			assert.False(t, admin.Exists(name))
			assert.Equal(t, "0", rig.Await(t, soon, "the awaiters of Redisson are freed", heard))
			assert.Empty(t, heard)
			for key, entry := range admin.Dump(name) {
				assert.Positive(t, entry.TTL, "%s expires", key)
			}
		})
	}
}

func TestLatchAdministration(t *testing.T) {
	server, ctx := rig.Shared(), t.Context()
	latch := connect(t, server).NewCountDownLatch(rig.Name(t))
	_, err := latch.Count(ctx)
	assert.ErrorIs(t, err, latchkey.ErrNotSet)
	_, err = latch.CountDown(ctx)
	assert.ErrorIs(t, err, latchkey.ErrNotSet)
	_, err = latch.CountDownAs(ctx, "a")
	assert.ErrorIs(t, err, latchkey.ErrNotSet)
	deleted, err := latch.Delete(ctx)
	require.NoError(t, err)
	assert.False(t, deleted)
	assert.ErrorIs(t, latch.Await(within(t, soon)), latchkey.ErrNotSet)
	assert.NoError(t, latch.Await(within(t, soon), latchkey.UnsetIsOpen()))

	setLatch(t, latch, 5)
	assert.Equal(t, 5, left(t, latch))
	err = refused(t, func(wait latchkey.WaitOption) error { return latch.Await(ctx, wait, latchkey.UnsetIsOpen()) })
	assert.NotErrorIs(t, err, context.DeadlineExceeded, "the caller's context goes on")
	patience := 50 * time.Millisecond
	err = refused(t, func(latchkey.WaitOption) error {
		patience *= 2
		return latch.Await(within(t, patience))
	})
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	n, err := latch.CountDownN(ctx, 3)
	require.NoError(t, err)
	assert.Equal(t, 2, n)
	n, err = latch.CountDownN(ctx, 9)
	require.NoError(t, err)
	assert.Zero(t, n)
	assert.Zero(t, left(t, latch))
	for range 2 {
		assert.NoError(t, latch.Await(within(t, soon)), "it stays open")
	}
	deleted, err = latch.Delete(ctx)
	require.NoError(t, err)
	assert.True(t, deleted, "an open one is there")
	assert.ErrorIs(t, latch.Await(within(t, soon)), latchkey.ErrNotSet)
}

// CountDown works at the end of a request, even if the context has ended.
func TestLatchCountsAlthoughTheContextHasEnded(t *testing.T) {
	latch := newLatch(t, connect(t, rig.Shared()), 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := latch.CountDown(ctx)
	require.NoError(t, err)
	assert.Zero(t, left(t, latch))
	_, err = latch.TrySetCount(ctx, 1)
	assert.ErrorIs(t, err, context.Canceled)
	onlyTheContexts(ctx, t, latch.Await(ctx), "Await")
}

func TestLatchBadInput(t *testing.T) {
	sendsNothing(t, func(client *latchkey.Client) {
		ctx := t.Context()
		for _, name := range []string{"", "a{b", "a}b", "a{}b", "{a{b}}", "a\xffb", strings.Repeat("x", longestName+1)} {
			latch := client.NewCountDownLatch(name)
			_, set := latch.TrySetCount(ctx, 1)
			_, down := latch.CountDown(ctx)
			_, downN := latch.CountDownN(ctx, 2)
			_, as := latch.CountDownAs(ctx, "a")
			_, count := latch.Count(ctx)
			_, deleted := latch.Delete(ctx)
			for _, err := range []error{set, down, downN, as, count, deleted, latch.Await(ctx)} {
				assert.ErrorIs(t, err, latchkey.ErrInvalid, name)
			}
		}
		latch := client.NewCountDownLatch("name")
		for _, n := range []int{0, -1, 1 << 31} {
			_, err := latch.TrySetCount(ctx, n)
			assert.ErrorIs(t, err, latchkey.ErrInvalid)
			_, err = latch.CountDownN(ctx, n)
			assert.ErrorIs(t, err, latchkey.ErrInvalid)
		}
		for _, who := range []string{"", "a\xff", strings.Repeat("x", longestName+1)} {
			_, err := latch.CountDownAs(ctx, who)
			assert.ErrorIs(t, err, latchkey.ErrInvalid)
		}
		for _, options := range [][]latchkey.AwaitOption{
			{latchkey.Wait(-1)}, {latchkey.Wait(0)}, {nil}, {latchkey.AwaitSet(), latchkey.UnsetIsOpen()},
		} {
			assert.ErrorIs(t, latch.Await(ctx, options...), latchkey.ErrInvalid)
		}
		for _, option := range []latchkey.SetOption{latchkey.TTL(0), latchkey.TTL(-1), nil} {
			_, err := latch.TrySetCount(ctx, 1, option)
			assert.ErrorIs(t, err, latchkey.ErrInvalid)
		}
	})
}

func TestLatchOfAnotherKind(t *testing.T) {
	server, name, ctx := rig.Shared(), rig.Name(t), t.Context()
	admin, client := rig.NewAdmin(t, server), connect(t, server)
	hold := mustLock(t, client.NewLock(name))
	latch := client.NewCountDownLatch(name)
	before := admin.Dump(name)
	_, set := latch.TrySetCount(ctx, 1)
	_, down := latch.CountDown(ctx)
	_, as := latch.CountDownAs(ctx, "a")
	_, count := latch.Count(ctx)
	_, deleted := latch.Delete(ctx)
	for _, err := range []error{set, down, as, count, deleted, latch.Await(within(t, soon))} {
		assert.ErrorIs(t, err, latchkey.ErrWrongKind)
	}
	assert.Len(t, admin.Dump(name), len(before))
	mustUnlock(t, hold)
}

// A participant counts once in a round, whichever client it uses.
func TestLatchParticipants(t *testing.T) {
	server := rig.Shared()
	latch := newLatch(t, connect(t, server), 2)
	restarted := connect(t, server).NewCountDownLatch(latch.Name())
	for _, each := range []*latchkey.CountDownLatch{latch, latch, restarted} {
		n, err := each.CountDownAs(t.Context(), "a")
		require.NoError(t, err)
		assert.Equal(t, 1, n)
	}
	n, err := restarted.CountDownAs(t.Context(), "b")
	require.NoError(t, err)
	assert.Zero(t, n)
	setLatch(t, latch, 2)
	n, err = restarted.CountDownAs(t.Context(), "a")
	require.NoError(t, err)
	assert.Equal(t, 1, n, "a new round")
}

// A hundred goroutines of four clients count down a latch that is set to as many, and exactly one
// of them opens it.
func TestLatchConcurrentCounts(t *testing.T) {
	server := rig.Shared()
	const clients, each = 4, 25
	latch := newLatch(t, connect(t, server), clients*each)
	opened := awaitInBackground(within(t, soon), latch)
	all := rig.Goroutines(t)
	zeros := make(chan int, clients*each)
	for range clients {
		own := connect(t, server).NewCountDownLatch(latch.Name())
		for range each {
			all.Go(func() {
				n, err := own.CountDown(t.Context())
				assert.NoError(t, err)
				if n == 0 {
					zeros <- n
				}
			})
		}
	}
	all.Wait()
	assert.Len(t, zeros, 1, "one of them opens it")
	assert.NoError(t, rig.Await(t, soon, "the awaiter", opened))
}

// On a server that is out of memory a latch cannot be set, but it can be counted down, awaited and
// deleted.
func TestLatchOutOfMemory(t *testing.T) {
	rig.Need(t, rig.Settings)
	server, ctx := rig.Fresh(t), t.Context()
	admin, client := rig.NewAdmin(t, server), connect(t, server)
	latch, other, foreign := newLatch(t, client, 3), newLatch(t, client, 1), client.NewCountDownLatch("foreign")
	unset := client.NewCountDownLatch("unset")
	_, err := unset.Delete(ctx)
	require.NoError(t, err)
	countDown(t, latch, 2) // so that the server knows the scripts
	_, err = newLatch(t, client, 1).Delete(ctx)
	require.NoError(t, err)
	admin.Do("SET", "foreign", "1")
	waiting := awaitInBackground(within(t, soon), latch)
	awaitWaiter(t, admin, latch.Name())
	admin.Do("CONFIG", "SET", "maxmemory", "1")

	_, err = unset.TrySetCount(ctx, 1)
	hasCode(t, err, "OOM")
	assert.Equal(t, 1, left(t, foreign), "a round that is new here")
	countDown(t, foreign, 0)
	n, err := latch.CountDownAs(ctx, "a")
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	countDown(t, latch, 0)
	assert.NoError(t, rig.Await(t, soon, "the awaiter", waiting))
	deleted, err := other.Delete(ctx)
	require.NoError(t, err)
	assert.True(t, deleted)
}

// The rights listed in docs/reference/latch.md suffice.
func TestLatchPermissions(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Settings)
	server, ctx := rig.Fresh(t), t.Context()
	grant(t, server, "latches", `
		-@all +evalsha +eval +subscribe +ping &latchkey:beat:*
		+get +set +decrby +del +hmget +hset +hdel +persist +pexpire +pexpireat +pttl +sadd +time +publish
		~job ~latchkey_latch:{job} ~latchkey_latch_done:{job} ~latchkey_op:{job}:*
		&redisson_countdownlatch__channel__{job}`)
	client, err := latchkey.Connect(ctx, server.URLAs("latches", "secret"), latchkey.Options{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, client.Close(within(t, soon))) })
	latch := client.NewCountDownLatch("job")
	heard := subscribeRaw(t, server, latchChannelOf("job"))
	for _, options := range [][]latchkey.SetOption{nil, {latchkey.TTL(time.Minute)}} {
		setLatch(t, latch, 2, options...)
		assert.Equal(t, "1", rig.Await(t, soon, "the message of the set", heard))
		opened := awaitInBackground(within(t, soon), latch)
		staysPending(t, opened)
		_, err = latch.CountDownAs(ctx, "a")
		require.NoError(t, err)
		countDown(t, latch, 0)
		assert.Equal(t, "0", rig.Await(t, soon, "the message of zero", heard))
		require.NoError(t, rig.Await(t, soon, "the awaiter", opened))
		_, err = latch.Delete(ctx)
		require.NoError(t, err)
	}
	setLatch(t, latch, 1, latchkey.TTL(time.Second))
	assert.ErrorIs(t, latch.Await(within(t, soon)), latchkey.ErrGone)
}
