package tests

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// latchChannelOf is Redisson's channel, except for a name with braces in a cluster, where that channel belongs to
// another slot.
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
				assert.Positive(t, entry.TTL, "%s goes by itself", key)
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
	err = latch.Await(ctx, latchkey.Wait(500*time.Millisecond), latchkey.UnsetIsOpen())
	toldBusy(t, err)
	assert.NotErrorIs(t, err, context.DeadlineExceeded, "the caller's context goes on")
	brief, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	err = latch.Await(brief)
	toldBusy(t, err)
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
	err = latch.Await(ctx)
	assert.ErrorIs(t, err, context.Canceled)
	toldUnavailable(t, err)
}

func TestLatchBadInput(t *testing.T) {
	sendsNothing(t, func(client *latchkey.Client) {
		ctx := t.Context()
		for _, name := range []string{"", "a{b", "a}b", "a{}b", "{a{b}}", "a\xffb", strings.Repeat("x", latchkey.MaxNameLength+1)} {
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
		for _, who := range []string{"", "a\xff", strings.Repeat("x", latchkey.MaxNameLength+1)} {
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

// Each reply of each operation is lost in turn, in every way. The operation counts once, and the caller learns the
// result, or that the outcome is unknown.
func TestLatchOperationsCountOnce(t *testing.T) {
	t.Parallel()
	rig.Long(t)
	operations := map[string]struct {
		do   func(ctx context.Context, latch *latchkey.CountDownLatch) (any, error)
		says any
		left string // in Redis, afterwards
	}{
		"TrySetCount": {func(ctx context.Context, l *latchkey.CountDownLatch) (any, error) { return l.TrySetCount(ctx, 7) }, true, "7"},
		"CountDown":   {func(ctx context.Context, l *latchkey.CountDownLatch) (any, error) { return l.CountDown(ctx) }, 4, "4"},
		"CountDownN":  {func(ctx context.Context, l *latchkey.CountDownLatch) (any, error) { return l.CountDownN(ctx, 2) }, 3, "3"},
		"CountDownAs": {func(ctx context.Context, l *latchkey.CountDownLatch) (any, error) { return l.CountDownAs(ctx, "a") }, 4, "4"},
		"Delete":      {func(ctx context.Context, l *latchkey.CountDownLatch) (any, error) { return l.Delete(ctx) }, true, ""},
	}
	for name, operation := range operations {
		for _, each := range losses {
			for n := 1; n <= 3; n++ {
				t.Run(fmt.Sprintf("%s, %s %d", name, each.name, n), func(t *testing.T) {
					t.Parallel()
					server := rig.Shared()
					admin, tap := rig.NewAdmin(t, server), rig.NewTap(t, server)
					direct := connect(t, server).NewCountDownLatch(rig.Name(t))
					if name != "TrySetCount" {
						setLatch(t, direct, 5)
					}
					latch := connectVia(t, server, tap.Addr(), latchkey.Options{RetryBudget: time.Second}).NewCountDownLatch(direct.Name())
					tap.Lose(n, rig.Mentions(direct.Name()), each.loss)
					says, err := operation.do(t.Context(), latch)
					switch {
					case err == nil:
						assert.Equal(t, operation.says, says)
						assert.Equal(t, operation.left, admin.Text("GET", direct.Name()))
					case errors.Is(err, latchkey.ErrUnknownOutcome):
						t.Log(err)
						rig.Eventually(t, undoBudget, "it is repeated", func() error {
							if now := admin.Text("GET", direct.Name()); now != operation.left {
								return errors.New("the count is " + now)
							}
							return nil
						})
					default: // the query had no reply
						require.Contains(t, []string{"TrySetCount", "Delete"}, name, "%v", err)
						says, err = operation.do(t.Context(), direct)
						require.NoError(t, err)
						assert.Equal(t, operation.says, says, "nothing was done")
					}
					rest(200 * time.Millisecond) // in case something is executed twice
					assert.Equal(t, operation.left, admin.Text("GET", direct.Name()))
				})
			}
		}
	}
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

// A hundred goroutines of four clients count down a latch that is set to as many, and exactly one of them opens it.
func TestLatchConcurrentCounts(t *testing.T) {
	server := rig.Shared()
	const clients, each = 4, 25
	latch := newLatch(t, connect(t, server), clients*each)
	opened := awaitInBackground(within(t, soon), latch)
	var all sync.WaitGroup
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

// The message of the last count wakes all awaiters.
func TestLatchOpens(t *testing.T) {
	server := rig.Shared()
	latch := newLatch(t, connect(t, server), 2)
	waiting := connect(t, server, patient).NewCountDownLatch(latch.Name())
	var all []<-chan error
	for range 20 {
		all = append(all, awaitInBackground(within(t, time.Minute), waiting))
	}
	parked(t, rig.NewAdmin(t, server), latch.Name())
	countDown(t, latch, 1)
	for _, each := range all {
		assert.Empty(t, each)
	}
	start := time.Now()
	countDown(t, latch, 0)
	for _, each := range all {
		require.NoError(t, rig.Await(t, 2*time.Second, "an awaiter", each))
	}
	t.Logf("20 awaiters woken in %v", time.Since(start))
}

// The last count falls between the query and the confirmation of the subscription. All awaiters query again after the
// confirmation.
func TestLatchOpensBeforeTheSubscriptionIsConfirmed(t *testing.T) {
	server := rig.Shared()
	tap := rig.NewTap(t, server)
	latch := newLatch(t, connect(t, server), 1)
	held := tap.HoldCommand(rig.Both(rig.Subscribing, rig.Mentions(latchChannelOf(latch.Name()))))
	waiting := connectVia(t, server, tap.Addr(), patient).NewCountDownLatch(latch.Name())
	var all []<-chan error
	for range 100 {
		all = append(all, awaitInBackground(within(t, soon), waiting))
	}
	rig.Await(t, soon, "the subscription", held.Arrived)
	countDown(t, latch, 0) // nobody receives its message
	held.Release()
	for _, each := range all {
		require.NoError(t, rig.Await(t, 2*time.Second, "an awaiter looks again", each))
	}
}

// latchAwaiter is a process with many awaiters. Its arguments: name, the server's ticket, the address to use, number of
// awaiters.
var latchAwaiter = rig.Child("latch awaiter", func(ctx context.Context, args []string) error {
	n, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	client, closeAll, err := dialTicket(args[1], args[2], latchkey.Options{})
	if err != nil {
		return err
	}
	latch := client.NewCountDownLatch(args[0])
	var awaiting sync.WaitGroup
	results := make(chan error, n)
	for range n {
		awaiting.Go(func() { results <- latch.Await(ctx) })
	}
	fmt.Println("awaiting")
	awaiting.Wait()
	fmt.Println("released", time.Now().UnixMilli())
	for range n {
		err = errors.Join(err, <-results)
	}
	return errors.Join(err, closeAll(context.Background()))
})

// One count releases a thousand awaiters in eight processes: at once with messages, and within the poll ceiling without
// any.
func TestLatchReleasesManyProcesses(t *testing.T) {
	const processes = 8
	each := rig.Sized(125)
	for what, limit := range map[string]time.Duration{
		"by message":           2 * time.Second,
		"all messages dropped": latchkey.DefaultPollCeiling + 4*leeway, // a thousand queries take a while
	} {
		t.Run(what, func(t *testing.T) {
			server := rig.Shared()
			admin, tap := rig.NewAdmin(t, server), rig.NewTap(t, server)
			tap.DropMessages(what != "by message")
			latch := newLatch(t, connect(t, server), 1)
			var children []*rig.ChildProcess
			for range processes {
				children = append(children, latchAwaiter.Start(t, latch.Name(), server.Ticket(), tap.Addr(), strconv.Itoa(each)))
			}
			for _, child := range children {
				child.Line(t, soon, "awaiting")
			}
			looks := rig.Both(rig.Named("EVALSHA"), rig.Mentions(latch.Name()))
			rig.Eventually(t, 30*time.Second, "all of them have looked, and every process listens", func() error {
				looked := 0
				for _, c := range tap.Commands() {
					if looks(c) {
						looked++
					}
				}
				if n := admin.Subscribers(latchChannelOf(latch.Name())); looked < processes*each || n < processes {
					return fmt.Errorf("%d looks, %d subscriptions", looked, n)
				}
				return nil
			})
			start := time.Now()
			countDown(t, latch, 0)
			var longest time.Duration
			for _, child := range children {
				ms, err := strconv.ParseInt(child.Line(t, 20*time.Second, "released"), 10, 64)
				require.NoError(t, err)
				longest = max(longest, time.UnixMilli(ms).Sub(start))
				child.Wait(t, soon)
			}
			t.Logf("%d awaiters in %d processes released in %v; messages dropped: %d",
				processes*each, processes, longest.Round(time.Millisecond), tap.DroppedMessages())
			assert.Less(t, longest, limit)
			if what != "by message" {
				assert.Positive(t, tap.DroppedMessages(), "the test dropped nothing")
			}
		})
	}
}

// looked waits until n awaiters of a latch have learned what they await. Only their first query does not name a round.
func looked(t *testing.T, tap *rig.Tap, name string, n int) {
	t.Helper()
	first := func(c rig.Command) bool {
		return rig.Mentions(name)(c) && slices.Equal(c.Args[len(c.Args)-2:], []string{"", ""})
	}
	rig.Eventually(t, soon, "all have looked", func() error {
		looks := len(tap.Executed(first))
		if looks < n {
			return fmt.Errorf("%d of %d looks", looks, n)
		}
		return nil
	})
}

// Delete frees all awaiters, those of this library with an error.
func TestLatchDeletedWhileAwaited(t *testing.T) {
	server := rig.Shared()
	tap := rig.NewTap(t, server)
	latch := newLatch(t, connect(t, server), 2)
	waiting := connectVia(t, server, tap.Addr(), patient).NewCountDownLatch(latch.Name())
	var strict, lenient []<-chan error
	for range 3 {
		strict = append(strict, awaitInBackground(within(t, soon), waiting))
		lenient = append(lenient, awaitInBackground(within(t, soon), waiting, latchkey.UnsetIsOpen()))
	}
	looked(t, tap, latch.Name(), len(strict)+len(lenient))
	_, err := latch.Delete(t.Context())
	require.NoError(t, err)
	for i := range strict {
		assert.ErrorIs(t, rig.Await(t, 2*time.Second, "an awaiter", strict[i]), latchkey.ErrGone)
		assert.NoError(t, rig.Await(t, 2*time.Second, "a lenient awaiter", lenient[i]))
	}
}

// If the server is emptied, awaiters end with an error.
func TestLatchLostByTheServer(t *testing.T) {
	rig.Need(t, rig.Private)
	server := rig.Fresh(t)
	latch := newLatch(t, connect(t, server, polling), 2)
	waiting := awaitInBackground(within(t, soon), latch)
	parked(t, rig.NewAdmin(t, server), latch.Name())
	rig.NewAdmin(t, server).Do("FLUSHALL")
	assert.ErrorIs(t, rig.Await(t, pollCeiling+leeway, "the awaiter", waiting), latchkey.ErrGone)
}

// The round ends and another one begins while an awaiter is stalled between a message and its query. It learns the
// outcome of its own round.
func TestLatchQuickReset(t *testing.T) {
	ends := map[string]struct {
		end  func(t *testing.T, latch *latchkey.CountDownLatch)
		want error
	}{
		"opened": {func(t *testing.T, l *latchkey.CountDownLatch) { t.Helper(); countDown(t, l, 0) }, nil},
		"deleted": {func(t *testing.T, l *latchkey.CountDownLatch) {
			t.Helper()
			_, err := l.Delete(t.Context())
			require.NoError(t, err)
		}, latchkey.ErrGone},
	}
	for what, each := range ends {
		t.Run(what, func(t *testing.T) {
			server := rig.Shared()
			tap := rig.NewTap(t, server)
			latch := newLatch(t, connect(t, server), 1)
			waiting := connectVia(t, server, tap.Addr(), patient).NewCountDownLatch(latch.Name())
			opened := awaitInBackground(within(t, soon), waiting)
			parked(t, rig.NewAdmin(t, server), latch.Name())
			quiet(t, tap)
			held := tap.HoldCommand(rig.Mentions(latch.Name()))
			each.end(t, latch)
			rig.Await(t, soon, "the awaiter is woken", held.Arrived)
			for range 5 {
				setLatch(t, latch, 1)
				countDown(t, latch, 0)
			}
			setLatch(t, latch, 1)
			held.Release()
			err := rig.Await(t, 2*time.Second, "the awaiter", opened)
			if each.want == nil {
				assert.NoError(t, err)
			} else {
				assert.ErrorIs(t, err, each.want)
			}
			assert.Equal(t, 1, left(t, latch))
		})
	}
}

// quiet waits until a client has queried after its subscription and sends nothing more.
func quiet(t *testing.T, tap *rig.Tap) {
	t.Helper()
	before, since := -1, time.Now()
	rig.Eventually(t, soon, "the client rests", func() error {
		if n := len(tap.Commands()); n != before {
			before, since = n, time.Now()
		}
		if time.Since(since) < 100*time.Millisecond {
			return errors.New("it asked just now")
		}
		return nil
	})
}

// hasNote reports whether a command names the note of an operation.
func hasNote(c rig.Command) bool {
	return slices.ContainsFunc(c.Args, func(arg string) bool {
		return strings.HasPrefix(arg, "latchkey_op:") && !strings.HasSuffix(arg, ":never")
	})
}

// A late count of a round that is over does not affect the next round, and neither does a late set or deletion.
func TestLatchDelayedOperations(t *testing.T) {
	server := rig.Shared()
	second := func(name string) rig.Match { // a command that changes the latch has a note with a number
		return func(c rig.Command) bool { return rig.Mentions(name)(c) && hasNote(c) }
	}
	for what, each := range map[string]func(ctx context.Context, latch *latchkey.CountDownLatch) (any, error){
		"CountDown":   func(ctx context.Context, l *latchkey.CountDownLatch) (any, error) { return l.CountDown(ctx) },
		"CountDownAs": func(ctx context.Context, l *latchkey.CountDownLatch) (any, error) { return l.CountDownAs(ctx, "a") },
	} {
		t.Run(what, func(t *testing.T) {
			tap := rig.NewTap(t, server)
			latch := newLatch(t, connect(t, server), 1)
			late := connectVia(t, server, tap.Addr(), latchkey.Options{RetryBudget: 8 * time.Second}).NewCountDownLatch(latch.Name())
			held := tap.HoldCommand(second(latch.Name()))
			done := make(chan error, 1)
			go func() {
				says, err := each(context.Background(), late)
				if says != 0 {
					err = fmt.Errorf("it says %v (%w)", says, err)
				}
				done <- err
			}()
			rig.Await(t, soon, "the count at the tap", held.Arrived)
			countDown(t, latch, 0)
			setLatch(t, latch, 2)
			held.Release()
			require.NoError(t, rig.Await(t, soon, "the late one", done))
			assert.Equal(t, 2, left(t, latch), "the second round is as it was")
			_, err := latch.CountDownAs(t.Context(), "a")
			require.NoError(t, err)
			assert.Equal(t, 1, left(t, latch), "its participants too")
		})
	}
	t.Run("TrySetCount", func(t *testing.T) {
		tap, name := rig.NewTap(t, server), rig.Name(t)
		latch := connect(t, server).NewCountDownLatch(name)
		late := connectVia(t, server, tap.Addr(), latchkey.Options{RetryBudget: 8 * time.Second}).NewCountDownLatch(name)
		held := tap.HoldCommand(second(name))
		done := make(chan bool, 1)
		go func() {
			set, err := late.TrySetCount(context.Background(), 9)
			assert.NoError(t, err)
			done <- set
		}()
		rig.Await(t, soon, "the set at the tap", held.Arrived)
		setLatch(t, latch, 1)
		countDown(t, latch, 0)
		held.Release()
		assert.False(t, rig.Await(t, soon, "the late one", done), "somebody has set it since")
		assert.NoError(t, latch.Await(within(t, soon)), "it is still open")
	})
	t.Run("Delete", func(t *testing.T) {
		tap := rig.NewTap(t, server)
		latch := newLatch(t, connect(t, server), 1)
		client := connectVia(t, server, tap.Addr())
		copied := tap.Lose(1, second(latch.Name()), rig.CutRequest)
		deleted, err := client.NewCountDownLatch(latch.Name()).Delete(t.Context())
		require.NoError(t, err)
		require.True(t, deleted)
		setLatch(t, latch, 3)
		rig.NewAdmin(t, server).Do(rig.Await(t, soon, "the copy", copied).Args...)
		assert.Equal(t, 3, left(t, latch))
	})
}

// At the end of its time to live a latch frees its awaiters with an error, and later calls return that error too. A
// participant that died does not keep others waiting.
func TestLatchExpires(t *testing.T) {
	t.Parallel()
	server, ctx := rig.Shared(), t.Context()
	admin := rig.NewAdmin(t, server)
	const ttl = 2 * time.Second
	start := time.Now()
	latch := newLatch(t, connect(t, server), 2, latchkey.TTL(ttl))
	_, err := latch.CountDownAs(ctx, "who lives")
	require.NoError(t, err)
	waiting := connect(t, server, patient).NewCountDownLatch(latch.Name())
	strict, lenient := awaitInBackground(within(t, soon), waiting), awaitInBackground(within(t, soon), waiting, latchkey.UnsetIsOpen())
	assert.ErrorIs(t, rig.Await(t, soon, "the awaiter", strict), latchkey.ErrGone)
	took := time.Since(start)
	t.Logf("told %v after it was set for %v", took.Round(time.Millisecond), ttl)
	assert.GreaterOrEqual(t, took, ttl)
	assert.Less(t, took, ttl+leeway)
	assert.NoError(t, rig.Await(t, soon, "the lenient awaiter", lenient))

	_, err = latch.CountDown(ctx)
	assert.ErrorIs(t, err, latchkey.ErrGone)
	_, err = latch.Count(ctx)
	assert.ErrorIs(t, err, latchkey.ErrGone)
	assert.ErrorIs(t, latch.Await(within(t, soon)), latchkey.ErrGone)
	for key, entry := range admin.Dump(latch.Name()) {
		assert.Positive(t, entry.TTL, "%s goes by itself", key)
	}
	setLatch(t, latch, 1)
	countDown(t, latch, 0)
	assert.NoError(t, latch.Await(within(t, soon)))
}

// A caller that waits until somebody sets the count awaits the first round that begins then.
func TestLatchAwaitSet(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	tap := rig.NewTap(t, server)
	latch := connect(t, server).NewCountDownLatch(name)
	waiting := connectVia(t, server, tap.Addr(), patient).NewCountDownLatch(name)
	err := waiting.Await(within(t, soon), latchkey.AwaitSet(), latchkey.Wait(time.Second))
	assert.ErrorIs(t, err, latchkey.ErrNotAcquired)
	assert.ErrorIs(t, err, latchkey.ErrNotSet, "that is why")
	assert.ErrorIs(t, waiting.Await(within(t, soon), latchkey.AwaitSet(), latchkey.Wait(500*time.Millisecond)), latchkey.ErrNotSet)

	var all []<-chan error
	for range 5 {
		all = append(all, awaitInBackground(within(t, soon), waiting, latchkey.AwaitSet()))
	}
	parked(t, rig.NewAdmin(t, server), name)
	setLatch(t, latch, 2)
	countDown(t, latch, 1)
	quiet(t, tap)
	for _, each := range all {
		require.Empty(t, each, "it is closed")
	}
	countDown(t, latch, 0)
	for _, each := range all {
		assert.NoError(t, rig.Await(t, 2*time.Second, "an awaiter", each))
	}

	_, err = latch.Delete(t.Context())
	require.NoError(t, err)
	opened := awaitInBackground(within(t, soon), waiting, latchkey.AwaitSet())
	quiet(t, tap)
	held := tap.HoldCommand(rig.Mentions(name))
	setLatch(t, latch, 1)
	rig.Await(t, soon, "it is woken by the set", held.Arrived)
	countDown(t, latch, 0)
	setLatch(t, latch, 1) // before it has queried
	held.Release()
	assert.NoError(t, rig.Await(t, 2*time.Second, "the awaiter of the first round", opened))
}

// The test sends Redisson's commands and messages by hand.
func TestLatchOfRedisson(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	admin := rig.NewAdmin(t, server)
	latch := connect(t, server, patient).NewCountDownLatch(name)
	javaSets := func(n string) {
		admin.Do("SET", name, n)
		admin.Publish(latchChannelOf(name), "1")
	}
	javaCounts := func() {
		if admin.Int("DECR", name) == 0 {
			admin.Do("DEL", name)
			admin.Publish(latchChannelOf(name), "0")
		}
	}
	first := awaitInBackground(within(t, soon), latch, latchkey.AwaitSet())
	parked(t, admin, name)
	javaSets("2")
	rig.Eventually(t, soon, "the set is seen", func() error { _, err := latch.Count(t.Context()); return err })
	set, err := latch.TrySetCount(t.Context(), 5)
	require.NoError(t, err)
	assert.False(t, set)
	javaCounts()
	countDown(t, latch, 0)
	require.NoError(t, rig.Await(t, 2*time.Second, "the awaiter", first))

	javaSets("1")
	second := awaitInBackground(within(t, soon), latch)
	staysPending(t, second)
	javaCounts()
	require.NoError(t, rig.Await(t, 2*time.Second, "the awaiter", second))

	setLatch(t, latch, 2) // set by this library, and both count
	javaCounts()
	assert.Equal(t, 1, left(t, latch))
	third := awaitInBackground(within(t, soon), latch)
	javaCounts()
	require.NoError(t, rig.Await(t, 2*time.Second, "the awaiter", third))

	javaSets("0")
	assert.Zero(t, left(t, latch), "set to nothing")
	assert.NoError(t, latch.Await(within(t, soon)))
	setLatch(t, latch, 1)
	admin.Do("DEL", name) // its delete; the message wakes our awaiters, but none of its own
	admin.Publish(latchChannelOf(name), "1")
	assert.NoError(t, latch.Await(within(t, soon)))
}

// On a server that is out of memory a latch cannot be set, but it can be counted down, awaited and deleted.
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
	parked(t, admin, latch.Name())
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

// Close ends all awaiters and leaves no goroutine.
func TestLatchClose(t *testing.T) {
	server := rig.Fresh(t)
	admin := rig.NewAdmin(t, server)
	before := goleak.IgnoreCurrent()
	client, closeAll, err := dial(server, server.Addr(), latchkey.Options{})
	require.NoError(t, err)
	latch := newLatch(t, client, 1)
	var all []<-chan error
	for range 50 {
		all = append(all, awaitInBackground(context.Background(), latch))
	}
	parked(t, admin, latch.Name())
	require.NoError(t, closeAll(within(t, soon)))
	for _, each := range all {
		err := rig.Await(t, soon, "an awaiter", each)
		assert.ErrorIs(t, err, latchkey.ErrClosed)
		assert.NotErrorIs(t, err, latchkey.ErrNotAcquired)
		assert.NotErrorIs(t, err, latchkey.ErrUnavailable)
	}
	_, err = latch.CountDown(t.Context())
	assert.ErrorIs(t, err, latchkey.ErrClosed)
	assert.ErrorIs(t, latch.Await(within(t, soon)), latchkey.ErrClosed)
	_, err = latch.Count(t.Context())
	assert.ErrorIs(t, err, latchkey.ErrClosed)
	assert.NoError(t, goleak.Find(before))
}

// Ten thousand awaiters of one client cost as much as one while they wait.
func TestLatchAwaitersCostWhatOneCosts(t *testing.T) {
	rig.Long(t)
	rig.Need(t, rig.Stats, rig.Speed)
	server := rig.Fresh(t)
	tap := rig.NewTap(t, server)
	latch := newLatch(t, connect(t, server), 1)
	waiting := connectVia(t, server, tap.Addr()).NewCountDownLatch(latch.Name())
	results := make(chan error, many)
	ctx := within(t, 2*time.Minute)
	for n := 0; n < many; n += many / 20 { // few enough at once that none exhausts its budget
		for range many / 20 {
			go func() { results <- waiting.Await(ctx) }()
		}
		rig.Eventually(t, 30*time.Second, "all have looked", func() error {
			if looked := len(mentioning(tap, latch.Name())); looked < n+many/20 {
				return fmt.Errorf("%d have", looked)
			}
			return nil
		})
	}
	idle := math.Inf(1)
	for i := 0; i < 10 && idle >= 5; i++ { // on a busy machine some query again before they rest
		quiet(t, tap)
		tap.Forget()
		start := time.Now()
		rest(3 * time.Second) // a rate is measured
		idle = float64(len(mentioning(tap, latch.Name()))) / time.Since(start).Seconds()
	}
	start := time.Now()
	countDown(t, latch, 0)
	for range many {
		require.NoError(t, rig.Await(t, 30*time.Second, "an awaiter", results))
	}
	t.Logf("%d awaiters: %.1f looks/s while they wait; all released in %v with %d looks",
		many, idle, time.Since(start).Round(time.Millisecond), len(mentioning(tap, latch.Name())))
	assert.Less(t, idle, 5.0)
}

// In a cluster a latch with any name opens by message.
func TestCluster_latch(t *testing.T) {
	t.Parallel()
	cluster := rig.NewCluster(t)
	for what, mode := range map[string]latchkey.ShardedPubSub{"sharded": latchkey.ShardedAuto, "classic": latchkey.ShardedOff} {
		t.Run(what, func(t *testing.T) {
			options := latchkey.Options{ShardedPubSub: mode, PollCeiling: byMessage, Lease: 2 * byMessage}
			a, b := connectCluster(t, cluster, options), connectCluster(t, cluster, options)
			for i := range 20 {
				name := fmt.Sprintf("%s:%d", t.Name(), i)
				if i%2 == 0 {
					name = fmt.Sprintf("%s:{tag %d}x", t.Name(), i)
				}
				latch := a.NewCountDownLatch(name)
				setLatch(t, latch, 1)
				opened := awaitInBackground(within(t, byMessage), b.NewCountDownLatch(name))
				rest(100 * time.Millisecond) // the longest way to wait for a message
				countDown(t, latch, 0)
				require.NoError(t, rig.Await(t, byMessage/2, "the awaiter of "+name, opened))
			}
		})
	}
}

// The rights listed in docs/reference/latch.md suffice.
func TestLatchPermissions(t *testing.T) {
	rig.Need(t, rig.Settings)
	server, ctx := rig.Fresh(t), t.Context()
	grant(t, server, "latches", `
		-@all +evalsha +eval +subscribe +unsubscribe +ping &latchkey:beat:*
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
	setLatch(t, latch, 1, latchkey.TTL(100*time.Millisecond))
	assert.ErrorIs(t, latch.Await(within(t, soon)), latchkey.ErrGone)
}
