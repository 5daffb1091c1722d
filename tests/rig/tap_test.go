package rig_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/tests/rig"
)

const soon = 30 * time.Second

// through opens a client that reaches the server only through the tap. It does not retry commands,
// so that a lost reply is visible.
func through(t *testing.T, tap *rig.Tap, change ...func(*rueidis.ClientOption)) rueidis.Client {
	t.Helper()
	option := rig.Shared().Options(tap.Addr())
	option.DisableRetry = true
	option.PipelineMultiplex = -1
	for _, c := range change {
		c(&option)
	}
	client, err := rueidis.NewClient(option)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

func resp2(option *rueidis.ClientOption) { option.AlwaysRESP2 = true }

func do(client rueidis.Client, words ...string) rueidis.RedisResult {
	return client.Do(context.Background(), rig.Build(client, words...))
}

func TestTapPassesEverythingOn(t *testing.T) {
	for name, protocol := range map[string]func(*rueidis.ClientOption){
		"RESP3": func(*rueidis.ClientOption) {}, "RESP2": resp2,
	} {
		t.Run(name, func(t *testing.T) {
			tap := rig.NewTap(t, rig.Shared())
			client := through(t, tap, protocol)
			key := rig.Name(t)
			long := strings.Repeat("x\r\n", 50_000)

			require.NoError(t, do(client, "SET", key, long).Error())
			got, err := do(client, "GET", key).ToString()
			require.NoError(t, err)
			assert.Equal(t, long, got)

			require.NoError(t, do(client, "HSET", key+":h", "a", "1", "b", "").Error())
			fields, err := do(client, "HGETALL", key+":h").AsStrMap()
			require.NoError(t, err)
			assert.Equal(t, map[string]string{"a": "1", "b": ""}, fields)

			assert.True(t, rueidis.IsRedisNil(do(client, "GET", key+":missing").Error()))
			assert.ErrorContains(t, do(client, "GET", key+":h").Error(), "WRONGTYPE")
		})
	}
}

// The recorded commands are the client's, without those that set up the connection.
func TestTapRecordsCommandsInOrder(t *testing.T) {
	tap := rig.NewTap(t, rig.Shared())
	client := through(t, tap)
	do(client, "SET", "a", "1")
	do(client, "PING")
	do(client, "get", "a")

	commands := tap.Commands()
	require.Len(t, commands, 2)
	assert.Equal(t, "SET a 1", commands[0].String())
	assert.Equal(t, "GET a", commands[1].String())

	tap.Forget()
	assert.Empty(t, tap.Commands())
}

// A lost reply is lost after the command was executed, and it is exactly the n-th.
func TestTapLosesTheNthReply(t *testing.T) {
	for _, n := range []int{1, 2, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			tap := rig.NewTap(t, rig.Shared())
			client := through(t, tap)
			key := rig.Name(t)
			lost := tap.Lose(n, rig.Any, rig.Cut)

			for i := 1; i <= 6; i++ {
				err := do(client, "INCR", key).Error()
				assert.Equal(t, i == n, err != nil, "command %d: %v", i, err)
			}
			assert.Equal(t, "INCR", rig.Await(t, soon, "the loss", lost).Name())
			assert.Equal(t, int64(6), rig.NewAdmin(t, rig.Shared()).Int("GET", key))
		})
	}
}

func TestTapCountsOverAllConnections(t *testing.T) {
	tap := rig.NewTap(t, rig.Shared())
	first, second := through(t, tap), through(t, tap)
	key := rig.Name(t)
	tap.Lose(3, rig.Named("INCR"), rig.Cut)

	assert.NoError(t, do(first, "INCR", key).Error())
	assert.NoError(t, do(second, "INCR", key).Error())
	assert.NoError(t, do(second, "GET", key).Error(), "it does not match")
	assert.Error(t, do(first, "INCR", key).Error())
	assert.NoError(t, do(second, "INCR", key).Error())
}

func TestTapCutRequestIsNotExecuted(t *testing.T) {
	tap := rig.NewTap(t, rig.Shared())
	client := through(t, tap)
	key := rig.Name(t)
	lost := tap.Lose(1, rig.Any, rig.CutRequest)

	assert.Error(t, do(client, "INCR", key).Error())
	rig.Await(t, soon, "the loss", lost)
	assert.False(t, rig.NewAdmin(t, rig.Shared()).Exists(key))
}

// A muted connection stays open, and its commands are still executed.
func TestTapMute(t *testing.T) {
	tap := rig.NewTap(t, rig.Shared())
	client := through(t, tap)
	key := rig.Name(t)
	lost := tap.Lose(1, rig.Named("INCR"), rig.Mute)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- client.Do(ctx, client.B().Incr().Key(key).Build()).Error() }()
	rig.Await(t, soon, "the loss", lost)
	rig.Throughout(t, 100*time.Millisecond, "no answer", func() error { require.Empty(t, done); return nil })
	cancel()
	require.ErrorIs(t, rig.Await(t, soon, "the end of the call", done), context.Canceled)
	assert.Equal(t, int64(1), rig.NewAdmin(t, rig.Shared()).Int("GET", key))
}

func TestTapHoldCommand(t *testing.T) {
	tap := rig.NewTap(t, rig.Shared())
	held, other := through(t, tap), through(t, tap)
	admin := rig.NewAdmin(t, rig.Shared())
	key := rig.Name(t)
	hold := tap.HoldCommand(rig.Mentions(key))

	done := make(chan error, 1)
	go func() { done <- do(held, "INCR", key).Error() }()
	rig.Await(t, soon, "the command", hold.Arrived)
	assert.NoError(t, do(other, "SET", key+":other", "1").Error(), "another connection is not held up")
	assert.False(t, admin.Exists(key))

	hold.Release()
	assert.NoError(t, rig.Await(t, soon, "the reply", done))
	assert.True(t, admin.Exists(key))
}

func TestTapHoldReply(t *testing.T) {
	tap := rig.NewTap(t, rig.Shared())
	client := through(t, tap)
	key := rig.Name(t)
	hold := tap.HoldReply(rig.Mentions(key))

	done := make(chan error, 1)
	go func() { done <- do(client, "INCR", key).Error() }()
	rig.Await(t, soon, "the reply at the tap", hold.Arrived)
	assert.True(t, rig.NewAdmin(t, rig.Shared()).Exists(key), "it was executed")
	assert.Empty(t, done, "the reply is not delivered")

	hold.Release()
	assert.NoError(t, rig.Await(t, soon, "the reply", done))
}

func TestTapHoldReplies(t *testing.T) {
	tap := rig.NewTap(t, rig.Shared())
	key := rig.Name(t)
	hold := tap.HoldReplies(rig.Mentions(key))
	done := make(chan error, 2)
	for range 2 {
		client := through(t, tap)
		go func() { done <- do(client, "INCR", key).Error() }()
	}
	admin := rig.NewAdmin(t, rig.Shared())
	rig.Eventually(t, soon, "both are executed", func() error {
		if n := admin.Text("GET", key); n != "2" {
			return fmt.Errorf("%s executed", n)
		}
		return nil
	})
	assert.Empty(t, done, "no reply is delivered")

	hold.Release()
	for range 2 {
		assert.NoError(t, rig.Await(t, soon, "the reply", done))
	}
}

// The tap's own answers keep their place among the replies of a pipeline.
func TestTapRefuse(t *testing.T) {
	tap := rig.NewTap(t, rig.Shared())
	client := through(t, tap)
	key := rig.Name(t)
	stop := tap.Refuse(rig.Named("INCR"), "LOADING later")

	b := client.B
	replies := client.DoMulti(t.Context(),
		b().Incr().Key(key).Build(), b().Set().Key(key).Value("7").Build(),
		b().Incr().Key(key).Build(), b().Get().Key(key).Build(), b().Incr().Key(key).Build())
	for i, want := range []string{"LOADING later", "", "LOADING later", "", "LOADING later"} {
		if want == "" {
			assert.NoError(t, replies[i].Error())
			continue
		}
		assert.ErrorContains(t, replies[i].Error(), want)
	}
	got, _ := replies[3].ToString()
	assert.Equal(t, "7", got)

	stop()
	assert.NoError(t, do(client, "INCR", key).Error())
}

// subscribe opens a dedicated connection and returns the messages that it receives, and the error
// that ends it.
func subscribe(t *testing.T, client rueidis.Client, channel string) (messages <-chan string, lost <-chan error) {
	t.Helper()
	link, release := client.Dedicate()
	received := make(chan string, 100)
	lost = link.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(m rueidis.PubSubMessage) { received <- m.Message }})
	t.Cleanup(func() { link.Close(); release() })
	require.NoError(t, link.Do(t.Context(), rig.Shared().Subscribe(client, channel)).Error())
	return received, lost
}

// Only messages are dropped: subscriptions are still confirmed, and commands answered.
func TestTapDropsOnlyMessages(t *testing.T) {
	for name, protocol := range map[string]func(*rueidis.ClientOption){
		"RESP3": func(*rueidis.ClientOption) {}, "RESP2": resp2,
	} {
		t.Run(name, func(t *testing.T) {
			tap := rig.NewTap(t, rig.Shared())
			client := through(t, tap, protocol)
			admin := rig.NewAdmin(t, rig.Shared())
			channel := rig.Name(t)
			tap.DropMessages(true)

			messages, _ := subscribe(t, client, channel)
			assert.Equal(t, 1, tap.Subscribers())
			require.Equal(t, int64(1), admin.Publish(channel, "dropped"))
			rig.Eventually(t, soon, "the tap sees the message", func() error {
				if tap.DroppedMessages() == 0 {
					return fmt.Errorf("none")
				}
				return nil
			})
			assert.NoError(t, do(client, "SET", channel, "message").Error())

			tap.DropMessages(false)
			require.Equal(t, int64(1), admin.Publish(channel, "delivered"))
			assert.Equal(t, "delivered", rig.Await(t, soon, "a message", messages))
			assert.Equal(t, 1, tap.DroppedMessages())
		})
	}
}

func TestTapCutSubscribers(t *testing.T) {
	tap := rig.NewTap(t, rig.Shared())
	client := through(t, tap)
	_, lost := subscribe(t, client, rig.Name(t))
	require.Equal(t, 1, tap.CutSubscribers())
	assert.Error(t, rig.Await(t, soon, "the end of the link", lost))
	assert.NoError(t, do(client, "SET", "a", "1").Error(), "the connection for commands is untouched")
}

func TestTapFreezeSubscribers(t *testing.T) {
	tap := rig.NewTap(t, rig.Shared())
	client := through(t, tap)
	channel := rig.Name(t)
	messages, lost := subscribe(t, client, channel)
	require.Equal(t, 1, tap.FreezeSubscribers())

	require.Equal(t, int64(1), rig.NewAdmin(t, rig.Shared()).Publish(channel, "unheard"))
	assert.NoError(t, do(client, "SET", "a", "1").Error())
	rig.Throughout(t, 100*time.Millisecond, "silence and no error", func() error {
		if len(messages)+len(lost) > 0 {
			return fmt.Errorf("%d messages, %d errors", len(messages), len(lost))
		}
		return nil
	})
}

// The reply to a subscription is a notice, but it can still be held and lost like a reply. What
// follows it keeps its place.
func TestTapTreatsSubscriptions(t *testing.T) {
	for name, protocol := range map[string]func(*rueidis.ClientOption){
		"RESP3": func(*rueidis.ClientOption) {}, "RESP2": resp2,
	} {
		t.Run(name, func(t *testing.T) {
			tap := rig.NewTap(t, rig.Shared())
			client := through(t, tap, protocol)
			link, release := client.Dedicate()
			defer func() { link.Close(); release() }()
			hooked := link.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(rueidis.PubSubMessage) {}})
			do := func(c rueidis.Completed) <-chan error {
				done := make(chan error, 1)
				go func() { done <- link.Do(context.Background(), c).Error() }()
				return done
			}

			hold := tap.HoldReply(rig.Named("SUBSCRIBE"))
			done := do(client.B().Subscribe().Channel("a", "b").Build())
			rig.Await(t, soon, "the confirmation at the tap", hold.Arrived)
			assert.Empty(t, done)
			hold.Release()
			assert.NoError(t, rig.Await(t, soon, "the confirmation", done))

			assert.NoError(t, rig.Await(t, soon, "the end of all subscriptions", do(client.B().Unsubscribe().Build())))
			assert.NoError(t, rig.Await(t, soon, "another", do(client.B().Subscribe().Channel("c").Build())))

			lost := tap.Lose(1, rig.Named("SUBSCRIBE"), rig.Cut)
			assert.Error(t, rig.Await(t, soon, "the lost one", do(client.B().Subscribe().Channel("d").Build())))
			rig.Await(t, soon, "the loss", lost)
			rig.Await(t, soon, "the end of the link", hooked)
		})
	}
}

func TestTapStopEndsWhatItHolds(t *testing.T) {
	tap := rig.NewTap(t, rig.Shared())
	client := through(t, tap)
	hold := tap.HoldCommand(rig.Any)
	done := make(chan error, 1)
	go func() { done <- do(client, "SET", "a", "1").Error() }()
	rig.Await(t, soon, "the command", hold.Arrived)
	open := tap.Connections()
	assert.Positive(t, open)

	tap.Stop()
	assert.Error(t, rig.Await(t, soon, "the end of the call", done))
	assert.Zero(t, tap.Connections())
	assert.Equal(t, open, tap.Accepted())
}
