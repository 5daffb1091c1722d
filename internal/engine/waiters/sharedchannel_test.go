package waiters

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/turns"
)

// The first waiter of a client tries as soon as strangers release permits, unless the client has
// had as many as they, or the message is for strangers: then they go first.
func TestSharedChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := line.NewTable().Use(line.Key{})
		l := &List{byKey: map[string][]*Waiter{"x": {{Own: own, Grantable: true}}}}
		h := &sharedChannel{list: l, key: "x"}
		l.shared = map[string]*sharedChannel{"x": h}
		h.forStrangers()
		h.Message("1")
		require.False(t, own.TakeSignal(), "the message is for strangers")
		time.Sleep(turns.StrangerPause)
		synctest.Wait()
		require.True(t, own.TakeSignal(), "they may not want the permit")

		h.Message("1")
		require.True(t, own.TakeSignal(), "strangers have had more")

		l.hadPermits("x")
		l.hadPermits("x")
		h.Message("1")
		require.False(t, own.TakeSignal(), "this client has had as many")
		time.Sleep(turns.StrangerPause)
		synctest.Wait()
		require.True(t, own.TakeSignal(), "it never waits for longer than a pause")

		h.forStrangers()
		h.Reconnected()
		require.True(t, own.TakeSignal(), "messages may have been lost")
	})
}
