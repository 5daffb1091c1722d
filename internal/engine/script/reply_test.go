package script_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/script"
)

func TestLeases_round_up(t *testing.T) {
	require.EqualValues(t, 1, script.Millis(time.Millisecond))
	require.EqualValues(t, 2, script.Millis(time.Millisecond+1))
	require.EqualValues(t, 1500, script.Millis(1500*time.Millisecond))
	require.Positive(t, script.Millis(lease.Longest))
}
