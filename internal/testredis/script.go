package testredis

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// Owners and guests in the tests of scripts. A and A2 are of one client, B and C of another.
const (
	OwnerA  = "11111111-1111-4111-8111-111111111111:7"
	OwnerA2 = "11111111-1111-4111-8111-111111111111:8"
	OwnerB  = "22222222-2222-4222-8222-222222222222:9"
	OwnerC  = "22222222-2222-4222-8222-222222222222:10"
	Guest1  = "33333333-3333-4333-8333-333333333333"
	Guest2  = "44444444-4444-4444-8444-444444444444"
)

// RunScript runs a script once and returns the reply as a Go value: nil, an int64, a string, a
// []any or an error.
func RunScript(c *core.Parts, cmd transport.Command, keys []string, args ...string) any {
	reply := cmd.Send(context.Background(), c.Rueidis, keys, args)
	if err := reply.Error(); err != nil {
		if rueidis.IsRedisNil(err) {
			return nil
		}
		return err
	}
	value, err := reply.ToAny()
	if err != nil {
		return err
	}
	return value
}

// Do executes a command.
func Do(c *core.Parts, words ...string) rueidis.RedisResult {
	return c.Rueidis.Do(context.Background(), c.Rueidis.B().Arbitrary(words...).Build())
}

// HashOf returns the fields of a hash, as a lock is.
func HashOf(t testing.TB, c *core.Parts, key string) map[string]string {
	t.Helper()
	fields, err := Do(c, "HGETALL", key).AsStrMap()
	if err != nil {
		t.Fatal(err)
	}
	return fields
}

// PTTLOf returns the remaining time of a key in ms, as PTTL does.
func PTTLOf(t testing.TB, c *core.Parts, key string) int64 {
	t.Helper()
	ms, err := Do(c, "PTTL", key).AsInt64()
	if err != nil {
		t.Fatal(err)
	}
	return ms
}

// Unstamped returns the message of a grant without the times in it.
func Unstamped(message string) string {
	words := strings.Fields(message)
	for i := range words {
		words[i], _, _ = strings.Cut(words[i], "@")
	}
	return strings.Join(words, " ")
}

// Hear subscribes to a channel and returns the messages that are published on it.
func Hear(t testing.TB, c *core.Parts, channel string) <-chan string {
	t.Helper()
	heard := make(chan string, 100)
	link, release := c.Rueidis.Dedicate()
	t.Cleanup(release)
	link.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(m rueidis.PubSubMessage) { heard <- m.Message }})
	if err := link.Do(t.Context(), link.B().Subscribe().Channel(channel).Build()).Error(); err != nil {
		t.Fatal(err)
	}
	return heard
}
