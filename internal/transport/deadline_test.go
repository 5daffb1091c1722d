package transport

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A context ends no later than a sixteenth of the patience after it should, whatever other calls
// have asked for. Calls with about the same time left share one.
func TestSharedDeadline(t *testing.T) {
	const patience = 3 * time.Second
	var s sharedDeadline
	made := map[any]bool{}
	began := time.Now()
	for range 1000 {
		for _, left := range []time.Duration{patience, patience / 6, time.Millisecond, patience, patience / 2} {
			at := time.Now().Add(left)
			c := s.context(at, patience)
			ends, _ := c.Deadline()
			require.False(t, ends.Before(at), "%v: %v early", left, at.Sub(ends))
			require.LessOrEqual(t, ends.Sub(at), patience/16, "%v", left)
			made[c] = true
		}
	}
	most := 5 * (1 + int(time.Since(began)/(patience/deadlineSteps)))
	require.LessOrEqual(t, len(made), 2*most, "they are shared")
}
