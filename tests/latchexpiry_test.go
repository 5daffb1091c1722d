package tests

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// expiredUnseen makes a round of two counts expire, one of which "a" has made, without any query of
// this library.
func expiredUnseen(t *testing.T, admin *rig.Admin, latch *latchkey.CountDownLatch) {
	t.Helper()
	inTime(t, func(ttl time.Duration) bool {
		setLatch(t, latch, 2, latchkey.TTL(ttl))
		left, err := latch.CountDownAs(t.Context(), "a")
		if errors.Is(err, latchkey.ErrGone) {
			return false
		}
		require.NoError(t, err)
		require.Equal(t, 1, left)
		return true
	})
	rig.Eventually(t, soon, "the round expires", func() error {
		if admin.Exists(latch.Name()) {
			return errors.New("it is there")
		}
		return nil
	})
}

// A round expires, and there is no query before Java sets the next one. That is another round: its
// awaiters pass when it opens, and a participant of the first round counts again.
func TestLatchThatExpiredUnseenAndJavasNext(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Stats)
	server, name := rig.Fresh(t), rig.Name(t)
	admin := rig.NewAdmin(t, server)
	latch := connect(t, server, patient).NewCountDownLatch(name)
	expiredUnseen(t, admin, latch)
	admin.Do("SET", name, "3") // Java's trySetCount
	admin.Publish(latchChannelOf(name), "1")

	for range 2 {
		left, err := latch.CountDownAs(t.Context(), "a")
		require.NoError(t, err)
		assert.Equal(t, 2, left, "it counts once in this round")
	}
	opened := awaitInBackground(within(t, soon), latch)
	awaitWaiter(t, admin, name)
	before := admin.CommandStats()
	rest(300 * time.Millisecond)
	assert.Less(t, admin.Since(before)["evalsha"], int64(10), "looks of an awaiter of a closed latch")
	admin.Do("DEL", name) // Java's last countDown
	admin.Publish(latchChannelOf(name), "0")
	assert.NoError(t, rig.Await(t, soon, "the awaiter", opened))
}

// An awaiter of a round with a TTL learns that it expired, even if Java has begun the next round
// before the awaiter's query.
func TestAwaiterOfARoundThatExpiredBeforeJavasNext(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	tap := rig.NewTap(t, server)
	latch := connectVia(t, server, tap.Addr(), patient).NewCountDownLatch(name)
	admin := rig.NewAdmin(t, server)
	var opened <-chan error
	var held *rig.Held
	inTime(t, func(ttl time.Duration) bool {
		setLatch(t, latch, 2, latchkey.TTL(ttl))
		opened = awaitInBackground(within(t, time.Minute), latch)
		rig.Eventually(t, soon, "it waits, unless the round is over", func() error {
			if len(opened) == 0 && len(admin.Channels(name)) == 0 {
				return errors.New("not yet")
			}
			return nil
		})
		held = tap.HoldCommand(rig.Mentions(name))
		if admin.Exists(name) {
			return true
		}
		held.Release()
		rig.Await(t, soon, "the awaiter", opened)
		return false
	})
	rig.Await(t, soon, "it looks at the end", held.Arrived)
	rig.Eventually(t, soon, "the round expires", func() error {
		if admin.Exists(name) {
			return errors.New("it is there")
		}
		return nil
	})
	admin.Do("SET", name, "3")
	held.Release()
	assert.ErrorIs(t, rig.Await(t, soon, "the awaiter", opened), latchkey.ErrGone)
}

// A participant counts once even in the last millisecond of a round with a TTL.
func TestParticipantsCountOnceUntilTheEnd(t *testing.T) {
	rig.Need(t, rig.Speed)
	latch := connect(t, rig.Shared()).NewCountDownLatch(rig.Name(t))
	for range 60 {
		const counts = 1_000_000
		setLatch(t, latch, counts, latchkey.TTL(5*time.Millisecond))
		for i := 1; ; i++ {
			if _, err := latch.CountDownAs(t.Context(), fmt.Sprint(i)); err != nil {
				break // the round is over
			}
			left, err := latch.CountDownAs(t.Context(), "a")
			if err != nil {
				break
			}
			require.Equal(t, counts-i-1, left, "one participant and %d others have counted", i)
		}
	}
}

// At the end of its time to live a latch frees its awaiters with an error, and later calls return
// that error too. A participant that died does not keep others waiting.
func TestLatchExpires(t *testing.T) {
	t.Parallel()
	server, ctx := rig.Shared(), t.Context()
	admin := rig.NewAdmin(t, server)
	latch := connect(t, server).NewCountDownLatch(rig.Name(t))
	var start time.Time
	var ttl time.Duration
	inTime(t, func(each time.Duration) bool {
		start, ttl = time.Now(), each
		setLatch(t, latch, 2, latchkey.TTL(ttl))
		_, err := latch.CountDownAs(ctx, "who lives")
		if errors.Is(err, latchkey.ErrGone) {
			return false
		}
		require.NoError(t, err)
		return true
	})
	waiting := connect(t, server, patient).NewCountDownLatch(latch.Name())
	strict, lenient := awaitInBackground(within(t, soon), waiting), awaitInBackground(within(t, soon), waiting, latchkey.UnsetIsOpen())
	assert.ErrorIs(t, rig.Await(t, soon, "the awaiter", strict), latchkey.ErrGone)
	took := time.Since(start)
	t.Logf("told %v after it was set for %v", took.Round(time.Millisecond), ttl)
	tookAbout(t, ttl, took)
	assert.NoError(t, rig.Await(t, soon, "the lenient awaiter", lenient))

	_, err := latch.CountDown(ctx)
	assert.ErrorIs(t, err, latchkey.ErrGone)
	_, err = latch.Count(ctx)
	assert.ErrorIs(t, err, latchkey.ErrGone)
	assert.ErrorIs(t, latch.Await(within(t, soon)), latchkey.ErrGone)
	for key, entry := range admin.Dump(latch.Name()) {
		assert.Positive(t, entry.TTL, "%s expires", key)
	}
	setLatch(t, latch, 1)
	countDown(t, latch, 0)
	assert.NoError(t, latch.Await(within(t, soon)))
}
