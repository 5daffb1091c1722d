package keyspace

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKeySlot_is_that_of_Redis(t *testing.T) {
	for key, slot := range map[string]uint16{"123456789": 12739, "foo": 12182, "{foo}bar": 12182, "foo{}{bar}": 8363, "": 0} {
		require.Equal(t, slot, Slot(key), key)
	}
}
