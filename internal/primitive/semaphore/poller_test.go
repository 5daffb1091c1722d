package semaphore_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/testredis"
)

// poll makes an attempt as a poller that polls again after ms, and returns the ms of the reply.

// pollFor asks for permits on behalf of a client that does not listen, and asks again after ms. It
// returns after how many ms it is to, or "OK" if it has them.
func (s *semScripts) pollFor(session, n int, number, ticket string, ms int) (place string, asks any) {
	s.t.Helper()
	args := []string{number, entryOf(number, n), strconv.Itoa(keepsMS), "PUBLISH", s.channel, "latchkey:{", "}", s.counts, strconv.Itoa(barMS), ticket, strconv.Itoa(ms)}
	reply := testredis.RunScript(s.c, script.SemAcquire, []string{s.key, s.total, s.note(session), s.kind, s.queue, s.calls, s.bar}, args...)
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
	testredis.Hear(t, s.c, "latchkey:{"+otherSemClient+"}")
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
	testredis.Hear(t, s.c, "latchkey:{"+otherSemClient+"}")
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
