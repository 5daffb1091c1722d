package latchkey

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A client is short of permits when each stranger has had more, and knows of no strangers at first.
func TestStrangerShare(t *testing.T) {
	q := newWaitQueues().use(lineKey{})
	require.True(t, q.share.concerns(true, time.Now()))
	require.Equal(t, alone, q.standing())
	q.sharesWith(0)
	require.Equal(t, alone, q.standing())
	q.sharesWith(2)
	require.Equal(t, even, q.standing(), "what was before does not count")
	q.share.concerns(true, time.Now())
	require.Equal(t, short, q.standing())
	q.hadPermits()
	require.Equal(t, even, q.standing())
	q.share.concerns(true, time.Now())
	q.sharesWith(2)
	require.Equal(t, even, q.standing())
	q.share.concerns(true, time.Now())
	require.Equal(t, short, q.standing(), "one for this client, three for two strangers")
	q.leaveNextToStrangers()
	require.False(t, q.share.concerns(true, time.Now()))
	require.True(t, q.share.concerns(true, time.Now()))
	for range 10 * longestShare {
		q.share.concerns(true, time.Now())
	}
	for range longestShare {
		q.hadPermits()
	}
	require.Equal(t, even, q.standing(), "what was long ago counts less")
}
