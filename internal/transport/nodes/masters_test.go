package nodes

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRangesOf(t *testing.T) {
	for want, slots := range map[string][]uint16{
		"": nil, " 0-0": {0}, " 0-2": {0, 1, 2}, " 1-2 5-5 16382-16383": {1, 2, 5, 16382, 16383},
	} {
		require.Equal(t, want, rangesOf(slots))
	}
}
