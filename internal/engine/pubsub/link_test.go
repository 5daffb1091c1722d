package pubsub

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A link is replaced when enough channels are not wanted any more, or long after one is not.
func TestLink_is_crowded(t *testing.T) {
	const often, seldom = 100 * time.Millisecond, time.Hour // beats
	for _, each := range []struct {
		name             string
		unwanted, wanted int
		age, beats       time.Duration
		crowded          bool
	}{
		{"all are wanted", 0, 3, time.Hour, often, false},
		{"one is not, for a short time", 1, 3, time.Second, seldom, false},
		{"one is not, for long", 1, 3, unwantedFor + time.Second, seldom, true},
		{"one is not, for five beats", 1, 3, time.Second, often, true},
		{"many are wanted, so it takes longer", 1, 20 * renewedPerSecond, unwantedFor + time.Second, seldom, false},
		{"many are wanted, and it took longer", 1, 20 * renewedPerSecond, unwantedFor + 21*time.Second, seldom, true},
		{"too many are not", unwantedMost, 3, 0, seldom, true},
		{"too many are not, but more are wanted", unwantedMost, unwantedMost + 1, 0, seldom, false},
		{"more are not wanted than are", 2 * unwantedMost, 2 * unwantedMost, 0, seldom, true},
	} {
		k := &link{openedAt: time.Now().Add(-each.age), unwanted: map[string]struct{}{}}
		for i := range each.unwanted {
			k.unwanted[strconv.Itoa(i)] = struct{}{}
		}
		assert.Equal(t, each.crowded, k.crowded(each.wanted, each.beats), each.name)
	}
}

// A message on a channel that is subscribed only because its link still is goes to unclaimed.
func TestLink_message_on_an_unwanted_channel(t *testing.T) {
	var heard []string
	n := New(nil, Reports{}, "a client", time.Second, false)
	n.Unclaimed = func(channel, text string) { heard = append(heard, channel, text) }
	newListener(n, "").onMessage(&link{}, "a channel", "a text")
	assert.Equal(t, []string{"a channel", "a text"}, heard)
}
