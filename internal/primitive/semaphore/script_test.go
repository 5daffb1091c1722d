package semaphore_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/primitive/semaphore"
	"github.com/latchkey-go/latchkey/internal/testredis"
	"github.com/latchkey-go/latchkey/internal/transport"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// semScripts drives one semaphore by its bare scripts. It sends every call twice, and the second
// must change nothing, as after a lost reply.
type semScripts struct {
	t                 *testing.T
	c                 *core.Parts
	key               string
	total, ids        string
	queue, calls, bar string
	channel, kind     string
	numbers           int
	counts            string // '1' if the server counts who listens: then nobody does
	left              int64  // ms until permits that are kept for others are free, as the last refusal says; -1 if it does not
}

const semClient = "55555555-5555-4555-8555-555555555555"

func newSemScripts(t *testing.T) *semScripts {
	t.Helper()
	c := testredis.NewEngine(t)
	s := semaphore.New(c, testredis.UniqueName(t, c))
	queue := s.Names.SemQueueKeys()
	return &semScripts{t: t, c: c, key: s.Names.Key, total: s.SecondKey, ids: keyspace.PermitIDsKey(s.Names.Key), channel: s.Names.Channel, kind: s.KindKey(), counts: "0",
		queue: queue[0], calls: queue[1], bar: queue[2]}
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
	free, total, bar  string
	ids, queue, calls []string
}

func (s *semScripts) state() semState {
	s.t.Helper()
	get := func(key string) string {
		text, _ := s.c.Rueidis.Do(context.Background(), s.c.Rueidis.B().Get().Key(key).Build()).ToString()
		return text
	}
	all := func(key string) []string {
		each, err := s.c.Rueidis.Do(context.Background(), s.c.Rueidis.B().Zrange().Key(key).Min("0").Max("-1").Build()).AsStrSlice()
		require.NoError(s.t, err)
		return each
	}
	return semState{get(s.key), get(s.total), get(s.bar), all(s.ids), all(s.queue), all(s.calls)}
}

// twice sends a call two times. Both replies are the same, unless a repetition of the call finds
// nothing.
func (s *semScripts) twice(cmd transport.Command, keys []string, args ...string) any {
	s.t.Helper()
	first := testredis.RunScript(s.c, cmd, keys, args...)
	state := s.state()
	second := testredis.RunScript(s.c, cmd, keys, args...)
	after := s.state()
	require.ElementsMatch(s.t, state.ids, after.ids, "the second time changes nothing")
	state.ids, after.ids = nil, nil
	require.Equal(s.t, state, after, "the second time changes nothing")
	if refusal, is := first.([]any); is {
		require.Equal(s.t, refusal[1:], second.([]any)[1:], "the numbers of permits, and the place")
		return first
	}
	switch n, is := first.(int64); {
	case cmd == script.SemUndo:
		require.Equal(s.t, int64(0), second, "it is undone")
	case cmd == script.SemRelease && is && n > 0:
		require.Equal(s.t, int64(1), second, "done; a second time it counts no strangers")
	case cmd == script.PermitLeave:
		require.Nil(s.t, second, "it is gone")
	case is && n > 0 && (cmd == script.PermitAcquire || cmd == script.PermitLease):
		require.InDelta(s.t, n, second, 4000, "a time that passes")
	default:
		require.Equal(s.t, first, second)
	}
	return first
}

// pause returns after what time to try again, if a reply refuses permits, and the reply otherwise.
func (s *semScripts) pause(reply any) any {
	s.t.Helper()
	if refusal, is := reply.([]any); is {
		require.Len(s.t, refusal, 3)
		return refusal[0]
	}
	return reply
}

// keepsMS is for how long, in ms, permits are kept for a client that is called, and barMS how long
// a bar is up at least.
const keepsMS, barMS = 5000, 5000

// served sends a call of a script that serves the queue.
func (s *semScripts) served(cmd transport.Command, session int, number, what string, more ...string) any {
	s.t.Helper()
	args := append([]string{number, what, strconv.Itoa(keepsMS), "PUBLISH", s.channel, "latchkey:{", "}", s.counts}, more...)
	return s.twice(cmd, []string{s.key, s.total, s.note(session), s.kind, s.queue, s.calls, s.bar}, args...)
}

// entryOf is the entry of an operation in the queue.
func entryOf(number string, n int) string { return semClient + ":" + number + " " + strconv.Itoa(n) }

// take makes a single attempt.
func (s *semScripts) take(session, n int, number string) any {
	s.t.Helper()
	return s.pause(s.served(script.SemAcquire, session, number, entryOf(number, n), "", ""))
}

// ask asks for permits, or waits for them. It returns the ticket, or "" if the operation has its
// permits.
func (s *semScripts) ask(session, n int, number, ticket string) string {
	s.t.Helper()
	reply := s.served(script.SemAcquire, session, number, entryOf(number, n), strconv.Itoa(barMS), ticket)
	if reply == "OK" {
		return ""
	}
	refusal, is := reply.([]any)
	require.True(s.t, is, "%v", reply)
	require.Len(s.t, refusal, 5)
	s.left = refusal[0].(int64)
	if refusal[4] == int64(semaphore.Aside) {
		return "aside"
	}
	return refusal[3].(string)
}

func (s *semScripts) undo(session, n int, number string) any {
	s.t.Helper()
	return s.served(script.SemUndo, session, number, entryOf(number, n), "waits")
}

func (s *semScripts) give(n int, how string) any {
	s.t.Helper()
	return s.served(script.SemRelease, 1, s.number(), strconv.Itoa(n), "waits", how)
}

func (s *semScripts) set(n int, how string) any {
	s.t.Helper()
	return s.served(script.SemSet, 1, s.number(), strconv.Itoa(n), "", how)
}

func (s *semScripts) free(want int) {
	s.t.Helper()
	require.Equal(s.t, strconv.Itoa(want), s.state().free)
}

func requireCode(t *testing.T, reply any, code string) {
	t.Helper()
	err, is := reply.(error)
	require.True(t, is, "%v", reply)
	require.True(t, outcome.HasCode(err, code), "%v", err)
}

func TestSemScripts_count_once(t *testing.T) {
	s := newSemScripts(t)
	requireCode(t, s.take(1, 1, s.number()), "LATCHKEY_UNSET")
	require.Equal(t, int64(0), s.give(1, "release if set"))
	require.Equal(t, int64(1), s.set(5, "try"))
	require.Equal(t, int64(0), s.set(9, "try"))
	require.Equal(t, "OK", s.take(1, 3, s.number()))
	s.free(2)
	require.Equal(t, int64(-1), s.take(1, 3, s.number()))
	require.Equal(t, int64(1), s.set(7, "set"))
	s.free(4)
	require.Equal(t, int64(1), s.give(2, "release"))
	require.Equal(t, int64(1), s.set(-7, "add"))
	s.free(-1)
	require.Equal(t, "0", s.state().total)
	require.Equal(t, int64(1), s.set(request.MaxCount, "add"))
	requireCode(t, s.set(5, "add"), "LATCHKEY_RANGE")
}

// An operation that was undone, or is past in its session, is not executed when it arrives late.
func TestSemScripts_late_copies(t *testing.T) {
	s := newSemScripts(t)
	s.set(5, "try")
	taken, never, next := s.number(), s.number(), s.number()
	require.Equal(t, "OK", s.take(1, 2, taken))
	require.Equal(t, int64(2), s.undo(1, 0, taken))
	s.free(5)
	requireCode(t, s.take(1, 2, taken), "LATCHKEY_PAST")
	require.Equal(t, int64(0), s.undo(1, 0, never), "before it was executed")
	requireCode(t, s.take(1, 2, never), "LATCHKEY_PAST")
	require.Equal(t, "OK", s.take(1, 1, next))
	requireCode(t, s.take(1, 2, never), "LATCHKEY_PAST")
	require.Equal(t, int64(0), s.undo(1, 0, never), "an undo that is past")
	s.free(4)
}

func TestSemScripts_drain_and_its_undo(t *testing.T) {
	s := newSemScripts(t)
	drain := func(number string) any {
		return s.twice(script.SemDrain, []string{s.key, s.note(1), s.kind}, number)
	}
	requireCode(t, drain(s.number()), "LATCHKEY_UNSET")
	s.set(5, "try")
	number := s.number()
	require.Equal(t, int64(5), drain(number))
	s.free(0)
	require.Equal(t, int64(5), s.undo(1, 0, number))
	s.free(5)
	require.Equal(t, "OK", s.take(1, 5, s.number()))
	s.set(2, "set")
	number = s.number()
	require.Equal(t, int64(-3), drain(number), "a debt is paid")
	s.free(0)
	require.Equal(t, int64(-3), s.undo(1, 0, number))
	s.free(-3)
}

// elapse lets that many ms of the time pass for which permits are kept.
func (s *semScripts) elapse(ms int) {
	s.t.Helper()
	for _, entry := range s.state().calls {
		add := s.c.Rueidis.B().Zincrby().Key(s.calls).Increment(-float64(ms)).Member(entry).Build()
		require.NoError(s.t, s.c.Rueidis.Do(context.Background(), add).Error())
	}
}

// A release calls the first of those that wait. Its permits are kept for it, in particular from
// those that come now.
func TestSemScripts_call(t *testing.T) {
	s := newSemScripts(t)
	s.set(2, "try")
	require.Equal(t, "OK", s.take(1, 2, s.number()))
	first, second, third := s.number(), s.number(), s.number()
	place := s.ask(2, 1, first, "")
	require.NotEmpty(t, place)
	require.NotEmpty(t, s.ask(3, 1, second, ""))
	require.Equal(t, int64(-1), s.left)
	require.Equal(t, []string{entryOf(first, 1), entryOf(second, 1)}, s.state().queue)
	s.give(1, "release")
	require.Equal(t, []string{entryOf(first, 1)}, s.state().calls)
	s.free(1)
	require.Equal(t, int64(-1), s.take(4, 1, third), "it is kept")
	require.NotEmpty(t, s.ask(3, 1, second, ""))
	require.InDelta(t, keepsMS, s.left, keepsMS-1, "until then the permit is kept for another")
	require.Empty(t, s.ask(2, 1, first, place))
	s.free(0)
	require.Empty(t, s.state().calls)
	require.Equal(t, []string{entryOf(second, 1)}, s.state().queue)
	s.give(2, "release")
	require.Equal(t, "OK", s.take(4, 1, third), "there is one more than is kept")
	require.Empty(t, s.ask(3, 1, second, ""))
	s.free(0)
}

// What is kept for a client that does not come goes to the next after a while. If it comes then, it
// has its place again.
func TestSemScripts_call_is_over(t *testing.T) {
	for _, ms := range []int{keepsMS + 1, -3600000} { // also if the clock of the server is set back
		s := newSemScripts(t)
		s.set(1, "try")
		require.Equal(t, "OK", s.take(1, 1, s.number()))
		first, second, third := s.number(), s.number(), s.number()
		place := s.ask(2, 1, first, "")
		s.ask(3, 1, second, "")
		s.give(1, "release")
		require.Equal(t, []string{entryOf(first, 1)}, s.state().calls)
		s.elapse(ms)
		require.Empty(t, s.ask(3, 1, second, ""))
		s.ask(4, 1, third, "")
		require.Equal(t, place, s.ask(2, 1, first, place))
		require.Equal(t, []string{entryOf(first, 1), entryOf(third, 1)}, s.state().queue)
	}
}

// An operation that gives up leaves the queue, and what was kept for it goes to the next.
func TestSemScripts_call_for_one_that_gives_up(t *testing.T) {
	s := newSemScripts(t)
	s.set(1, "try")
	require.Equal(t, "OK", s.take(1, 1, s.number()))
	first, second := s.number(), s.number()
	s.ask(2, 1, first, "")
	s.ask(3, 1, second, "")
	s.give(1, "release")
	require.Equal(t, int64(0), s.undo(2, 1, first))
	require.Equal(t, []string{entryOf(second, 1)}, s.state().calls)
	require.Empty(t, s.state().queue)
	require.Equal(t, int64(0), s.served(script.SemUndo, 1, "", entryOf(second, 1), "waits"), "as for a call that nobody expects")
	require.Empty(t, s.state().calls)
	s.free(1)
	require.Empty(t, s.ask(3, 1, second, ""), "its operation is not over")
}

// A late copy of the first request gives an entry a new ticket. With its own it gets its place
// back.
func TestSemScripts_ticket(t *testing.T) {
	s := newSemScripts(t)
	s.set(1, "try")
	require.Equal(t, "OK", s.take(1, 1, s.number()))
	first, second := s.number(), s.number()
	place := s.ask(2, 1, first, "")
	s.ask(3, 1, second, "")
	require.NoError(t, s.c.Rueidis.Do(context.Background(), s.c.Rueidis.B().Zrem().Key(s.queue).Member(entryOf(first, 1)).Build()).Error())
	require.NotEqual(t, place, s.ask(2, 1, first, ""))
	require.Equal(t, []string{entryOf(second, 1), entryOf(first, 1)}, s.state().queue)
	require.Equal(t, place, s.ask(2, 1, first, place))
	require.Equal(t, []string{entryOf(first, 1), entryOf(second, 1)}, s.state().queue)
}

// A client that has subscribed to one of its two channels, and not yet to the other, is no reason
// to count wrongly.
func TestSemScripts_half_subscribed(t *testing.T) {
	s := newSemScripts(t)
	testredis.Hear(t, s.c, "waits")
	s.set(1, "try")
	require.Equal(t, "OK", s.take(1, 1, s.number()))
	s.ask(2, 1, s.number(), "")
	require.Equal(t, int64(1), s.give(1, "release if set"), "it is done")
}

// Permits that nobody in the queue wants are announced: strangers do not poll.
func TestSemScripts_permits_are_left(t *testing.T) {
	s := newSemScripts(t)
	heard := testredis.Hear(t, s.c, s.channel)
	s.set(2, "try")
	require.Equal(t, "2", <-heard)
	require.Equal(t, "OK", s.take(1, 2, s.number()))
	s.ask(2, 1, s.number(), "")
	s.served(script.SemRelease, 1, s.number(), "2", "waits", "release", "1")
	select {
	case text := <-heard:
		require.Equal(t, "1", text)
	case <-time.After(20 * time.Second):
		t.Fatal("strangers learn of nothing")
	}
}

// The turn of strangers ends with a question of the first in the queue that is there.
func TestSemScripts_strangers_before_the_dead(t *testing.T) {
	s := newSemScripts(t)
	s.counts = "1"
	testredis.Hear(t, s.c, s.channel)
	s.set(1, "try")
	require.Equal(t, "OK", s.take(1, 1, s.number()))
	for range 100 {
		s.ask(2, 1, s.number(), "")
		s.give(1, "release")
		if slices.Contains(s.state().calls, "strangers 1") {
			require.Empty(t, s.state().queue, "nobody there is left")
			return
		}
		require.NoError(t, s.c.Rueidis.Do(t.Context(), s.c.Rueidis.B().Decr().Key(s.key).Build()).Error())
	}
	t.Fatal("strangers never had a turn")
}

// A large request has its place and its bar even before its client listens.
func TestSemScripts_large_request_does_not_listen_yet(t *testing.T) {
	s := newSemScripts(t)
	s.counts = "1"
	s.set(8, "try")
	require.Equal(t, "OK", s.take(1, 5, s.number()))
	large := s.number()
	require.NotEqual(t, "aside", s.ask(2, 5, large, ""))
	require.Equal(t, "5000 "+entryOf(large, 5), s.state().bar)
}

// The bar of a client that is gone holds up nobody.
func TestSemScripts_bar_of_the_dead(t *testing.T) {
	s := newSemScripts(t)
	s.set(8, "try")
	require.Equal(t, "OK", s.take(1, 5, s.number()))
	s.ask(2, 5, s.number(), "")
	require.Equal(t, int64(-1), s.take(3, 1, s.number()), "it is up")
	s.counts = "1"
	require.Equal(t, "OK", s.take(3, 1, s.number()))
	require.Empty(t, s.state().bar)
	require.Empty(t, s.state().queue)
}

// However many large requests are before it, a small one is served while no bar is up.
func TestSemScripts_behind_many_large_requests(t *testing.T) {
	s := newSemScripts(t)
	s.set(8, "try")
	require.Equal(t, "OK", s.take(1, 1, s.number()))
	for range 70 {
		s.ask(2, 8, s.number(), "")
	}
	s.lower()
	require.Equal(t, "OK", s.take(3, 1, s.number()))
}

// Strangers that listen have a turn at some releases, but not at those of a client that is short of
// permits.
func TestSemScripts_strangers(t *testing.T) {
	s := newSemScripts(t)
	testredis.Hear(t, s.c, s.channel)
	s.set(1, "try")
	require.Equal(t, "OK", s.take(1, 1, s.number()))
	waiter := s.number()
	place := s.ask(2, 1, waiter, "")
	theirs := 0
	for i := range 40 {
		isShort := strconv.Itoa(i % 2)
		require.Equal(t, int64(2), s.served(script.SemRelease, 1, s.number(), "1", "waits", "release", isShort))
		if calls := s.state().calls; slices.Contains(calls, "strangers 1") {
			theirs++
			require.Equal(t, "0", isShort)
			require.NoError(t, s.c.Rueidis.Do(t.Context(), s.c.Rueidis.B().Del().Key(s.calls).Build()).Error())
		}
		require.Empty(t, s.ask(2, 1, waiter, place))
		waiter = s.number()
		place = s.ask(2, 1, waiter, "")
	}
	require.NotZero(t, theirs)
}

// lower lets the time of a bar pass for which it is up.
func (s *semScripts) lower() {
	s.t.Helper()
	require.NoError(s.t, s.c.Rueidis.Do(context.Background(), s.c.Rueidis.B().Pexpire().Key(s.bar).Milliseconds(barMS).Build()).Error())
}

// A large request that is the first holds up the others for a while, and then is overtaken for as
// long.
func TestSemScripts_bar(t *testing.T) {
	s := newSemScripts(t)
	s.set(3, "try")
	require.Equal(t, "OK", s.take(1, 3, s.number()))
	large, small, other := s.number(), s.number(), s.number()
	place := s.ask(2, 2, large, "")
	require.Equal(t, "5000 "+entryOf(large, 2), s.state().bar)
	s.ask(3, 1, small, "")
	s.give(1, "release")
	require.Empty(t, s.state().calls)
	require.Equal(t, int64(-1), s.take(4, 1, other), "nobody overtakes")
	s.lower()
	require.Empty(t, s.ask(3, 1, small, ""))
	s.give(1, "release")
	require.Equal(t, "OK", s.take(4, 1, other), "nobody else can have it")
	require.Equal(t, place, s.ask(2, 2, large, place), "it has to wait for its next bar")
	s.give(2, "release")
	require.Empty(t, s.ask(2, 2, large, place))
	require.Empty(t, s.state().bar)
	require.Equal(t, "OK", s.take(1, 0, s.number()), "nobody waits")
}

// The longer a large request has waited, the longer its next bar: half of its time, up to a minute.
func TestSemScripts_bar_grows(t *testing.T) {
	for waited, want := range map[time.Duration]string{time.Second: "5000", 30 * time.Second: "15", time.Hour: "60000"} {
		s := newSemScripts(t)
		s.set(3, "try")
		require.Equal(t, "OK", s.take(1, 3, s.number()))
		s.ask(2, 2, s.number(), strconv.FormatInt(time.Now().Add(-waited).UnixMicro(), 10))
		require.True(t, strings.HasPrefix(s.state().bar, want), s.state().bar)
	}
}

// A request for more than there are in all does not hold up the others. With more permits it has
// its place again.
func TestSemScripts_more_than_there_are(t *testing.T) {
	s := newSemScripts(t)
	s.set(3, "try")
	require.Equal(t, "OK", s.take(1, 3, s.number()))
	large, small := s.number(), s.number()
	place := s.ask(2, 4, large, "")
	s.ask(3, 1, small, "")
	s.give(1, "release")
	require.Equal(t, []string{entryOf(small, 1)}, s.state().calls)
	require.Empty(t, s.ask(3, 1, small, ""))
	s.give(1, "release")
	require.Equal(t, "aside", s.ask(2, 4, large, place))
	require.Empty(t, s.state().queue)
	s.set(5, "set")
	require.Equal(t, place, s.ask(2, 4, large, place))
	s.give(1, "release")
	require.Empty(t, s.ask(2, 4, large, place))
}

func TestSemScripts_other_kinds_are_left_alone(t *testing.T) {
	p := newPermitScripts(t)
	s := p.semScripts
	s.c.Rueidis.Do(context.Background(), s.c.Rueidis.B().Hset().Key(s.key).FieldValue().FieldValue("a", "1").Build())
	for _, try := range []func() any{
		func() any { return s.take(1, 1, s.number()) },
		func() any { return s.undo(1, 1, s.number()) },
		func() any { return s.give(1, "release") },
		func() any { return s.set(1, "try") },
		func() any { return p.permit(p.entry(1), "30000") },
		func() any { return p.release("a") },
		func() any { return p.setPermits(1, "try") },
		func() any {
			return s.twice(script.SemExpire, []string{s.key, s.note(1), s.kind, s.total}, s.number(), "0", "semaphore", "PUBLISH", s.channel)
		},
	} {
		requireCode(t, try(), "WRONGTYPE")
	}
	require.Equal(t, map[string]string{"a": "1"}, testredis.HashOf(t, s.c, s.key))
}

// An acquisition is undone although a key beside the permits is another kind of object.
func TestSemScripts_other_kind_beside_the_permits(t *testing.T) {
	s := newSemScripts(t)
	s.set(3, "try")
	require.NoError(t, s.c.Rueidis.Do(t.Context(), s.c.Rueidis.B().Sadd().Key(s.bar).Member("x").Build()).Error())
	number := s.number()
	require.Equal(t, "OK", s.take(1, 2, number))
	s.free(1)
	require.Equal(t, int64(2), s.undo(1, 2, number))
	s.free(3)
}
