package turns

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A lock is passed on until the turn is over, the strangers have had enough of it, or the program
// knows the owner.
func TestTurn(t *testing.T) {
	var turn Turn
	require.False(t, turn.Lasts(0), "it has not begun")
	turn.Begin(time.Hour, time.Second, 1)
	require.Equal(t, time.Hour, turn.Began(time.Second))
	require.True(t, turn.Lasts(time.Hour) && turn.MayPass())
	require.False(t, turn.Passed)
	turn.Pass()
	require.True(t, turn.Passed)
	require.False(t, turn.MayPass())
	require.False(t, turn.Lasts(time.Hour+time.Second))
	turn.Shown = true
	require.False(t, turn.Lasts(time.Hour))
	require.Zero(t, turn.Open())
	turn.LeaveOpen(50 * time.Millisecond)
	require.Equal(t, 50*time.Millisecond, turn.Open())
}
