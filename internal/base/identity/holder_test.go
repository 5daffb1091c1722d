package identity_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/identity"
)

// Each form of a holder in Redis parses, and encodes to the same text again.
func TestHolders_that_are_kept(t *testing.T) {
	const anOwner = "11111111-1111-4111-8111-111111111111:7"
	owner := identity.Of(anOwner)
	for text, want := range map[string]identity.Holder{
		anOwner:                 {Owner: owner, Count: 1},
		anOwner + ":kept":       {Owner: owner, Count: 1, Kept: true},
		anOwner + ":write":      {Owner: owner, Count: 1, Write: true},
		anOwner + ":kept:write": {Owner: owner, Count: 1, Write: true, Kept: true},
		"a token of mine:kept":  {Owner: identity.Of("a token of mine:kept"), Count: 1},
	} {
		h := identity.ReadHolder(text, 1, strings.HasSuffix(text, ":write"))
		require.Equal(t, want, h)
		require.Equal(t, text, h.Field())
	}
}
