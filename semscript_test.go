package latchkey

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// semScripts drives one semaphore by its bare scripts. It sends every call twice, and the second must change nothing,
// as after a lost reply.
type semScripts struct {
	t                   *testing.T
	c                   *Client
	key                 string
	total, reserve, ids string
	channel, kind       string
	numbers             int
}

const semClient = "55555555-5555-4555-8555-555555555555"

func newSemScripts(t *testing.T) *semScripts {
	t.Helper()
	c := newTestClient(t, Options{})
	s := c.NewSemaphore(uniqueName(t, c))
	return &semScripts{t: t, c: c, key: s.key, total: s.secondKey, reserve: s.reserve(), ids: idsKey(s.key), channel: s.channel, kind: s.kindKey()}
}

func (s *semScripts) note(session int) string {
	return "latchkey_op:{" + s.key + "}:" + semClient + ":" + strconv.Itoa(session)
}

// number returns the number of the next operation.
func (s *semScripts) number() string {
	s.numbers++
	return strconv.Itoa(s.numbers)
}

type semState struct {
	free, total, reserve string
	ids                  []string
}

func (s *semScripts) state() semState {
	s.t.Helper()
	get := func(key string) string {
		text, _ := s.c.rueidis.Do(context.Background(), s.c.rueidis.B().Get().Key(key).Build()).ToString()
		return text
	}
	ids, err := s.c.rueidis.Do(context.Background(), s.c.rueidis.B().Zrange().Key(s.ids).Min("0").Max("-1").Build()).AsStrSlice()
	require.NoError(s.t, err)
	return semState{get(s.key), get(s.total), get(s.reserve), ids}
}

// twice sends a call two times. Both replies are the same, unless a repetition of the call finds nothing.
func (s *semScripts) twice(cmd transport.Command, keys []string, args ...string) any {
	s.t.Helper()
	first := s.c.script(cmd, keys, args...)
	state := s.state()
	second := s.c.script(cmd, keys, args...)
	after := s.state()
	require.ElementsMatch(s.t, state.ids, after.ids, "the second time changes nothing")
	state.ids, after.ids = nil, nil
	require.Equal(s.t, state, after, "the second time changes nothing")
	if refusal, is := first.([]any); is && (cmd == semAcquire || cmd == fairsemAcquire) {
		require.Equal(s.t, refusal[1:], second.([]any)[1:], "the numbers of permits")
		first, second = s.pause(first), s.pause(second)
	}
	switch n, is := first.(int64); {
	case cmd == semUndo:
		require.Equal(s.t, int64(0), second, "it is undone")
	case cmd == fairsemLeave:
		require.Nil(s.t, second, "it is gone")
	case is && n > 0 && (cmd == fairsemAcquire || cmd == permitLease):
		require.InDelta(s.t, n, second, 4000, "a time that passes")
	default:
		require.Equal(s.t, first, second)
	}
	return first
}

// pause returns after what time to try again, of a reply that refuses permits.
func (s *semScripts) pause(refusal any) any {
	s.t.Helper()
	require.Len(s.t, refusal, 3)
	return refusal.([]any)[0]
}

func (s *semScripts) take(session, n int, number, keep string) any {
	s.t.Helper()
	return s.twice(semAcquire, []string{s.key, s.reserve, s.note(session), s.total, s.kind}, semClient, number, strconv.Itoa(n), keep, "PUBLISH", s.channel)
}

func (s *semScripts) undo(session int, number string) any {
	s.t.Helper()
	return s.twice(semUndo, []string{s.key, s.reserve, s.note(session), s.kind}, semClient, number, "PUBLISH", s.channel)
}

func (s *semScripts) give(n int, how string) any {
	s.t.Helper()
	return s.twice(semRelease, []string{s.key, s.total, s.note(1), s.kind}, s.number(), strconv.Itoa(n), how, "PUBLISH", s.channel)
}

func (s *semScripts) set(n int, change string) any {
	s.t.Helper()
	return s.twice(semSet, []string{s.key, s.total, s.note(1), s.kind}, s.number(), strconv.Itoa(n), "", change, "PUBLISH", s.channel)
}

func (s *semScripts) free(want int) {
	s.t.Helper()
	require.Equal(s.t, strconv.Itoa(want), s.state().free)
}

func requireCode(t *testing.T, reply any, code string) {
	t.Helper()
	err, is := reply.(error)
	require.True(t, is, "%v", reply)
	require.True(t, transport.HasCode(err, code), "%v", err)
}

func TestSemScripts_count_once(t *testing.T) {
	s := newSemScripts(t)
	requireCode(t, s.take(1, 1, s.number(), ""), "LATCHKEY_UNSET")
	require.Equal(t, int64(0), s.give(1, "release if set"))
	require.Equal(t, int64(1), s.set(5, ""))
	require.Equal(t, int64(0), s.set(9, ""))
	require.Equal(t, "OK", s.take(1, 3, s.number(), ""))
	s.free(2)
	require.Equal(t, int64(-1), s.take(1, 3, s.number(), ""))
	require.Equal(t, int64(1), s.set(7, "1"))
	s.free(4)
	require.Equal(t, int64(1), s.give(2, "release"))
	require.Equal(t, int64(1), s.give(-7, "add"))
	s.free(-1)
	require.Equal(t, "0", s.state().total)
	require.Equal(t, int64(1), s.give(maxCount, "add"))
	requireCode(t, s.give(5, "add"), "LATCHKEY_RANGE")
}

// An operation that was undone, or is past in its session, is not executed when it arrives late.
func TestSemScripts_late_copies(t *testing.T) {
	s := newSemScripts(t)
	s.set(5, "")
	taken, never, next := s.number(), s.number(), s.number()
	require.Equal(t, "OK", s.take(1, 2, taken, ""))
	require.Equal(t, int64(2), s.undo(1, taken))
	s.free(5)
	requireCode(t, s.take(1, 2, taken, ""), "LATCHKEY_PAST")
	require.Equal(t, int64(0), s.undo(1, never), "before it was executed")
	requireCode(t, s.take(1, 2, never, ""), "LATCHKEY_PAST")
	require.Equal(t, "OK", s.take(1, 1, next, ""))
	requireCode(t, s.take(1, 2, never, ""), "LATCHKEY_PAST")
	require.Equal(t, int64(0), s.undo(1, never), "an undo that is past")
	s.free(4)
}

func TestSemScripts_drain_and_its_undo(t *testing.T) {
	s := newSemScripts(t)
	drain := func(number string) any {
		return s.twice(semDrain, []string{s.key, s.note(1), s.kind}, number)
	}
	requireCode(t, drain(s.number()), "LATCHKEY_UNSET")
	s.set(5, "")
	number := s.number()
	require.Equal(t, int64(5), drain(number))
	s.free(0)
	require.Equal(t, int64(5), s.undo(1, number))
	s.free(5)
	require.Equal(t, "OK", s.take(1, 5, s.number(), ""))
	s.set(2, "1")
	number = s.number()
	require.Equal(t, int64(-3), drain(number), "a debt is paid")
	s.free(0)
	require.Equal(t, int64(-3), s.undo(1, number))
	s.free(-3)
}

// kept returns how many permits are kept for a waiter.
func (s *semScripts) kept() string {
	s.t.Helper()
	words := strings.Fields(s.state().reserve)
	if len(words) == 0 || number(s.t, words[3]) <= float64(time.Now().UnixMilli()) {
		return "0"
	}
	return words[1]
}

// elapse lets that many ms of a reservation pass.
func (s *semScripts) elapse(ms int) {
	s.t.Helper()
	words := strings.Fields(s.state().reserve)
	for _, i := range []int{2, 3} {
		words[i] = integer(number(s.t, words[i]) - float64(ms))
	}
	set := s.c.rueidis.B().Set().Key(s.reserve).Value(strings.Join(words, " ")).Px(time.Minute).Build()
	require.NoError(s.t, s.c.rueidis.Do(context.Background(), set).Error())
}

// Permits are kept for a waiter that has waited long; others get the rest.
func TestSemScripts_reservation(t *testing.T) {
	s := newSemScripts(t)
	s.set(9, "")
	require.Equal(t, "OK", s.take(4, 4, s.number(), ""))
	require.Equal(t, int64(-1), s.take(3, 10, s.number(), "5000"))
	require.Equal(t, "0", s.kept(), "there will never be so many")
	large := s.number()
	require.Equal(t, int64(-1), s.take(3, 7, large, "5000"))
	require.Equal(t, "7", s.kept())
	refused := s.c.script(semAcquire, []string{s.key, s.reserve, s.note(2), s.total, s.kind}, semClient, s.number(), "1", "5000", "PUBLISH", s.channel)
	require.InDelta(t, 5000, s.pause(refused), 2000, "until the reservation is over")
	s.give(3, "release")
	require.Equal(t, "OK", s.take(2, 1, s.number(), ""), "eight, of which seven are kept")
	require.Equal(t, "OK", s.take(3, 7, large, "5000"))
	require.Equal(t, "0", s.kept())
	s.free(0)
	s.elapse(10000)
	large = s.number()
	require.Equal(t, int64(-1), s.take(3, 7, large, "5000"))
	require.Equal(t, "7", s.kept())
	require.Equal(t, int64(0), s.undo(3, large))
	require.Equal(t, "0", s.kept(), "it was given up")
}

// After a bar comes a pause of the same length. Then others go first, and the next bar is twice as long.
func TestSemScripts_bars_and_pauses(t *testing.T) {
	s := newSemScripts(t)
	s.set(9, "")
	require.Equal(t, "OK", s.take(4, 4, s.number(), ""))
	asks := func(session int) func() string {
		number := s.number()
		return func() string {
			// Sent only once: a second copy is a sign of life.
			require.Equal(t, int64(-1), s.pause(s.c.script(semAcquire, []string{s.key, s.reserve, s.note(session), s.total, s.kind},
				semClient, number, strconv.Itoa(9-session), "5000", "PUBLISH", s.channel)))
			return s.kept()
		}
	}
	first, second := asks(1), asks(2)
	require.Equal(t, "8", first())
	require.Equal(t, "8", second(), "one at a time")
	s.elapse(5000)
	require.Equal(t, "0", first())
	require.Equal(t, "0", second(), "nobody has any kept now")
	s.elapse(5500)
	require.Equal(t, "0", first(), "others go first")
	require.Equal(t, "7", second())
	words := strings.Fields(s.state().reserve)
	require.Equal(t, "10000", words[4])
	s.elapse(4000)
	require.Equal(t, "7", second(), "a sign of life")
	s.elapse(5500)
	require.Equal(t, "0", first(), "it is dead: the pause is as long as it had them")
	s.elapse(10000)
	require.Equal(t, "8", first())
	require.Equal(t, "10000", strings.Fields(s.state().reserve)[4], "that bar was not too short")
}

// When the clock of the server is set back by an hour, a reservation does not last that hour. The waiter for which
// permits were kept still acquires them.
func TestSemScripts_clock_set_back(t *testing.T) {
	s := newSemScripts(t)
	s.set(9, "")
	require.Equal(t, "OK", s.take(4, 4, s.number(), ""))
	large := s.number()
	require.Equal(t, int64(-1), s.take(3, 7, large, "5000"))
	s.elapse(-3600000)
	require.Equal(t, "OK", s.take(2, 1, s.number(), ""), "nothing is kept from others for an hour")
	s.elapse(-3600000)
	s.give(5, "release")
	require.Equal(t, "OK", s.take(3, 7, large, "5000"))
	s.free(2)
}

func TestSemScripts_other_kinds_are_left_alone(t *testing.T) {
	p := newPermitScripts(t)
	s := p.semScripts
	s.c.rueidis.Do(context.Background(), s.c.rueidis.B().Hset().Key(s.key).FieldValue().FieldValue("a", "1").Build())
	for _, try := range []func() any{
		func() any { return s.take(1, 1, s.number(), "") },
		func() any { return s.give(1, "release") },
		func() any { return s.set(1, "") },
		func() any { return p.permit(p.entry(1), "30000") },
		func() any { return p.release("a") },
		func() any { return p.setPermits(1, "try") },
		func() any {
			return s.twice(semDelete, []string{s.key, s.note(1), s.kind, s.total}, s.number(), "PUBLISH", s.channel, "semaphore")
		},
	} {
		requireCode(t, try(), "WRONGTYPE")
	}
	require.Equal(t, map[string]string{"a": "1"}, s.c.hash(t, s.key))
}
