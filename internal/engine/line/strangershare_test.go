package line

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A client is short of permits when each stranger has had more, and knows of no strangers at first.
func TestStrangerShare(t *testing.T) {
	q := NewTable().Use(Key{})
	require.True(t, q.share.concerns(true, time.Now()))
	require.Equal(t, Alone, q.Standing())
	q.SharesWith(0)
	require.Equal(t, Alone, q.Standing())
	q.SharesWith(2)
	require.Equal(t, Even, q.Standing(), "what was before does not count")
	q.share.concerns(true, time.Now())
	require.Equal(t, Short, q.Standing())
	q.HadPermits()
	require.Equal(t, Even, q.Standing())
	q.share.concerns(true, time.Now())
	q.SharesWith(2)
	require.Equal(t, Even, q.Standing())
	q.share.concerns(true, time.Now())
	require.Equal(t, Short, q.Standing(), "one for this client, three for two strangers")
	Presence{queue: q}.Message("")
	require.False(t, q.share.concerns(true, time.Now()))
	require.True(t, q.share.concerns(true, time.Now()))
	for range 10 * longestShare {
		q.share.concerns(true, time.Now())
	}
	for range longestShare {
		q.HadPermits()
	}
	require.Equal(t, Even, q.Standing(), "what was long ago counts less")
}

// A client that has had enough lets strangers go first when one of them releases permits. A new
// subscription wakes its front at once.
func TestStrangerShare_of_a_message(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewTable().Use(Key{})
		q.SharesWith(1)
		q.HadPermits()
		q.Message("1")
		require.False(t, woken(q))
		time.Sleep(strangerPause)
		synctest.Wait()
		require.True(t, woken(q))
		q.Reconnected()
		require.True(t, woken(q))
	})
}
