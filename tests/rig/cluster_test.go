package rig_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/tests/rig"
)

// clientOf opens a client of a topology.
func clientOf(t *testing.T, url string) rueidis.Client {
	t.Helper()
	option := rueidis.MustParseURL(url)
	option.DisableCache = true
	option.ConnWriteTimeout = time.Second // it considers a silent server dead
	client, err := rueidis.NewClient(option)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

func incr(client rueidis.Client, key string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	return client.Do(ctx, client.B().Incr().Key(key).Build()).Error()
}

// Whatever happens to the master of a key, another node takes its place, and the cluster becomes
// whole again.
func TestClusterFailsOverAndHeals(t *testing.T) {
	rig.Long(t)
	t.Parallel()
	cluster := rig.NewCluster(t)
	client := clientOf(t, cluster.URL())
	works := func() error { return incr(client, "key") }
	rig.Eventually(t, soon, "it works", works)

	before, _ := cluster.Serving("key")
	cluster.Failover("key")
	after, _ := cluster.Serving("key")
	assert.NotEqual(t, before.Addr(), after.Addr())
	replica, _ := cluster.Replica("key")
	assert.Equal(t, before.Addr(), replica.Addr(), "the old master is the replica")
	rig.Eventually(t, soon, "the client follows", works)

	for what, strike := range map[string]func(string) *rig.Server{"kill": cluster.Kill, "pause": cluster.Pause} {
		struck := strike("key")
		assert.NotEqual(t, struck.Addr(), cluster.Successor("key", struck).Addr(), what)
		rig.Eventually(t, soon, "the client follows a "+what, works)
		cluster.Heal()
		replica, _ := cluster.Replica("key")
		assert.Equal(t, struck.Addr(), replica.Addr(), what)
	}
}

// The slot of a key is what the server says. A slot moves with its keys.
func TestClusterMovesASlotWithItsKeys(t *testing.T) {
	t.Parallel()
	cluster := rig.NewCluster(t)
	client := clientOf(t, cluster.URL())
	_, node := cluster.Serving("x")
	for _, key := range []string{"", "x", "123456789", "{a}b", "a{b}c", "{}a", "a{b", "a}b{c}", "{{a}}", "äöü"} {
		assert.EqualValues(t, node.Int("CLUSTER", "KEYSLOT", key), rig.Slot(key), "%q", key)
	}
	rig.Eventually(t, soon, "it works", func() error { return incr(client, "key") })
	before, admin := cluster.Serving("key")
	assert.True(t, admin.Exists("key"))

	cluster.MoveSlot("key")
	after, admin := cluster.Serving("key")
	assert.NotEqual(t, before.Addr(), after.Addr())
	assert.True(t, admin.Exists("key"))
	rig.Eventually(t, soon, "the client follows", func() error { return incr(client, "key") })
}
