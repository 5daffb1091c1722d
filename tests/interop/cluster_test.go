package interop

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// A cluster has the same guarantees as one server: the backend cluster runs all tests of this
// package there. The tests in this file are about clusters alone, and bring their own.

// A fleet that is configured to use classic messages in a cluster needs the same setting on this
// side.
func TestClusterClassic(t *testing.T) {
	rig.Long(t)
	t.Parallel()
	where := at(t, rig.NewCluster(t).Server())
	stage := where.stage(t, latest, latchkey.Options{Tuning: latchkey.Tuning{ClassicPubSub: true}},
		fields{"shardedSubscriptionMode": "OFF"})
	for _, kind := range []string{"lock", "fair", "write", "semaphore", "permit", "latch"} {
		t.Run(kind, func(t *testing.T) { stage.measure(t, allParticipants[kind], fewRounds) })
	}
}

// On a cluster, Redisson cannot use latches whose names have braces: its second key has them twice.
// This library can use such latches, but not together with Redisson.
func TestClusterLatchWithBraces(t *testing.T) {
	rig.Long(t)
	t.Parallel()
	where := at(t, rig.NewCluster(t).Server())
	latch := where.connect(t).NewCountDownLatch("{tag}" + rig.Name(t))
	t.Run("all", func(t *testing.T) {
		eachVersion(t, func(t *testing.T, version string) {
			a := where.java(t, version).on("main").try("latch.trySet", fields{"name": latch.Name(), "n": 1})
			assert.Contains(t, a.Message, "same slot", "Redisson has learned it")
		})
	})
	_, err := latch.TrySetCount(within(t, soon), 1)
	require.NoError(t, err)
	_, err = latch.CountDown(within(t, soon))
	require.NoError(t, err)
}
