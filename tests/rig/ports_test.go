package rig

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// No two processes have a block at the same time.
func TestBlockOfPortsIsTakenOnce(t *testing.T) {
	_, err := freePort()
	require.NoError(t, err)
	assigned.Lock()
	defer assigned.Unlock()
	require.NotEmpty(t, assigned.blocks, "all blocks are in use")
	assert.False(t, lockBlock(assigned.blocks[0]))
}
