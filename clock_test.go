package latchkey

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStamp_believes_the_clock_that_says_more(t *testing.T) {
	start := stamp{mono: 10, wall: 100}
	require.EqualValues(t, 5, stamp{mono: 15, wall: 100}.since(start), "the wall clock was set back")
	require.EqualValues(t, 50, stamp{mono: 11, wall: 150}.since(start), "the machine slept")
}
