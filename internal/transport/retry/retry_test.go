package retry

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/fault"
)

// Delay, where all wait loops rest, does not trust its callers.
func TestDelay_does_not_spin(t *testing.T) {
	for _, d := range []time.Duration{math.MinInt64, -1, 0, 1} {
		start := time.Now()
		require.NoError(t, Delay(context.Background(), nil, nil, d))
		require.GreaterOrEqual(t, time.Since(start), minPause)
	}
	closed := make(chan struct{})
	close(closed)
	require.NoError(t, Delay(context.Background(), nil, closed, time.Hour), "a hint")
	require.ErrorIs(t, Delay(context.Background(), closed, nil, time.Hour), fault.ErrClosed)
}
