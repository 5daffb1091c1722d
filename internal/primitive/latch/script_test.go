package latch_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/primitive/latch"
	"github.com/latchkey-go/latchkey/internal/testredis"
	"github.com/latchkey-go/latchkey/internal/transport"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// latchScripts drives one latch by its bare scripts. It sends every call twice: the second must get
// the same answer and change nothing, as after a lost reply.
type latchScripts struct {
	t      *testing.T
	l      *latch.Latch
	number *int
}

func newLatchScripts(t *testing.T) latchScripts {
	t.Helper()
	c := testredis.NewEngine(t)
	return latchScripts{t, latchOf(c, testredis.UniqueName(t, c)), new(int)}
}

func latchOf(c *core.Parts, name string) *latch.Latch {
	l := latch.New(c, name)
	return &l
}

func (s latchScripts) do(words ...string) rueidis.RedisResult {
	return testredis.Do(s.l.Client, words...)
}

// dump returns everything that the server stores for the latch.
func (s latchScripts) dump() string {
	s.t.Helper()
	count, _ := s.do("GET", s.l.Names.Key).ToString()
	done, err := s.do("SMEMBERS", s.l.Done).AsStrSlice()
	require.NoError(s.t, err)
	return fmt.Sprint(count, testredis.HashOf(s.t, s.l.Client, s.l.State), done)
}

// op returns the number of a new operation, and the keys to send it with; the last is its record.
func (s latchScripts) op() (number string, keys []string) {
	*s.number++
	return strconv.Itoa(*s.number), []string{s.l.Names.Key, s.l.State, s.l.Done, "latchkey_op:{" + s.l.Names.Key + "}:test:1", keyspace.NumberKindKey(s.l.Names.Key)}
}

func (s latchScripts) twice(cmd transport.Command, keys []string, args ...string) any {
	s.t.Helper()
	first := withoutTime(testredis.RunScript(s.l.Client, cmd, keys, args...))
	state := s.dump()
	require.Equal(s.t, first, withoutTime(testredis.RunScript(s.l.Client, cmd, keys, args...)), "the same command, sent twice")
	require.Equal(s.t, state, s.dump(), "the second time changes nothing")
	return first
}

// withoutTime removes the part of a look that changes with time.
func withoutTime(reply any) any {
	if words, is := reply.([]any); is {
		return words[:3]
	}
	return reply
}

func (s latchScripts) set(last string, n int, ttl string) any {
	s.t.Helper()
	number, keys := s.op()
	return s.twice(script.LatchSet, keys, number, last, strconv.Itoa(n), ttl, "PUBLISH", s.l.Names.Channel)
}

func (s latchScripts) down(round string, n int, who string) any {
	s.t.Helper()
	number, keys := s.op()
	return s.twice(script.LatchCount, keys, number, round, strconv.Itoa(n), who, "PUBLISH", s.l.Names.Channel)
}

func (s latchScripts) remove(round string) any {
	s.t.Helper()
	number, keys := s.op()
	return s.twice(script.LatchDelete, keys, number, round, "PUBLISH", s.l.Names.Channel)
}

// look returns what the server says, and the round.
func (s latchScripts) look(round ...string) (what, which string) {
	s.t.Helper()
	reply := s.twice(script.LatchLook, []string{s.l.Names.Key, s.l.State, s.l.Done, keyspace.NumberKindKey(s.l.Names.Key)}, append(round, "", "")[:2]...)
	words, is := reply.([]any)
	require.True(s.t, is, "%v", reply)
	return words[0].(string), words[1].(string)
}

func (s latchScripts) is(want string, round ...string) string {
	s.t.Helper()
	what, which := s.look(round...)
	require.Equal(s.t, want, what)
	return which
}

// opened runs a whole round and returns its number.
func (s latchScripts) opened() string {
	s.t.Helper()
	_, last := s.look()
	require.Equal(s.t, int64(1), s.set(last, 1, ""))
	round := s.is("closed")
	require.Equal(s.t, int64(0), s.down(round, 1, ""))
	return round
}

func TestLatchScripts_a_round(t *testing.T) {
	s := newLatchScripts(t)
	require.Equal(t, "0", s.is("unset"))
	require.Equal(t, int64(-1), s.down("", 1, ""), "nobody has set it")
	require.Equal(t, int64(1), s.set("0", 3, ""))
	require.Equal(t, int64(0), s.set("0", 5, ""), "it is closed")
	round := s.is("closed")
	require.InDelta(t, time.Now().UnixMicro(), number(t, round), 60e6)
	require.Equal(t, int64(0), s.set(round, 5, ""))
	require.Equal(t, int64(2), s.down(round, 1, ""))
	require.Equal(t, int64(0), s.down(round, 7, ""), "more than is left")
	require.Equal(t, round, s.is("open"))
	require.Equal(t, int64(0), s.down(round, 1, ""), "harmless")
	require.Equal(t, int64(-2), testredis.PTTLOf(t, s.l.Client, s.l.Names.Key), "Redisson's key is gone")
	require.Equal(t, int64(-1), testredis.PTTLOf(t, s.l.Client, s.l.State), "who comes late passes")

	require.Equal(t, int64(1), s.set(round, 1, ""))
	next := s.is("closed")
	require.Greater(t, number(t, next), number(t, round))
	s.is("open", round)
	require.Equal(t, int64(0), s.set(round, 1, ""), "a copy that is late finds another round")
	require.Equal(t, int64(0), s.down(round, 1, ""), "so does a count")
	require.Equal(t, next, s.is("closed"))
}

func number(t *testing.T, round string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(round, 64)
	require.NoError(t, err)
	return n
}

// A copy that arrives after its session has moved on does nothing.
func TestLatchScripts_late_copies(t *testing.T) {
	s := newLatchScripts(t)
	require.Equal(t, int64(1), s.set("0", 9, ""))
	round := s.is("closed")
	old, keys := s.op()
	require.Equal(t, int64(8), s.down(round, 1, ""))
	before := s.dump()
	for cmd, args := range map[*transport.Command][]string{
		&script.LatchSet:    {old, round, "4", "", "PUBLISH", s.l.Names.Channel},
		&script.LatchCount:  {old, round, "1", "", "PUBLISH", s.l.Names.Channel},
		&script.LatchDelete: {old, round, "PUBLISH", s.l.Names.Channel},
	} {
		reply, is := testredis.RunScript(s.l.Client, *cmd, keys, args...).(error)
		require.True(t, is && outcome.HasCode(reply, "LATCHKEY_PAST"), "%v", reply)
	}
	require.Equal(t, before, s.dump())
}

func TestLatchScripts_participants_count_once_in_a_round(t *testing.T) {
	s := newLatchScripts(t)
	require.Equal(t, int64(1), s.set("0", 2, "60000"))
	round := s.is("closed")
	require.Equal(t, int64(1), s.down(round, 1, "a"))
	require.Equal(t, int64(1), s.down(round, 1, "a"), "another call of the same")
	require.InDelta(t, 660000, testredis.PTTLOf(t, s.l.Client, s.l.Done), 4000, "longer than the round")
	require.Equal(t, int64(0), s.down(round, 1, "b"))
	require.Equal(t, int64(-2), testredis.PTTLOf(t, s.l.Client, s.l.Done))
	require.Equal(t, int64(1), s.set(round, 2, ""))
	require.Equal(t, int64(0), s.down(round, 1, "b"), "late")
	round = s.is("closed")
	require.Equal(t, int64(1), s.down(round, 1, "b"))
	require.Equal(t, int64(1), s.remove(round))
	require.Equal(t, int64(-2), testredis.PTTLOf(t, s.l.Client, s.l.Done))
}

func TestLatchScripts_deletion(t *testing.T) {
	s := newLatchScripts(t)
	require.Equal(t, int64(0), s.remove("0"), "nothing is there")
	require.Equal(t, "[]", strings.TrimPrefix(s.dump(), "map[] "))
	require.Equal(t, int64(1), s.set("0", 2, ""))
	round := s.is("closed")
	require.Equal(t, int64(-1), s.remove("7"), "another round")
	require.Equal(t, int64(1), s.remove(round))
	require.Equal(t, int64(0), s.remove(round))
	require.Equal(t, int64(-2), testredis.PTTLOf(t, s.l.Client, s.l.Names.Key))
	require.InDelta(t, 600000, testredis.PTTLOf(t, s.l.Client, s.l.State), 4000, "awaiters find out")
	s.is("gone", round)
	require.Equal(t, int64(-1), s.down(round, 1, ""))
	require.Equal(t, round, s.is("unset"))

	require.Equal(t, int64(1), s.set(round, 1, ""))
	require.Equal(t, int64(-1), testredis.PTTLOf(t, s.l.Client, s.l.State))
	s.is("gone", round)
	second := s.is("closed")
	require.Equal(t, int64(0), s.down(second, 1, ""))
	require.Equal(t, int64(1), s.remove(second), "an open one is there, too")
	s.is("open", second)
	s.is("unset")
}

func TestLatchScripts_expiry(t *testing.T) {
	s := newLatchScripts(t)
	require.Equal(t, int64(1), s.set("0", 2, "60000"))
	round := s.is("closed")
	require.InDelta(t, 60000, testredis.PTTLOf(t, s.l.Client, s.l.Names.Key), 4000)
	require.InDelta(t, 660000, testredis.PTTLOf(t, s.l.Client, s.l.State), 4000)
	s.do("DEL", s.l.Names.Key)
	s.do("HSET", s.l.State, "until", "1000") // its time is over
	require.Equal(t, round, s.is("expired"))
	s.is("gone", round)
	require.Equal(t, int64(-1), s.down(round, 1, ""))
	require.Equal(t, int64(0), s.remove(round), "there is none")
	s.is("unset")
	s.is("gone", round)

	require.Equal(t, int64(1), s.set(round, 1, "60000"))
	require.Equal(t, int64(0), s.down("", 1, ""))
	require.InDelta(t, 660000, testredis.PTTLOf(t, s.l.Client, s.l.State), 4000)
	s.do("HSET", s.l.State, "until", "1000")
	s.is("open")
}

// A latch with a TTL expires on its own. The test moves the clock: with real time, an embedded
// server can delete a key shortly before its own TIME says so, and no real server does that.
func TestLatchScripts_time_passes(t *testing.T) {
	server := testredis.Run(t)
	now := time.Now()
	server.SetTime(now)
	c := testredis.NewEngineOf(t, server.URL())
	s := latchScripts{t, latchOf(c, testredis.UniqueName(t, c)), new(int)}

	require.Equal(t, int64(1), s.set("0", 1, "300"))
	server.SetTime(now.Add(299 * time.Millisecond))
	round := s.is("closed")
	server.SetTime(now.Add(301 * time.Millisecond))
	require.Equal(t, round, s.is("expired"))
	s.is("gone", round)
}

// The scripts understand what Redisson does with the bare key.
func TestLatchScripts_Redisson(t *testing.T) {
	s := newLatchScripts(t)
	s.do("SET", s.l.Names.Key, "2")
	first := s.is("closed")
	require.Equal(t, int64(1), s.down(first, 1, "a"))
	s.do("DEL", s.l.Names.Key) // counted down or deleted: nobody can say which
	require.Equal(t, first, s.is("open"))
	s.do("SET", s.l.Names.Key, "1")
	second := s.is("closed")
	require.NotEqual(t, first, second)
	s.is("open", first)
	require.Equal(t, int64(1), s.remove(second))
	s.do("SET", s.l.Names.Key, "1")
	require.Equal(t, int64(0), s.down("", 1, "a"), "a new round")
	require.Equal(t, int64(-1), testredis.PTTLOf(t, s.l.Client, s.l.State), "the deleted one no longer counts")

	s.do("DEL", s.l.State)
	s.do("SET", s.l.Names.Key, "0")
	zero := s.is("open")
	require.Equal(t, zero, s.is("open"), "not a round for each look")
	require.Equal(t, int64(1), s.set(zero, 3, ""))
	s.do("SET", s.l.Names.Key, "-1")
	s.is("open")
}

// Only a round that is known to have opened counts as open, for as long as the server remembers
// rounds.
func TestLatchScripts_rounds_that_nobody_knows(t *testing.T) {
	s := newLatchScripts(t)
	first := s.opened()
	lost := integer(number(t, first) + 1) // for example by a failover
	second := s.opened()
	s.is("open", first)
	s.is("gone", lost)
	s.is("gone", integer(number(t, first)-1))
	s.is("gone", integer(number(t, second)+1e9))
	for range 8 {
		s.opened()
	}
	s.is("open", first)
	s.do("DEL", s.l.State)
	s.is("gone", first)
	s.do("SET", s.l.Names.Key, "5")
	s.is("gone", first)
	s.is("closed")
}

func integer(n float64) string { return strconv.FormatFloat(n, 'f', 0, 64) }

// A caller that waits for a latch to be set awaits the first round since it began to wait.
func TestLatchScripts_the_round_that_follows(t *testing.T) {
	s := newLatchScripts(t)
	require.Equal(t, "0", s.is("unset", "0", "1"))
	first := s.opened()
	second := s.opened()
	require.Equal(t, first, s.is("open", "0", "1"))
	require.Equal(t, second, s.is("open", first, "1"))
	require.Equal(t, second, s.is("unset", second, "1"))
	require.Equal(t, int64(1), s.set(second, 1, ""))
	third := s.is("closed", second, "1")
	require.Equal(t, third, s.is("closed"))
	require.Equal(t, int64(1), s.remove(third))
	s.is("gone", second, "1")

	lost := integer(number(t, third) + 60e6)
	require.Equal(t, third, s.is("unset", lost, "1"), "what it knew is lost; what opened before that is not the next")
	require.Equal(t, int64(1), s.set(third, 1, ""))
	fourth := s.is("closed", third, "1")
	require.Equal(t, fourth, s.is("closed", lost, "1"))
}

// On an emptied server no script fails, and only a new round creates keys.
func TestLatchScripts_empty_server(t *testing.T) {
	s := newLatchScripts(t)
	round := integer(float64(time.Now().UnixMicro()))
	s.is("gone", round)
	require.Equal(t, int64(-1), s.down(round, 1, ""))
	require.Equal(t, int64(-1), s.down(round, 1, "a"))
	require.Equal(t, int64(-1), s.remove(round))
	require.Equal(t, "map[] []", s.dump())
	require.Equal(t, int64(1), s.set(round, 1, ""), "it is free")
}

func TestLatchScripts_other_kinds_are_left_alone(t *testing.T) {
	for _, occupy := range [][]string{{"HSET", "", "a", "1"}, {"SET", "", "a token"}, {"SET", "", "1.5"}, {"SET", "", "007"}, {"SET", "", "-0"}, {"RPUSH", "", "1"}} {
		t.Run(strings.Join(occupy, " "), func(t *testing.T) {
			s := newLatchScripts(t)
			occupy[1] = s.l.Names.Key
			require.NoError(t, s.do(occupy...).Error())
			for _, try := range []func() any{
				func() any { return s.set("0", 1, "") },
				func() any { return s.down("", 1, "") },
				func() any { return s.down("7", 1, "a") },
				func() any { return s.remove("0") },
				func() any {
					return s.twice(script.LatchLook, []string{s.l.Names.Key, s.l.State, s.l.Done, keyspace.NumberKindKey(s.l.Names.Key)}, "", "")
				},
			} {
				reply, is := try().(error)
				require.True(t, is && outcome.HasCode(reply, "WRONGTYPE"), "%v", reply)
			}
			require.Equal(t, int64(-2), testredis.PTTLOf(t, s.l.Client, s.l.State))
		})
	}
}

func TestLatch_channel(t *testing.T) {
	c := testredis.NewEngine(t)
	require.Equal(t, "redisson_countdownlatch__channel__{job}", latchOf(c, "job").Names.Channel)
	require.Equal(t, "redisson_countdownlatch__channel__{{t}job}", latchOf(c, "{t}job").Names.Channel)
	require.Equal(t, "latchkey_latch:{t}job", latchOf(c, "{t}job").State)
	require.Equal(t, "redisson_countdownlatch__channel__{job}", latch.Channel("job", true))
	require.Equal(t, keyspace.Slot("{t}job"), keyspace.Slot(latch.Channel("{t}job", true)))
}
