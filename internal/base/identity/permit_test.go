package identity_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/primitive/semaphore"
)

// The IDs of permits that are acquired together identify each other.
func TestGroupIDs(t *testing.T) {
	client, number := identity.NewClientID(), uint64(0)
	newIDs := func(n int) []string {
		number++
		return identity.NewPermitIDs(client, number, n)
	}
	for _, n := range []int{1, 2, 256, 257, semaphore.MaxAtOnce} {
		ids := newIDs(n)
		require.Len(t, ids, n)
		require.NoError(t, identity.CheckIDs(ids))
		seen := map[string]bool{}
		for i, id := range ids {
			require.False(t, seen[id])
			seen[id] = true
			if i < 300 || i == n-1 {
				require.Equal(t, ids, identity.GroupOf(id))
			}
		}
	}
	first, second := newIDs(1), newIDs(1)
	require.NotEqual(t, first, second)
	for _, id := range []string{"", "x", "00", "0000000000000000000000000000000", "zz000000000000000000000000000000"} {
		require.Empty(t, identity.GroupOf(id), id)
	}
}
