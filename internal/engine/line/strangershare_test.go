package line

import (
	"testing"
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
