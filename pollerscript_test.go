package latchkey

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/testredis"
)

// poll makes an attempt as a poller that polls again after ms, and returns the ms of the reply.
func (s handoverScripts) poll(owner string, ms int) any {
	s.t.Helper()
	reply := s.attemptPolling(owner, strconv.Itoa(ms))
	require.Len(s.t, reply, 4)
	return reply.([]any)[3]
}

// attemptPolling makes an attempt with the last argument of a poller.
func (s handoverScripts) attemptPolling(owner, poll string) any {
	s.t.Helper()
	if s.mutex {
		return s.run(script.MutexAcquire, s.keys.Queued(), owner, "30000", s.entry(owner), "", poll)
	}
	return s.run(script.LockAcquire, s.keys.Fenced(), owner, "30000", "1", "", "", "1", s.entry(owner), "", poll)
}

// A poller is passed over, and keeps its place, until it knows that it is the first. Then it is granted the lock, although
// nobody hears a message.
func TestHandoverScripts_poller(t *testing.T) {
	eachHandover(t, func(t *testing.T, s handoverScripts) {
		heard := s.hear(ownerB, ownerC)
		s.attempt(ownerA, "", "")
		s.wait(ownerB)
		s.set(modelEpoch + 1)
		require.Equal(t, int64(2000), s.poll(ownerE, 2000))
		s.set(modelEpoch + 2)
		s.wait(ownerC)
		require.Equal(t, s.granted(ownerB, "2"), s.release(ownerA, "", ""))
		require.Contains(t, <-heard, ownerB)
		require.Equal(t, s.granted(ownerC, "3"), s.release(ownerB, "", ""), "E is to ask in 2 s")
		require.Contains(t, <-heard, ownerC)
		require.Equal(t, []string{s.entry(ownerE), "~" + ownerE}, s.state().queue)

		s.set(modelEpoch + 160_001)
		require.Equal(t, int64(15), s.poll(ownerE, 2000), "it is first, and has waited for 160 ms")
		s.set(modelEpoch + 4_000_001)
		require.Equal(t, int64(100), s.poll(ownerE, 2000))
		s.wait(ownerB)
		require.Equal(t, s.granted(ownerE, "4"), s.release(ownerC, "", ""))
		s.check(ownerE, "4", ownerB)
		require.Equal(t, s.acquired("4"), s.attempt(ownerE, s.entry(ownerE), s.entry(ownerE)))
		require.Empty(t, heard)
	})
}

// If all who wait are pollers that are not about to poll, the lock stays free, and they keep their places. One that is
// late has the lock for a second; one that is later is gone.
func TestHandoverScripts_only_pollers(t *testing.T) {
	eachHandover(t, func(t *testing.T, s handoverScripts) {
		s.attempt(ownerA, "", "")
		s.attempt(ownerB, s.entry(ownerB), "") // does not listen, and never asks again
		s.set(modelEpoch + 1)
		require.Equal(t, int64(2000), s.poll(ownerC, 2000))
		s.set(modelEpoch + 2)
		require.Equal(t, int64(2000), s.poll(ownerE, 2000))
		require.Equal(t, int64(0), s.release(ownerA, "", ""))
		require.Empty(t, s.state().owner)
		require.Equal(t, []string{s.entry(ownerC), s.entry(ownerE), "~" + ownerC, "~" + ownerE}, s.state().queue)
		s.attempt(ownerA, "", "")
		s.set(modelEpoch + 2_500_000)
		require.Equal(t, ownerC, s.release(ownerA, "", "").([]any)[0], "it is late")
		require.Equal(t, int64(1000), s.do("PTTL", s.keys.Key))
		s.set(modelEpoch + 3_100_000)
		require.Equal(t, int64(0), s.release(ownerC, "", ""), "E is gone")
		require.Equal(t, []string{"~" + ownerE}, s.state().queue)
		s.attempt(ownerA, "", "")
		s.poll(ownerB, 2000)
		require.Equal(t, []string{s.entry(ownerB), "~" + ownerB}, s.state().queue)
	})
}

// The poll time of a poller that listens now is removed.
func TestHandoverScripts_poller_listens(t *testing.T) {
	eachHandover(t, func(t *testing.T, s handoverScripts) {
		s.attempt(ownerA, "", "")
		s.poll(ownerB, 2000)
		s.attemptPolling(ownerB, "0")
		require.Equal(t, []string{s.entry(ownerB)}, s.state().queue)
	})
}

// A message for the first that listens passes over pollers, and they keep their places.
func TestHandoverScripts_ask_passes_over_pollers(t *testing.T) {
	eachHandover(t, func(t *testing.T, s handoverScripts) {
		heard := s.hear(ownerB)
		s.attempt(ownerA, "", "")
		s.wait(ownerC)
		for i := range 8 {
			s.set(modelEpoch + 1 + int64(i))
			s.poll(ownerE+strconv.Itoa(i), 2000)
		}
		s.set(modelEpoch + 9)
		s.wait(ownerB)
		s.release(ownerA, "", "")
		require.Contains(t, <-heard, ownerC)
		require.Equal(t, int64(0), s.release(ownerC, "", ""))
		require.Equal(t, "ask 0 "+ownerB+" "+s.keys.Key, <-heard)
		require.Len(t, s.state().queue, 17)
	})
}

// pollFor asks for permits on behalf of a client that does not listen, and asks again after ms. It returns after how many
// ms it is to, or "OK" if it has them.
func (s *semScripts) pollFor(session, n int, number, ticket string, ms int) (place string, asks any) {
	s.t.Helper()
	args := []string{number, entryOf(number, n), strconv.Itoa(keepsMS), "PUBLISH", s.channel, "latchkey:{", "}", s.counts, strconv.Itoa(barMS), ticket, strconv.Itoa(ms)}
	reply := runScript(s.c.engine(), script.SemAcquire, []string{s.key, s.total, s.note(session), s.kind, s.queue, s.calls, s.bar}, args...)
	if refusal, is := reply.([]any); is {
		require.Len(s.t, refusal, 6)
		return refusal[3].(string), refusal[5]
	}
	return "", reply
}

func TestSemScripts_poller(t *testing.T) {
	const later = 600_000
	s := newSemScripts(t)
	s.counts = "1"
	testredis.Hear(t, s.c.engine(), "latchkey:{"+otherSemClient+"}")
	s.set(1, "try")
	require.Equal(t, "OK", s.take(1, 1, s.number()))
	first, second := otherSemClient+":1 1", s.number()
	s.served(script.SemAcquire, 9, "1", first, strconv.Itoa(barMS), "")
	place, asks := s.pollFor(3, 1, second, "", later)
	require.Equal(t, int64(later), asks)
	third := otherSemClient + ":2 1"
	s.served(script.SemAcquire, 9, "2", third, strconv.Itoa(barMS), "")
	s.give(1, "release")
	require.Equal(t, []string{first}, s.state().calls)
	require.Equal(t, "OK", s.served(script.SemAcquire, 9, "1", first, strconv.Itoa(barMS), ""))
	s.give(1, "release")
	require.Equal(t, []string{third}, s.state().calls, "the poller does not ask soon")
	require.Equal(t, []string{entryOf(second, 1), "~" + semClient + ":" + second}, s.state().queue)
	require.Equal(t, "OK", s.served(script.SemAcquire, 9, "2", third, strconv.Itoa(barMS), ""))

	_, asks = s.pollFor(3, 1, second, place, 2000)
	require.LessOrEqual(t, asks, int64(100), "it is first")
	s.give(1, "release")
	require.Equal(t, []string{entryOf(second, 1)}, s.state().calls)
	_, asks = s.pollFor(3, 1, second, place, 2000)
	require.Equal(t, "OK", asks)
	s.free(0)
}

// A poller that gives up leaves nothing behind.
func TestSemScripts_poller_gives_up(t *testing.T) {
	s := newSemScripts(t)
	s.counts = "1"
	s.set(1, "try")
	require.Equal(t, "OK", s.take(1, 1, s.number()))
	number := s.number()
	s.pollFor(2, 1, number, "", 2000)
	require.Len(t, s.state().queue, 2)
	s.undo(2, 1, number)
	require.Empty(t, s.state().queue)
}

// The bar of a poller is up although nobody hears of it.
func TestSemScripts_bar_of_a_poller(t *testing.T) {
	s := newSemScripts(t)
	s.counts = "1"
	testredis.Hear(t, s.c.engine(), "latchkey:{"+otherSemClient+"}")
	s.set(3, "try")
	require.Equal(t, "OK", s.take(1, 3, s.number()))
	large := s.number()
	s.pollFor(2, 3, large, "", 2000)
	small := otherSemClient + ":1 1"
	s.served(script.SemAcquire, 9, "1", small, strconv.Itoa(barMS), "")
	s.give(1, "release")
	require.Empty(t, s.state().calls)
	s.give(2, "release")
	require.Equal(t, []string{entryOf(large, 3)}, s.state().calls)
}

const otherSemClient = "66666666-6666-4666-8666-666666666666"
