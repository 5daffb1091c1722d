package lease_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/lease"
)

// Setting the wall clock forward does not end the time sooner.
func TestAtLeast_counts_by_the_monotonic_clock(t *testing.T) {
	start := lease.Stamp{Mono: time.Hour, Wall: time.Hour}
	least := lease.NewBound(time.Minute, start)
	require.Equal(t, 50*time.Second, least.KeptFor(lease.Stamp{Mono: time.Hour + 10*time.Second, Wall: 3 * time.Hour}))
	require.Zero(t, least.KeptFor(lease.Stamp{Mono: 3 * time.Hour, Wall: time.Hour}))
	require.Zero(t, (*lease.Bound)(nil).KeptFor(start))
}
