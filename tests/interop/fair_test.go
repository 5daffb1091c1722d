package interop

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// turn is a waiter's time with the fair lock.
type turn struct {
	number   int // its place in the queue
	side     string
	from, to int64
}

// queue is a fair lock with waiters of both sides.
type queue struct {
	t      *testing.T
	where  place
	raw    rueidis.Client
	name   string
	client *latchkey.Client
	java   *java
	turns  chan turn
	seen   map[string]bool // waiters that have come so far
}

func newQueue(t *testing.T, where place, version string, fairWait time.Duration) *queue {
	t.Helper()
	return newQueueWith(t, where, version, fairWait, latchkey.Options{})
}

func newQueueWith(t *testing.T, where place, version string, fairWait time.Duration, options latchkey.Options) *queue {
	t.Helper()
	settings := fields{}
	if fairWait != 0 {
		options.Tuning.RedissonFairWait = fairWait
		settings["fairLockWaitTimeout"] = fairWait.Milliseconds()
	}
	return &queue{
		t: t, where: where, raw: where.raw(t), name: rig.Name(t),
		client: where.connect(t, options), java: where.java(t, version, settings),
		turns: make(chan turn, 100), seen: map[string]bool{},
	}
}

// do runs a command about the key that is its second word.
func (q *queue) do(words ...string) rueidis.RedisResult {
	q.t.Helper()
	return q.raw.Do(within(q.t, soon), q.raw.B().Arbitrary(words[0]).Keys(words[1]).Args(words[2:]...).Build())
}

// onServer returns the number of waiters in the queue.
func (q *queue) onServer() int64 {
	q.t.Helper()
	n, err := q.do("LLEN", "redisson_lock_queue:{"+q.name+"}").AsInt64()
	require.NoError(q.t, err)
	return n
}

// grown waits until so many new waiters are in the queue. Earlier ones may have left it.
func (q *queue) grown(by int) {
	q.t.Helper()
	rig.Eventually(q.t, soon, "a waiter stands in the queue", func() error {
		all, err := q.do("LRANGE", "redisson_lock_queue:{"+q.name+"}", "0", "-1").AsStrSlice()
		require.NoError(q.t, err)
		fresh := slices.DeleteFunc(all, func(waiter string) bool { return q.seen[waiter] })
		if len(fresh) < by {
			return fmt.Errorf("%d of %d", len(fresh), by)
		}
		for _, waiter := range fresh {
			q.seen[waiter] = true
		}
		return nil
	})
}

// stayMillis is how long each waiter keeps the lock, in ms.
const stayMillis = 5

// addGo adds a waiter of this library.
func (q *queue) addGo(number int) {
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		hold, err := q.client.NewFairLock(q.name).Lock(ctx)
		from := time.Now()
		if !assert.NoError(q.t, err, "waiter %d", number) {
			q.turns <- turn{number: number}
			return
		}
		timer := time.NewTimer(stayMillis * time.Millisecond)
		<-timer.C
		to := time.Now()
		assert.NoError(q.t, hold.Unlock(context.Background()))
		q.turns <- turn{number, "Go", from.UnixNano(), to.UnixNano()}
	}()
	q.grown(1)
}

// addJava adds a waiter of Redisson.
func (q *queue) addJava(number int) {
	answers := q.java.on("waiter-"+strconv.Itoa(number)).start("lock.pass",
		fields{"kind": "fair", "name": q.name, "millis": stayMillis})
	go func() {
		a := <-answers
		times := []int64{0, 0}
		if assert.NoError(q.t, a.err(), "waiter %d", number) {
			assert.NoError(q.t, json.Unmarshal(a.Value, &times))
		}
		q.turns <- turn{number, "Java", times[0], times[1]}
	}()
	q.grown(1)
}

// served waits until n waiters have had their turns, and checks that they came one after another,
// in order of arrival.
func (q *queue) served(n int) {
	q.t.Helper()
	turns := make([]turn, n)
	for i := range turns {
		turns[i] = rig.Await(q.t, 90*time.Second, "the next waiter's turn", q.turns)
	}
	slices.SortFunc(turns, func(a, b turn) int { return cmp.Compare(a.from, b.from) })
	for i := 1; i < n; i++ {
		a, b := turns[i-1], turns[i]
		assert.Less(q.t, a.number, b.number, "%s came before %s and was served after it", b.side, a.side)
		assert.LessOrEqual(q.t, a.to, b.from, "%d and %d had the lock at once", a.number, b.number)
	}
	q.t.Logf("%d waiters in %v", n, time.Duration(turns[n-1].to-turns[0].from).Round(time.Millisecond))
}

// fairWait is the fairLockWaitTimeout that the page on compatibility recommends.
const fairWait = 5 * time.Second

// fairWaits are the settings of the Java side to test queues with: 0 is the default.
func fairWaits(t *testing.T, version string) []time.Duration {
	t.Helper()
	if fairWaitFixed(t, version) {
		return []time.Duration{0}
	}
	return []time.Duration{fairWait, 0}
}

func eachFairWait(t *testing.T, test func(t *testing.T, version string, wait time.Duration)) {
	t.Helper()
	eachVersion(t, func(t *testing.T, version string) {
		for _, wait := range fairWaits(t, version) {
			t.Run("FairWait"+wait.String(), func(t *testing.T) {
				t.Parallel()
				test(t, version, wait)
			})
		}
	})
}

// Thirty waiters of alternating sides are served in order of arrival, after a hold that is longer
// than Redisson's wait timeout of 5 s.
func TestMixedQueue(t *testing.T) {
	rig.Long(t)
	t.Parallel()
	where := here(t)
	eachFairWait(t, func(t *testing.T, version string, wait time.Duration) {
		// The place of a Java waiter behind one of ours lasts for the stale time of ours plus its
		// own wait timeout. On a busy machine, the hold takes longer than the sum of 5 s each.
		q := newQueueWith(t, where, version, wait, latchkey.Options{Tuning: latchkey.Tuning{StaleWaiterTimeout: 20 * time.Second}})
		hold, err := q.client.NewFairLock(q.name).Lock(within(t, soon))
		require.NoError(t, err)
		for i := range 15 {
			q.addGo(2 * i)
			q.addJava(2*i + 1)
		}
		rig.Throughout(t, fairWait+time.Second, "all wait", func() error {
			if n := q.onServer(); n != 30 {
				return fmt.Errorf("%d are in the queue", n)
			}
			return nil
		})
		require.NoError(t, hold.Unlock(context.Background()))
		q.served(30)
	})
}
