package keyspace_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/testredis"
	"github.com/latchkey-go/latchkey/lua"
)

// Lines of Lua that apply the rules of the fragments in lua/ to a key.
const (
	askString = `return isToken(redis.call('get', KEYS[1]), redis.call('pttl', KEYS[1])) and 1 or 0`
	askHash   = `return isForeign(KEYS[1]) and 0 or 1`
)

// askShape runs a line of Lua after the fragment that has the rule.
func askShape(t *testing.T, c *core.Parts, line, key string) bool {
	t.Helper()
	script := lua.Text("shared/shape_token") + line
	yes, err := testredis.Do(c, "EVAL", script, "1", key).AsBool()
	require.NoError(t, err)
	return yes
}

func store(t *testing.T, c *core.Parts, words ...string) {
	t.Helper()
	require.NoError(t, testredis.Do(c, words...).Error())
}

const anOwner = "11111111-1111-4111-8111-111111111111:7"

// stringShapes has strings, and whether they count as tokens with an expiry.
var stringShapes = map[string]bool{
	"": false, "x": false, "locked": false, "1234567": false, "somebody": true, "processing": true,
	"1": false, "-5": false, "1700000000": false, "1700000000123456789": false, "-1700000000123456789": false,
	"12345678901234567890123456789012": true, "192.168.100.200": false, "2026-01-01": false, "1700000000.25": false,
	"hello world": false, "two\nlines": false, "tab\there": false, "größe und maß": false, "größe_und_maß": true,
	`{"a":1,"b":2}`: false, `["abcdef"]`: false, `"11111111-1111-4111-8111-111111111111"`: true,
	anOwner: true, anOwner + ":write": true, "9f0c2f3a8b7a11eeb9620242ac120002": true, "q83vEjRWeJCrze8SNFZ4kA==": true,
	"ab+/EjRWeJCrze8SNFZ4kA==": true, "q83vEjRWeJCrze8SNFZ4kA": true, `q83vEjRWeJCrze8SNFZ4kA{"my": "host"}`: true,
	"q83vEjRWeJCrze8SNFZ4 A": false, strings.Repeat("x", 1024): true, strings.Repeat("x", 1025): false,
	"\x9c\x01 \xff\x00\n{\xe2\x28\xa1": true, "{\xff aaaaaaaa": true, "\xff" + strings.Repeat(" ", 63): true,
	"\xff" + strings.Repeat(" ", 64): false, "\xc0\x80 a b c d": true, "\xed\xa0\x80 a b c d": true,
	"\xf4\x90\x80\x80 a b c": true, "\U0010ffff a b c": false, "\xe0\x80\x80 a b c": true, "日本語 です ね": false, "日本語ですね": true,
	"end is cut \xe2\x82": true, "\x00\x00\x00\x00\x00\x00\x00\x00": true,
}

func TestShapeOfStrings(t *testing.T) {
	c := testredis.NewEngine(t)
	key := testredis.UniqueName(t, c)
	for value, want := range stringShapes {
		require.Equal(t, want, keyspace.IsToken(value, true), "%q", value)
		require.Equal(t, want && keyspace.OwnerShape.MatchString(value), keyspace.IsToken(value, false), "%q", value)
		agreeOnString(t, c, key, value)
	}
	for range 500 {
		agreeOnString(t, c, key, randomValue())
	}
}

// agreeOnString checks that the scripts and Inspect agree on a string.
func agreeOnString(t *testing.T, c *core.Parts, key, value string) {
	t.Helper()
	store(t, c, "SET", key, value)
	require.Equal(t, keyspace.IsToken(value, false), askShape(t, c, askString, key), "%q without an expiry", value)
	store(t, c, "SET", key, value, "PX", "60000")
	require.Equal(t, keyspace.IsToken(value, true), askShape(t, c, askString, key), "%q", value)
}

// randomValue returns bytes, many of which are edge cases of the rule.
func randomValue() string {
	edges := []byte("0-+. {[_a\x00\t\n\r\x0e\x7f\x80\x8f\x90\x9f\xa0\xbf\xc1\xc2\xdf\xe0\xed\xef\xf0\xf4\xf5\xff")
	value := make([]byte, rand.IntN(30))
	for i := range value {
		value[i] = edges[rand.IntN(len(edges))]
	}
	return string(value)
}

func TestShapeOfHashes(t *testing.T) {
	c := testredis.NewEngine(t)
	for i, each := range []struct {
		content []string
		want    keyspace.Kind
	}{
		{[]string{anOwner, "1"}, keyspace.KindLock},
		{[]string{anOwner, "12", anOwner + "@", "3", anOwner + "@part", "3"}, keyspace.KindLock},
		{[]string{strings.ToUpper("aaaaaaaa" + anOwner[8:]), "1"}, keyspace.KindLock},
		{[]string{"11111111-1111-4111-8111-111111111111:-9", "1"}, keyspace.KindLock},
		{[]string{anOwner + ":0f2a", "1"}, keyspace.KindLock},
		{[]string{"mode", "read", anOwner, "1"}, keyspace.KindRWLock},
		{[]string{"mode", "write", anOwner + ":write", "1", anOwner, "2"}, keyspace.KindRWLock},
		{[]string{"mode", "write", anOwner + ":write:0f2a", "1"}, keyspace.KindRWLock},
		{[]string{"mode", "read"}, keyspace.KindUnknown},
		{[]string{"mode", "express", anOwner, "1"}, keyspace.KindUnknown},
		{[]string{"mode", "read", "name", "1"}, keyspace.KindUnknown},
		{[]string{"name", "Ann", "email", "x"}, keyspace.KindUnknown},
		{[]string{anOwner, "Ann"}, keyspace.KindUnknown},
		{[]string{anOwner, "-1"}, keyspace.KindUnknown},
		{[]string{anOwner, "1", "name", "1"}, keyspace.KindUnknown},
		{[]string{anOwner + "x", "1"}, keyspace.KindUnknown},
		{[]string{"x" + anOwner, "1"}, keyspace.KindUnknown},
		{[]string{"11111111-1111-4111-8111-111111111111", "1"}, keyspace.KindUnknown},
		{[]string{"11111111-1111-4111-8111-111111111111:", "1"}, keyspace.KindUnknown},
		{[]string{"@", "1"}, keyspace.KindUnknown},
		{[]string{"a", "1", "b", "1", "c", "1", "d", "1", "e", "1", "f", "1"}, keyspace.KindUnknown},
	} {
		key := testredis.UniqueName(t, c) + strings.Repeat("x", i)
		store(t, c, append([]string{"HSET", key}, each.content...)...)
		kind, _ := keyspace.HashShape(each.content)
		require.Equal(t, each.want, kind, "%q", each.content)
		require.Equal(t, each.want != keyspace.KindUnknown, askShape(t, c, askHash, key), "%q", each.content)
	}
}
