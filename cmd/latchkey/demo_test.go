package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/latchkeytest"
)

// brief has the arguments of a demo with just enough time for everything.
var brief = []string{"demo", "--for", "2s", "--lease", "400ms"}

// slow has those of a demo whose jobs take three times as long, so that a busy machine can
// interfere with one.
var slow = []string{"demo", "--for", "6s", "--lease", "400ms"}

// proofs is how the demo ends.
const proofs = `\n\nPROOF: counter (\d+) = \d+ increments, at most 1 inside, lock back in \d\.\d\ds\n` +
	`PROOF: \d+ jobs with 3 permits, at most 3 inside, permit back in \d\.\d\ds\n` +
	`PROOF: 5 of 5 workers passed the latch, 0 of them too early\n` +
	`PROOF: 3 leaders in turn, at most 1 at once, in terms \[1 2 3\]`

func TestDemoProves(t *testing.T) {
	t.Parallel()
	got := latchkeyCLI(t, nil, brief...)
	assert.Zero(t, got.code, got.stderr)
	assert.Empty(t, got.stderr)
	assert.Regexp(t, proofs+`\n\nWhat next:\n\n  latchkey run`, got.stdout)
	assert.Regexp(t, `(?m)(^   preparation 2 is reported, 1 to go; .*\n){2}`, got.stdout, "it counts once")
	assert.NotContains(t, got.stdout, "\x1b", "no terminal, no control characters")
}

// The captures of the demo in the documentation show the demo as it is: docs/capture/demo.sh makes
// them.
func TestDemoCaptures(t *testing.T) {
	t.Parallel()
	const folder = "../../docs/capture/"
	text, err := os.ReadFile(folder + "demo.txt")
	require.NoError(t, err)
	picture, err := os.ReadFile(folder + "demo.svg")
	require.NoError(t, err)
	for i, act := range acts {
		title := fmt.Sprintf("%d. %s", i+1, act.title)
		assert.Contains(t, string(text), "\n"+title+"\n")
		assert.Contains(t, string(picture), title)
	}
	assert.Regexp(t, proofs+`\n\nWhat next:`, string(text))
	assert.Equal(t, len(acts), strings.Count(string(text), "PROOF: ")+1, "all acts but the first prove something")
	assert.Contains(t, string(text), nextSteps)
}

func TestDemoOnANamedServerLeavesNothingBehind(t *testing.T) {
	long(t)
	t.Parallel()
	server := latchkeytest.NewServer(t)
	got := latchkeyCLI(t, server, brief...)
	assert.Zero(t, got.code, got.stderr)
	assert.Empty(t, keys(t, rawTo(t, server)))
	assertNotesExpire(t, rawTo(t, server))
}

func TestDemoNoticesALostIncrement(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	demo := invoke(t, server, brief...)
	client := rawTo(t, server)
	var spoilt int64
	eventually(t, "somebody counts on from a wrong value", func() bool {
		key := keyEnding(t, client, ":protected")
		if key == "" {
			return false
		}
		value, err := client.Do(t.Context(), client.B().Get().Key(key).Build()).AsInt64()
		require.NoError(t, err)
		if spoilt > 0 && value > spoilt {
			return true
		}
		// No worker has read the wrong value yet, or one overwrote it: set it again.
		spoilt = value + 1_000_000
		set := client.B().Set().Key(key).Value(strconv.FormatInt(spoilt, 10)).Build()
		require.NoError(t, client.Do(t.Context(), set).Error())
		return false
	})

	got := demo.end()
	assert.Equal(t, exitProofFailed, got.code, got.stderr)
	assert.Regexp(t, `(?m)^PROOF FAILED: counter \d+ ≠ \d+ increments`, got.stdout)
}

func TestDemoNoticesALockThatIsTakenAway(t *testing.T) {
	long(t)
	t.Parallel()
	server := latchkeytest.NewServer(t)
	demo := invoke(t, server, brief...)
	client, thief := rawTo(t, server), server.Client()
	ended := make(chan struct{})
	var robbing sync.WaitGroup
	robbing.Go(func() { // more than one holder: one that is killed by the demo does not notice
		for tick := time.NewTicker(50 * time.Millisecond); ; {
			select {
			case <-ended:
				return
			case <-tick.C:
				if key := keyEnding(t, client, ":lock"); key != "" {
					_, _ = thief.ForceUnlock(t.Context(), key)
				}
			}
		}
	})
	code := demo.end().code
	close(ended)
	robbing.Wait()
	assert.Equal(t, exitProofFailed, code)
}

func TestInterruptedDemoCleansUp(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	demo := invoke(t, server, "demo", "--for", "1m")
	client := rawTo(t, server)
	eventually(t, "workers are at work", func() bool { return len(keys(t, client)) > 0 })
	require.NoError(t, demo.Process.Signal(os.Interrupt))

	got := demo.end()
	assert.Equal(t, exitSignalled+2, got.code)
	assert.Empty(t, got.stderr)
	assert.NotContains(t, got.stdout, "PROOF")
	assert.Empty(t, keys(t, client))
}

func TestInterruptedDemoReleasesTheLock(t *testing.T) {
	long(t)
	t.Parallel()
	interruptedDemoLeavesNothing(t, ":lock", "--for", "2s", "--workers", "2")
}

func TestDemoNoticesTooManyInside(t *testing.T) {
	long(t)
	t.Parallel()
	server := latchkeytest.NewServer(t)
	demo := invoke(t, server, slow...)
	key := awaitKey(t, server, ":pool")
	require.NoError(t, server.Client().NewPermitSemaphore(key).SetPermits(t.Context(), 4))
	got := demo.end()
	assert.Equal(t, exitProofFailed, got.code, got.stderr)
	assert.Regexp(t, `(?m)^PROOF FAILED: \d+ jobs with 3 permits, at most [45] inside`, got.stdout)
}

func TestDemoNoticesAPermitThatIsTakenAway(t *testing.T) {
	long(t)
	t.Parallel()
	server := latchkeytest.NewServer(t)
	demo := invoke(t, server, slow...)
	key := awaitKey(t, server, ":pool")
	client, pool := rawTo(t, server), server.Client().NewPermitSemaphore(key)
	eventually(t, "a holder is robbed", func() bool {
		ids, err := client.Do(t.Context(), client.B().Zrange().Key("{"+key+"}:timeout").Min("0").Max("0").Build()).AsStrSlice()
		if err != nil || len(ids) == 0 {
			return false
		}
		_, err = pool.Release(t.Context(), hex.EncodeToString([]byte(ids[0])))
		return err == nil
	})
	got := demo.end()
	assert.Equal(t, exitProofFailed, got.code)
	assert.Contains(t, got.stderr, "PROOF FAILED")
}

// interruptedDemoLeavesNothing interrupts a demo when a key with this end exists, and checks that
// no key is left.
func interruptedDemoLeavesNothing(t *testing.T, suffix string, flags ...string) {
	t.Helper()
	server := latchkeytest.NewServer(t)
	demo := invoke(t, server, append([]string{"demo"}, flags...)...)
	awaitKey(t, server, suffix)
	require.NoError(t, demo.Process.Signal(os.Interrupt))
	assert.Equal(t, exitSignalled+2, demo.end().code)
	assert.Empty(t, keys(t, rawTo(t, server)))
}

func TestInterruptedDemoRemovesThePool(t *testing.T) {
	long(t)
	t.Parallel()
	interruptedDemoLeavesNothing(t, ":pool", "--for", "1s", "--lease", "400ms")
}

func TestDemoNoticesWhoPassesTheLatchEarly(t *testing.T) {
	long(t)
	t.Parallel()
	server := latchkeytest.NewServer(t)
	client := server.Client()
	demo := invoke(t, server, "demo", "--for", "3s", "--lease", "100ms")
	key := awaitKey(t, server, ":latch")
	_, err := client.NewCountDownLatch(key).CountDownN(t.Context(), steps)
	require.NoError(t, err)
	got := demo.end()
	assert.Equal(t, exitProofFailed, got.code, got.stderr)
	assert.Regexp(t, `(?m)^PROOF FAILED: 5 of 5 workers passed the latch, [1-5] of them too early`, got.stdout)
}

func TestDemoNoticesALatchThatIsGone(t *testing.T) {
	long(t)
	t.Parallel()
	server := latchkeytest.NewServer(t)
	client := server.Client()
	demo := invoke(t, server, "demo", "--for", "3s", "--lease", "100ms")
	key := awaitKey(t, server, ":latch")
	_, err := client.NewCountDownLatch(key).Delete(t.Context())
	require.NoError(t, err)
	got := demo.end()
	assert.Equal(t, exitProofFailed, got.code)
	assert.Contains(t, got.stderr, "PROOF FAILED")
}

func TestInterruptedDemoRemovesTheLatch(t *testing.T) {
	long(t)
	t.Parallel()
	interruptedDemoLeavesNothing(t, ":latch", "--for", "2s", "--lease", "100ms")
}

// A demo that is interrupted during a term leaves no key of the term behind.
func TestInterruptedDemoRemovesTheElection(t *testing.T) {
	long(t)
	t.Parallel()
	interruptedDemoLeavesNothing(t, ":election", "--for", "2s", "--lease", "100ms")
}

// If somebody takes the leadership away, two workers lead at once, or the election ends.
func TestDemoNoticesALeaderTooMany(t *testing.T) {
	long(t)
	t.Parallel()
	server := latchkeytest.NewServer(t)
	demo := invoke(t, server, "demo", "--for", "6s", "--lease", "100ms")
	key, client := awaitKey(t, server, ":election"), server.Client()
	eventually(t, "a worker leads", func() bool {
		leader, err := client.NewElection(key).Leader(t.Context())
		return err == nil && !leader.IsZero()
	})
	_, err := client.ForceUnlock(t.Context(), key)
	require.NoError(t, err)
	got := demo.end()
	assert.Equal(t, exitProofFailed, got.code, got.stdout)
	assert.Regexp(t, `(?m)^PROOF FAILED: 3 leaders in turn, at most 2 at once`, got.stdout)
}

func awaitKey(t *testing.T, server *latchkeytest.Server, suffix string) (key string) {
	t.Helper()
	client := rawTo(t, server)
	eventually(t, "there is a key "+suffix, func() bool {
		key = keyEnding(t, client, suffix)
		return key != ""
	})
	return key
}

// keys returns all keys but the notes of the library about operations and about former latches.
func keys(t *testing.T, client rueidis.Client) []string {
	t.Helper()
	return slices.DeleteFunc(keysLike(t, client, "*"), isNote)
}

func isNote(key string) bool {
	return strings.HasPrefix(key, "latchkey_op:") || strings.HasPrefix(key, "latchkey_latch:")
}

func keysLike(t *testing.T, client rueidis.Client, pattern string) []string {
	t.Helper()
	found, err := client.Do(t.Context(), client.B().Keys().Pattern(pattern).Build()).AsStrSlice()
	require.NoError(t, err)
	return found
}

func assertNotesExpire(t *testing.T, client rueidis.Client) {
	t.Helper()
	for _, key := range slices.DeleteFunc(keysLike(t, client, "*"), func(key string) bool { return !isNote(key) }) {
		left, err := client.Do(t.Context(), client.B().Ttl().Key(key).Build()).AsInt64()
		require.NoError(t, err)
		assert.Positive(t, left, key)
		assert.LessOrEqual(t, left, int64(1200), key)
	}
}

// keyEnding returns "" if there is no such key now.
func keyEnding(t *testing.T, client rueidis.Client, suffix string) string {
	t.Helper()
	for _, key := range keys(t, client) {
		if strings.HasSuffix(key, suffix) {
			return key
		}
	}
	return ""
}

func TestGaugeSeesTwoInside(t *testing.T) {
	var g gauge
	g.enter()
	g.leave()
	g.enter()
	assert.Equal(t, 1, g.peak())
	g.enter()
	g.leave()
	assert.Equal(t, 2, g.peak())
}

func TestGaugeTellsWhoIsNext(t *testing.T) {
	var g gauge
	g.enter()
	next := g.leaveUntil(2)
	g.enter()
	assert.Empty(t, next)
	g.leave()
	g.enter()
	assert.Empty(t, next)
	before := time.Now()
	g.enter()
	assert.False(t, (<-next).Before(before))
	g.enter() // nothing waits for this one, and it does not block
}

func TestProofNeedsEveryPart(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	a := &arena{redis: rawTo(t, server), key: "counter"}
	c := &crew{gauge: &a.gauge, workers: []*worker{{task: a.increment}}}
	require.NoError(t, c.workers[0].do(t.Context()))
	death := &accident{stage: &stage{}, prize: theLock("lock"), back: true}
	holds := func() bool {
		p, err := prove(t.Context(), a, c, death)
		require.NoError(t, err)
		assert.Equal(t, p.holds, strings.HasPrefix(p.String(), "PROOF: "))
		return p.holds
	}

	assert.True(t, holds())
	death.back = false
	assert.False(t, holds(), "the lock did not come back")
	death.back = true
	a.gauge.most = 2
	assert.False(t, holds(), "two were inside")
	a.gauge.most = 1
	require.NoError(t, a.write(t.Context(), 2))
	assert.False(t, holds(), "the counter is off")
}

func TestProofOfThePoolNeedsEveryPart(t *testing.T) {
	g := &gauge{most: 2}
	c := &crew{gauge: g, workers: make([]*worker, 3)}
	for i := range c.workers {
		c.workers[i] = &worker{}
	}
	death := &accident{stage: &stage{}, prize: aPermit("pool", 2, 0), back: true}
	holds := func() bool { return provePool(c, death).holds }

	assert.False(t, holds(), "nobody did anything")
	c.workers[0].turns.Store(1)
	assert.True(t, holds())
	death.back = false
	assert.False(t, holds(), "the permit did not come back")
	death.back = true
	g.most = 3
	assert.False(t, holds(), "too many were inside")
	g.most = 1
	assert.False(t, holds(), "it never was full")
	g.most, c.workers = 2, c.workers[:2]
	assert.False(t, holds(), "there was no need for a limit")
}

func TestProofOfTheLatchNeedsEveryPart(t *testing.T) {
	l := &startLine{stage: &stage{workers: 2}}
	holds := func() bool { return l.prove().holds }
	l.done.Store(steps)
	l.passed.Store(2)
	assert.True(t, holds())
	l.early.Store(1)
	assert.False(t, holds(), "one was early")
	l.early.Store(0)
	l.passed.Store(1)
	assert.False(t, holds(), "one did not pass")
	l.passed.Store(2)
	l.done.Store(steps - 1)
	assert.False(t, holds(), "not all was done")
}

func TestScreenRedrawsInPlace(t *testing.T) {
	var out bytes.Buffer
	s := &screen{out: &out, live: true}
	s.show([]string{"a", "b"}, "summary")
	s.say("news")
	s.show([]string{"c", "d"}, "summary")
	s.keep()
	s.say("end")
	assert.Equal(t, "   a\n   b\n"+
		"\x1b[2A\x1b[Jnews\n   a\n   b\n"+
		"\x1b[2A\x1b[J   c\n   d\n"+
		"end\n", out.String())
}

func TestScreenWritesLinesWhereNothingCanBeRedrawn(t *testing.T) {
	var out bytes.Buffer
	s := newScreen(&out)
	s.show([]string{"a", "b"}, "summary")
	s.say("news")
	assert.Equal(t, "   summary\nnews\n", out.String())
}

func TestScreenForgetsRowsWhenItWasStopped(t *testing.T) {
	var out bytes.Buffer
	s := &screen{out: &out, live: true}
	s.show([]string{"a", "b"}, "summary")
	s.continued()
	s.show([]string{"c", "d"}, "summary")
	s.show([]string{"e"}, "summary")
	assert.Equal(t, "   a\n   b\n   c\n   d\n\x1b[2A\x1b[J   e\n", out.String())
}

func TestScreenHasColorsOnATerminalOnly(t *testing.T) {
	assert.Equal(t, "text", newScreen(&bytes.Buffer{}).paint(good, "text"))
	assert.Equal(t, "\x1b[32mtext\x1b[0m", (&screen{colors: true}).paint(good, "text"))
}

func TestBars(t *testing.T) {
	assert.Equal(t, "██░░", bar(5, 10, 4))
	assert.Equal(t, "████", bar(11, 10, 4))
	assert.Equal(t, 40, barWidth(200))
	assert.Equal(t, 4, barWidth(40))
}

func TestPauseEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(assert.AnError)
	assert.Equal(t, assert.AnError, pause(ctx, time.Hour))
	assert.NoError(t, pause(context.Background(), time.Microsecond))
}
