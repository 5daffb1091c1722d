package once_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/primitive/once"
	"github.com/latchkey-go/latchkey/internal/testredis"
	"github.com/latchkey-go/latchkey/internal/transport"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

const ownerA, ownerB = testredis.OwnerA, testredis.OwnerB

// onceScripts drives one Once by its bare scripts.
type onceScripts struct {
	t    *testing.T
	c    *core.Parts
	keys []string
}

func newOnceScripts(t *testing.T) onceScripts {
	t.Helper()
	c := testredis.NewEngine(t)
	return onceScripts{t, c, []string{testredis.UniqueName(t, c)}}
}

// twice sends a command twice, as after a lost reply: the second must get the same answer, and
// change nothing.
func (s onceScripts) twice(cmd transport.Command, args ...string) any {
	s.t.Helper()
	first := testredis.RunScript(s.c, cmd, s.keys, args...)
	stored := testredis.HashOf(s.t, s.c, s.keys[0])
	require.Equal(s.t, first, testredis.RunScript(s.c, cmd, s.keys, args...), "the same command, sent twice")
	require.Equal(s.t, stored, testredis.HashOf(s.t, s.c, s.keys[0]), "the second time changes nothing")
	return first
}

func (s onceScripts) run(owner string) (token string) {
	s.t.Helper()
	token, is := s.twice(script.OnceAcquire, owner, "30000").(string)
	require.True(s.t, is, "%s does not run", owner)
	return token
}

func (s onceScripts) finish(owner, token, ttl, result string) any {
	s.t.Helper()
	return s.twice(script.OnceFinish, owner, once.Channel(s.keys[0]), "PUBLISH", token, ttl, result)
}

func (s onceScripts) ttl() int64 { return testredis.PTTLOf(s.t, s.c, s.keys[0]) }

// The keys of a Once, byte for byte.
func TestOnceScripts_what_is_stored(t *testing.T) {
	s := newOnceScripts(t)
	heard := testredis.Hear(t, s.c, "latchkey:{"+s.keys[0]+"}:once")
	token := s.run(ownerA)
	require.Regexp(t, `^\d{16}$`, token)
	require.Equal(t, map[string]string{"once": token, ownerA: "1"}, testredis.HashOf(t, s.c, s.keys[0]))
	require.InDelta(t, 30000, s.ttl(), 4000)
	require.Equal(t, int64(1), s.finish(ownerA, token, "60000", "a result"))
	require.Equal(t, map[string]string{"once": token, "result": "a result"}, testredis.HashOf(t, s.c, s.keys[0]))
	require.InDelta(t, 60000, s.ttl(), 4000)
	require.Equal(t, "0", <-heard)
}

func TestOnceScripts_the_success_is_the_reply_to_all(t *testing.T) {
	s := newOnceScripts(t)
	token := s.run(ownerA)
	refused := testredis.RunScript(s.c, script.OnceAcquire, s.keys, ownerB, "30000").([]any)
	require.InDelta(t, 30000, refused[0], 4000, "refused with what remains")
	require.Equal(t, ownerA, refused[1], "and who runs")
	require.Nil(t, s.twice(script.OnceLook), "not done")
	s.finish(ownerA, token, "", "")
	require.Equal(t, int64(-1), s.ttl(), "for ever")
	require.Equal(t, []any{""}, s.twice(script.OnceAcquire, ownerB, "30000"))
	require.Equal(t, []any{""}, s.twice(script.OnceAcquire, ownerA, "30000"))
	require.Equal(t, []any{token, ""}, s.twice(script.OnceLook))
}

func TestOnceScripts_only_the_owner_that_runs_stores_a_result(t *testing.T) {
	s := newOnceScripts(t)
	require.Nil(t, s.finish(ownerA, "1", "", "nothing runs"))
	first := s.run(ownerA)
	require.Nil(t, s.finish(ownerB, first, "", "of another owner"))
	require.Equal(t, int64(0), testredis.RunScript(s.c, script.OnceRelease, s.keys, ownerA, "channel", "PUBLISH"))
	require.Nil(t, s.twice(script.OnceRelease, ownerA, "channel", "PUBLISH"))
	second := s.run(ownerB)
	require.Greater(t, second, first)
	require.Nil(t, s.finish(ownerA, first, "", "late"))
	require.Equal(t, int64(0), s.finish(ownerB, second, "", "in time"))
	require.Nil(t, s.finish(ownerA, first, "", "late"))
	require.Equal(t, int64(0), s.finish(ownerB, second, "", "another"), "the first copy counts")
	require.Equal(t, []any{second, "in time"}, s.twice(script.OnceLook))
	require.Nil(t, s.twice(script.OnceRelease, ownerB, "channel", "PUBLISH"), "a late undo")
}

// The undo of a run that has stored its result ends a run that a late copy of its acquisition
// began.
func TestOnceScripts_late_acquisition(t *testing.T) {
	s := newOnceScripts(t)
	first := s.run(ownerA)
	s.finish(ownerA, first, "", "a result")
	require.Equal(t, int64(1), testredis.RunScript(s.c, script.OnceForget, s.keys, first))
	require.NotEqual(t, first, s.run(ownerA))
	require.Nil(t, testredis.RunScript(s.c, script.OnceFinish, s.keys, ownerA, once.Channel(s.keys[0]), "PUBLISH", first, "", "a result"))
	require.Empty(t, testredis.HashOf(t, s.c, s.keys[0]))
}

func TestOnceScripts_one_success_is_forgotten(t *testing.T) {
	s := newOnceScripts(t)
	first := s.run(ownerA)
	require.Equal(t, int64(0), s.twice(script.OnceForget, first), "it runs")
	s.finish(ownerA, first, "", "one")
	require.Equal(t, int64(1), testredis.RunScript(s.c, script.OnceForget, s.keys, first))
	require.Equal(t, int64(0), s.twice(script.OnceForget, first))
	second := s.run(ownerA)
	s.finish(ownerA, second, "", "two")
	require.Equal(t, int64(0), s.twice(script.OnceForget, first), "a late copy")
	require.Equal(t, []any{second, "two"}, s.twice(script.OnceLook))
}

func TestOnceScripts_a_renewal_and_a_repetition_never_shorten(t *testing.T) {
	s := newOnceScripts(t)
	token := s.run(ownerA)
	require.Equal(t, token, testredis.RunScript(s.c, script.OnceAcquire, s.keys, ownerA, "1000"))
	require.Greater(t, s.ttl(), int64(25000))
	require.Equal(t, token, testredis.RunScript(s.c, script.OnceAcquire, s.keys, ownerA, "60000"))
	require.Greater(t, s.ttl(), int64(55000))
	require.Equal(t, []any{int64(1)}, testredis.RunScript(s.c, script.Renew, s.keys, "hash", ownerA, "", "90000"))
	require.Greater(t, s.ttl(), int64(85000))
	s.finish(ownerA, token, "5000", "")
	require.Equal(t, []any{int64(0)}, testredis.RunScript(s.c, script.Renew, s.keys, "hash", ownerA, "", "90000"))
	require.Less(t, s.ttl(), int64(6000), "a late renewal changes nothing")
}

// Hashes of others look different, and none of the scripts changes them.
func TestOnceScripts_hashes_of_others(t *testing.T) {
	s := newOnceScripts(t)
	for _, fields := range [][]string{
		{"once", "1"}, {"once", "x", "result", "y"}, {"once", "1", "other", "y"}, {"once", "1", "result", "y", "more", "z"},
		{"result", "y", "more", "z"}, {ownerA, "1"}, {"once", "1", ownerA + "@x", "1"}, {"mode", "read", ownerA, "1"},
	} {
		require.NoError(t, testredis.Do(s.c, "DEL", s.keys[0]).Error())
		require.NoError(t, testredis.Do(s.c, append([]string{"HSET", s.keys[0]}, fields...)...).Error())
		before := testredis.HashOf(t, s.c, s.keys[0])
		for _, reply := range []any{s.wrong(script.OnceAcquire, ownerB, "30000"), s.wrong(script.OnceLook)} {
			err, is := reply.(error)
			require.True(t, is && outcome.HasCode(err, "WRONGTYPE"), "%v: %v", fields, reply)
		}
		s.finish(ownerB, "1", "", "")
		require.Equal(t, before, testredis.HashOf(t, s.c, s.keys[0]))
		var content []string
		for field, value := range before {
			content = append(content, field, value)
		}
		_, is := keyspace.OnceShape(content)
		require.False(t, is, "%v", fields)
	}
}

func (s onceScripts) wrong(cmd transport.Command, args ...string) any {
	return testredis.RunScript(s.c, cmd, s.keys, args...)
}

func TestOnceScripts_longest_result(t *testing.T) {
	s := newOnceScripts(t)
	result := strings.Repeat("\x00\xff", once.MaxResult/2)
	s.finish(ownerA, s.run(ownerA), "", result)
	require.Equal(t, []any{result}, s.twice(script.OnceAcquire, ownerB, "30000"))
}
