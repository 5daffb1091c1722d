package tests

import (
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

func TestCheck_of_a_good_server_leaves_nothing(t *testing.T) {
	server := rig.Shared()
	client := connect(t, server)
	require.NoError(t, client.Check(within(t, soon)))
	require.NoError(t, free(rig.NewAdmin(t, server), "latchkey:check:"+client.ID())())
}

func TestCheck_reports_everything_that_is_missing(t *testing.T) {
	rig.Need(t, rig.Settings)
	server := rig.Fresh(t)
	admin := rig.NewAdmin(t, server)
	admin.Do("ACL", "SETUSER", "narrow", "on", "nopass", "~*", "resetchannels", "+@all")
	admin.Do("CONFIG", "SET", "maxmemory", "100mb")
	admin.Do("CONFIG", "SET", "maxmemory-policy", "volatile-ttl")
	option := server.Options(server.Addr())
	option.Username, option.Password = "narrow", "any"
	client, closeAll, err := borrow(option, latchkey.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, closeAll(within(t, soon))) })

	err = client.Check(within(t, soon))
	require.ErrorContains(t, err, "volatile-ttl")
	require.ErrorContains(t, err, "waiters poll")
	var refusal *rueidis.RedisError
	require.ErrorAs(t, err, &refusal)
	require.ErrorContains(t, refusal, "NOPERM")
}

func TestCheck_reports_missing_rights_on_keys(t *testing.T) {
	rig.Need(t, rig.Settings)
	server := rig.Fresh(t)
	rig.NewAdmin(t, server).Do("ACL", "SETUSER", "narrow", "on", "nopass", "~other:*", "&*", "+@all")
	option := server.Options(server.Addr())
	option.Username, option.Password = "narrow", "any"
	client, closeAll, err := borrow(option, latchkey.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, closeAll(within(t, soon))) })
	require.ErrorContains(t, client.Check(within(t, soon)), "NOPERM")
}
