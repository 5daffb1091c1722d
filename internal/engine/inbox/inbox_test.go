package inbox

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/engine/pubsub"
)

// fakeRecipient records what it is told.
type fakeRecipient struct {
	wants bool // grants

	mu   sync.Mutex
	told []string
}

func (r *fakeRecipient) Granted(int64, string) bool { return r.hear("granted") && r.wants }
func (r *fakeRecipient) Signal()                    { r.hear("signal") }
func (r *fakeRecipient) Query()                     { r.hear("query") }
func (r *fakeRecipient) Reconnected()               { r.hear("reconnected") }

func (r *fakeRecipient) hear(what string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = append(r.told, what)
	return true
}

// heard returns what it was told since the last call.
func (r *fakeRecipient) heard() (told []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	told, r.told = r.told, nil
	return told
}

// testInbox is the inbox of the client "me", with a server that does what the test says.
type testInbox struct {
	*Inbox

	subscribed []*pubsub.Subscription
	returned   []string // what was given back, with its kind and its key
}

func newInbox(sharded, counts bool) *testInbox {
	b := &testInbox{}
	b.Inbox = New(Config{Client: "me", Sharded: sharded, Counts: counts, PollCeiling: time.Second,
		Subscribe: func(s *pubsub.Subscription) { b.subscribed = append(b.subscribed, s) }})
	for _, kind := range []string{"h", Calls} {
		b.Register(kind, func(key, name string) { b.returned = append(b.returned, kind+" "+name+" "+key) })
	}
	return b
}

// confirm is the server's confirmation of a subscription.
func (b *testInbox) confirm(s *pubsub.Subscription) {
	s.Confirmed.Store(true)
	s.To.Reconnected()
}

// Messages go to the recipient that is expected under their name. What nobody wants is given back.
func TestInbox_messages(t *testing.T) {
	const grant, call = "grant h a 7@8 key:1 with a space", "call 3 a key:1 with a space"
	for _, each := range []struct {
		message         string
		expected, wants bool
		heard, returned []string
	}{
		{grant, true, true, []string{"granted"}, nil},
		{grant, true, false, []string{"granted"}, []string{"h a key:1 with a space"}},
		{grant, false, false, nil, []string{"h a key:1 with a space"}},
		{"grant x a 7@8 key", false, false, nil, nil},
		{call, true, false, []string{"query"}, nil},
		{call, false, false, nil, []string{"call a 3 key:1 with a space"}},
		{"ask 0 a key", false, false, nil, nil},
		{"other", true, true, nil, nil},
	} {
		b, to := newInbox(false, true), &fakeRecipient{wants: each.wants}
		s := NewSlot("key:1 with a space", "a", to)
		if each.expected {
			b.Expect(&s)
		}
		b.Unclaimed("latchkey:{me}", each.message)
		require.Equal(t, each.heard, to.heard(), each.message)
		require.Equal(t, each.returned, b.returned, each.message)
		b.Unclaimed("latchkey:{you}", each.message)
		b.Unclaimed("app:me", each.message)
		require.Nil(t, to.heard(), "of another client, or of the application")
		b.Forget(&s)
		require.False(t, b.InUse())
	}
}

// A second message is as harmless as a late one: the recipient decides, and after its wait nobody
// is told.
func TestInbox_late_and_repeated_grants(t *testing.T) {
	b, to := newInbox(false, true), &fakeRecipient{wants: true}
	s := NewSlot("key", "a", to)
	require.True(t, b.Listen(&s))
	channel := b.subscribed[0].To
	channel.Message("grant h a 7@8 key")
	to.wants = false
	channel.Message("grant h a 7@8 key")
	require.Equal(t, []string{"granted", "granted"}, to.heard())
	require.Equal(t, []string{"h a key"}, b.returned)
	b.Forget(&s)
	channel.Message("grant h a 7@8 key")
	require.Empty(t, to.heard())
	require.Equal(t, []string{"h a key", "h a key"}, b.returned)
	b.Forget(&s)
	require.Zero(t, b.Expected())
}

// A recipient that is asked to query later does so.
func TestInbox_ask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, to := newInbox(false, true), &fakeRecipient{}
		s := NewSlot("key", "a", to)
		b.Expect(&s)
		b.Unclaimed("latchkey:{me}", "ask 50 a key")
		time.Sleep(49 * time.Millisecond)
		synctest.Wait()
		require.Empty(t, to.heard())
		time.Sleep(time.Millisecond)
		synctest.Wait()
		require.Equal(t, []string{"query"}, to.heard())
	})
}

// All recipients query when the subscription begins or ends. One that comes when it has begun must
// look once itself.
func TestInbox_subscription(t *testing.T) {
	b := newInbox(false, true)
	all := []*fakeRecipient{{}, {}, {}}
	first, second, third := NewSlot("key", "a", all[0]), NewSlot("other key", "b", all[1]), NewSlot("key", "c", all[2])
	b.ExpectIfKnown(&first)
	require.False(t, first.Expected(), "there is no channel")
	require.False(t, b.Listens(&first))
	require.True(t, b.Listen(&first))
	b.ExpectIfKnown(&second)
	require.True(t, second.Expected(), "the channel is for all keys")
	require.True(t, b.Listen(&second))
	require.Len(t, b.subscribed, 1)
	require.False(t, b.Listens(&second), "it is not confirmed")

	b.confirm(b.subscribed[0])
	require.True(t, b.Listen(&third))
	require.True(t, b.Listens(&third))
	for i, told := range []string{"reconnected", "reconnected", "signal"} {
		require.Equal(t, []string{told}, all[i].heard())
	}

	b.subscribed[0].Confirmed.Store(false)
	b.subscribed[0].Refused.Store(true)
	b.subscribed[0].To.Reconnected()
	for _, each := range all {
		require.Equal(t, []string{"reconnected"}, each.heard())
	}
	require.False(t, b.Listen(&first))
	require.Equal(t, "1000", b.PollText("key", 0))
}

// A channel retires when nobody has been expected for a while. The next recipient subscribes again.
func TestInbox_channel_retires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newInbox(false, true)
		s := NewSlot("key", "a", &fakeRecipient{})
		b.Listen(&s)
		b.confirm(b.subscribed[0])
		time.Sleep(time.Hour)
		retires := func() bool { return b.subscribed[0].To.Retire(time.Second) }
		require.False(t, retires(), "while somebody waits")
		require.True(t, b.Listens(&s))
		b.Forget(&s)
		require.True(t, b.InUse())
		require.Empty(t, b.PollText("key", 0))
		require.False(t, retires())
		time.Sleep(channelLinger)
		require.True(t, retires())
		require.False(t, b.InUse())
		require.True(t, b.MustPoll("key", pubsub.ConfirmRounds))
		b.Listen(&s)
		require.Len(t, b.subscribed, 2)
	})
}

// The channels depend on how messages travel.
func TestInbox_channels(t *testing.T) {
	for _, each := range []struct {
		sharded, counts bool
		args            []string
		channels        []string // for two keys
	}{
		{false, true, []string{"latchkey:{", "}", "1"}, []string{"latchkey:{me}"}},
		{false, false, []string{"latchkey:{", "}", "0"}, []string{"latchkey:{me}"}},
		{true, false, []string{"latchkey:{a}:", "", "1"}, []string{"latchkey:{a}:me", "latchkey:{b}:me"}},
	} {
		b := newInbox(each.sharded, each.counts)
		require.Equal(t, each.args, b.ChannelArgs(nil, "a"))
		for _, key := range []string{"a", "b"} {
			s := NewSlot(key, "name", &fakeRecipient{})
			b.Listen(&s)
		}
		var channels []string
		for _, s := range b.subscribed {
			channels = append(channels, s.Channel)
		}
		slices.Sort(channels)
		require.Equal(t, each.channels, channels)
	}
}
