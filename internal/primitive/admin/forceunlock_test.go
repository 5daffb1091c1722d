package admin_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/inspect"
	"github.com/latchkey-go/latchkey/internal/primitive/admin"
	"github.com/latchkey-go/latchkey/internal/testredis"
)

// A forced release names the holder that Inspect found. Data of an application, or a lock of
// another kind, that has taken the place of the lock since then stays.
func TestForcedReleaseChecksTheKind(t *testing.T) {
	const owner = testredis.OwnerA
	found := inspect.Object{
		Kind:    keyspace.KindLock,
		Holders: []inspect.Holder{{Holder: identity.Holder{Owner: identity.Of(owner), Count: 1}}},
	}
	for _, content := range [][]string{
		{owner, "1", "name", "Ann"}, {owner, "Ann"}, {"mode", "read", owner, "1"}, {"name", "Ann"},
	} {
		c := testredis.NewEngine(t)
		names := c.Config.Names(testredis.UniqueName(t, c))
		require.NoError(t, names.Invalid)
		require.NoError(t, testredis.Do(c, append([]string{"HSET", names.Key}, content...)...).Error())
		before := testredis.HashOf(t, c, names.Key)
		for _, each := range admin.Evictions(c, names, found) {
			require.Nil(t, testredis.RunScript(c, each.Cmd, each.Keys, each.Args...), "%q", content)
		}
		require.Equal(t, before, testredis.HashOf(t, c, names.Key))
	}
}
