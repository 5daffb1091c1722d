package turns

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A client is short of permits when each stranger has had more, and knows of no strangers at first.
func TestShare(t *testing.T) {
	s, now := Share{}, time.Now()
	require.True(t, s.Concerns(true, now))
	require.Equal(t, Alone, s.Stands(now))
	s.With(2, now)
	require.Equal(t, Even, s.Stands(now), "what was before does not count")
	s.Concerns(true, now)
	require.Equal(t, Short, s.Stands(now))
	s.Count(1, 0)
	require.Equal(t, Even, s.Stands(now))
	s.Concerns(true, now)
	s.With(2, now)
	require.Equal(t, Even, s.Stands(now))
	s.Concerns(true, now)
	require.Equal(t, Short, s.Stands(now), "one for this client, three for two strangers")
	s.ForStrangers++
	require.False(t, s.Concerns(true, now))
	require.True(t, s.Concerns(true, now))
	for range 10 * longestShare {
		s.Concerns(true, now)
	}
	for range longestShare {
		s.Count(1, 0)
	}
	require.Equal(t, Even, s.Stands(now), "what was long ago counts less")
}
