package interop

import (
	"testing"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// clusterKinds are the primitives that are tried on a cluster.
var clusterKinds = []string{"lock", "fair", "semaphore", "latch", "permit", "write"}

// On a cluster both sides use sharded messages by themselves, since its servers know
// them.
func TestClusterWakeUp(t *testing.T) {
	rig.Need(t, rig.Topology)
	cluster := rig.NewCluster(t)
	t.Run("all", func(t *testing.T) {
		eachVersion(t, func(t *testing.T, version string) {
			stage := onCluster(t, cluster, true).stage(t, version, latchkey.Options{}, nil)
			for _, kind := range clusterKinds {
				t.Run(kind, func(t *testing.T) { stage.measure(t, plays[kind], wakeRounds) })
			}
		})
	})
}

// A fleet that is told to use classic messages needs the same on this side.
func TestClusterClassic(t *testing.T) {
	rig.Need(t, rig.Topology)
	where := onCluster(t, rig.NewCluster(t), false)
	stage := where.stage(t, latest, latchkey.Options{ShardedPubSub: latchkey.ShardedOff},
		fields{"shardedSubscriptionMode": "OFF"})
	for _, kind := range clusterKinds {
		t.Run(kind, func(t *testing.T) { stage.measure(t, plays[kind], wakeRounds) })
	}
}

// Exclusion on a cluster.
func TestClusterExclusion(t *testing.T) {
	rig.Need(t, rig.Topology)
	where := onCluster(t, rig.NewCluster(t), true)
	for _, kind := range []string{"lock", "fair", "semaphore", "latch"} {
		t.Run(kind, func(t *testing.T) { newArena(t, where, kind).hold() })
	}
}
