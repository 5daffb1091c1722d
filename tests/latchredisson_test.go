package tests

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// The test sends Redisson's commands and messages by hand.
func TestLatchOfRedisson(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	admin := rig.NewAdmin(t, server)
	tap := rig.NewTap(t, server)
	latch := connectVia(t, server, tap.Addr(), patient).NewCountDownLatch(name)
	javaSets := func(n string) {
		admin.Do("SET", name, n)
		admin.Publish(latchChannelOf(name), "1")
	}
	javaCounts := func() {
		if admin.Int("DECR", name) == 0 {
			admin.Do("DEL", name)
			admin.Publish(latchChannelOf(name), "0")
		}
	}
	first := awaitInBackground(within(t, soon), latch, latchkey.AwaitSet())
	awaitWaiter(t, admin, name)
	javaSets("2")
	rig.Eventually(t, soon, "the set is seen", func() error { _, err := latch.Count(t.Context()); return err })
	set, err := latch.TrySetCount(t.Context(), 5)
	require.NoError(t, err)
	assert.False(t, set)
	javaCounts()
	countDown(t, latch, 0)
	require.NoError(t, rig.Await(t, soon, "the awaiter", first))

	javaSets("1")
	tap.Forget()
	second := awaitInBackground(within(t, soon), latch)
	rig.Eventually(t, soon, "it has looked", func() error {
		if len(tap.Executed(rig.Mentions(name))) == 0 {
			return errors.New("not yet")
		}
		return nil
	})
	staysPending(t, second)
	javaCounts()
	require.NoError(t, rig.Await(t, soon, "the awaiter", second))

	setLatch(t, latch, 2) // set by this library, and both count
	javaCounts()
	assert.Equal(t, 1, left(t, latch))
	third := awaitInBackground(within(t, soon), latch)
	javaCounts()
	require.NoError(t, rig.Await(t, soon, "the awaiter", third))

	javaSets("0")
	assert.Zero(t, left(t, latch), "set to nothing")
	assert.NoError(t, latch.Await(within(t, soon)))
	setLatch(t, latch, 1)
	admin.Do("DEL", name) // its delete; the message wakes our awaiters, but none of its own
	admin.Publish(latchChannelOf(name), "1")
	assert.NoError(t, latch.Await(within(t, soon)))
}
