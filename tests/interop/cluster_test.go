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

// What is promised of holds, their ends and queues holds on a cluster as on one server.
func TestCluster(t *testing.T) {
	rig.Need(t, rig.Topology)
	where := onCluster(t, rig.NewCluster(t), true)
	pairings := func(options latchkey.Options, test func(*testing.T, *pairing)) func(*testing.T, place) {
		return func(t *testing.T, where place) {
			t.Helper()
			pairingsAt(t, where, allKinds, options, test)
		}
	}
	for what, test := range map[string]func(*testing.T, place){
		"GoHoldsAreRenewed":    goHoldsAreRenewed,
		"JavaHoldsAreRenewed":  javaHoldsAreRenewed,
		"KilledJVM":            killedJVM,
		"KilledGo":             killedGo,
		"MixedQueue":           mixedQueue,
		"MixedQueueWithDeadGo": deadGoIsPassed,
		"GoForces":             pairings(latchkey.Options{}, goForces),
		"JavaForces":           pairings(latchkey.Options{Lease: shortLease}, javaForces),
		"JavaDeletes":          pairings(latchkey.Options{Lease: shortLease}, javaDeletes),
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			test(t, where)
		})
	}
}
