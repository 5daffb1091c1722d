package lease

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStamp_believes_the_clock_that_says_more(t *testing.T) {
	start := Stamp{Mono: 10, Wall: 100}
	require.EqualValues(t, 5, Stamp{Mono: 15, Wall: 100}.Since(start), "the wall clock was set back")
	require.EqualValues(t, 50, Stamp{Mono: 11, Wall: 150}.Since(start), "the machine slept")
}
