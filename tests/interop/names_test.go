package interop

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// fewRounds are enough to see that both sides mean the same.
const fewRounds = 5

// A name mapper of Redisson that adds a prefix is Options.KeyPrefix.
func TestNameMapper(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Stats, rig.Single)
	eachVersion(t, func(t *testing.T, version string) {
		where := onServer(t)
		stage := where.stage(t, version, latchkey.Options{KeyPrefix: "app:"}, fields{"nameMapper": "app:"})
		for kind, play := range plays {
			if kind == "fair" && before(t, version, 3, 52) {
				continue // see TestQueueIsNotMapped
			}
			t.Run(kind, func(t *testing.T) { stage.measure(t, play, fewRounds) })
		}
		name := rig.Name(t)
		stage.java.on("main").do("lock.lock", fields{"kind": "lock", "name": name})
		assert.True(t, rig.NewAdmin(t, rig.Shared()).Exists("app:"+name))
		stage.java.on("main").do("lock.unlock", fields{"kind": "lock", "name": name})
	})
}

// Redisson before 3.52.0 maps the name of a fair lock, and not those of its queue and its
// deadlines.
func TestQueueIsNotMapped(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Stats, rig.Single)
	eachVersion(t, func(t *testing.T, version string) {
		where, name := onServer(t), rig.Name(t)
		admin, j := rig.NewAdmin(t, rig.Shared()), where.java(t, version, fields{"nameMapper": "app:"})
		f := fields{"kind": "fair", "name": name}
		j.on("holder").do("lock.lock", f)
		waiting := j.on("waiter").start("lock.lock", f)
		listening(t, where.ears, name)
		assert.True(t, admin.Exists("app:"+name))
		mapped := !before(t, version, 3, 52)
		assert.Equal(t, mapped, admin.Exists("redisson_lock_queue:{app:"+name+"}"))
		assert.Equal(t, !mapped, admin.Exists("redisson_lock_queue:{"+name+"}"))
		j.on("holder").do("lock.unlock", f)
		require.NoError(t, rig.Await(t, soon, "the waiter", waiting).err())
		j.on("waiter").do("lock.unlock", f)
	})
}

// Names with braces, which choose a slot of a cluster, mean the same on both sides.
func TestBraces(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Stats, rig.Single)
	eachVersion(t, func(t *testing.T, version string) {
		stage := onServer(t).stage(t, version, latchkey.Options{}, nil)
		stage.prefix = "{tag}"
		for kind, play := range plays {
			t.Run(kind, func(t *testing.T) { stage.measure(t, play, fewRounds) })
		}
	})
}

// On a cluster, too, but for latches: there Redisson cannot use them.
func TestClusterBraces(t *testing.T) {
	rig.Need(t, rig.Topology)
	cluster := rig.NewCluster(t)
	t.Run("all", func(t *testing.T) {
		eachVersion(t, func(t *testing.T, version string) {
			stage := onCluster(t, cluster, true).stage(t, version, latchkey.Options{}, nil)
			stage.prefix = "{tag}"
			for kind, play := range plays {
				if kind != "latch" {
					t.Run(kind, func(t *testing.T) { stage.measure(t, play, fewRounds) })
				}
			}
			name := "{tag}" + rig.Name(t)
			a := stage.java.on("main").try("latch.trySet", fields{"name": name, "n": 1})
			assert.Contains(t, a.Message, "same slot", "Redisson has learned it")
			latch := stage.client.NewCountDownLatch(name)
			_, err := latch.TrySetCount(within(t, soon), 1)
			require.NoError(t, err)
			_, err = latch.CountDown(within(t, soon))
			require.NoError(t, err)
		})
	})
}
