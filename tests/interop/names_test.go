package interop

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// fewRounds are enough to see that both sides use the same object.
const fewRounds = 1

// A name mapper of Redisson that adds a prefix is Options.KeyPrefix.
func TestNameMapper(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, version string) {
		where := here(t)
		stage := where.stage(t, version, latchkey.Options{KeyPrefix: "app:"}, fields{"nameMapper": "app:"})
		for kind, both := range allParticipants {
			if kind == "fair" && before(t, version, 3, 52) {
				continue // see TestQueueIsNotMapped
			}
			t.Run(kind, func(t *testing.T) { stage.measure(t, both, fewRounds) })
		}
		name := rig.Name(t)
		stage.java.on("main").do("lock.lock", fields{"kind": "lock", "name": name})
		assert.True(t, where.admin.Exists("app:"+name))
		stage.java.on("main").do("lock.unlock", fields{"kind": "lock", "name": name})
	})
}

// Redisson before 3.52.0 maps the name of a fair lock, but not those of its queue and its
// deadlines. On a cluster these keys end up in several slots.
func TestQueueIsNotMapped(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, version string) {
		where, name := here(t), rig.Name(t)
		admin, j := where.admin, where.java(t, version, fields{"nameMapper": "app:"})
		f := fields{"kind": "fair", "name": name}
		mapped := !before(t, version, 3, 52)
		if !mapped && where.server.Clustered() {
			assert.Contains(t, j.on("holder").try("lock.lock", f).Message, "CROSSSLOT")
			return
		}
		j.on("holder").do("lock.lock", f)
		waiting := j.on("waiter").start("lock.lock", f)
		listening(t, where.admin, name)
		assert.True(t, admin.Exists("app:"+name))
		assert.Equal(t, mapped, admin.Exists("redisson_lock_queue:{app:"+name+"}"))
		assert.Equal(t, !mapped, admin.Exists("redisson_lock_queue:{"+name+"}"))
		j.on("holder").do("lock.unlock", f)
		require.NoError(t, rig.Await(t, soon, "the waiter", waiting).err())
		j.on("waiter").do("lock.unlock", f)
	})
}

// Names with braces, which choose the slot of a cluster, mean the same on both sides.
func TestBraces(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, version string) {
		stage := here(t).stage(t, version, latchkey.Options{}, nil)
		stage.prefix = "{tag}"
		for kind, both := range allParticipants {
			if kind == "latch" && rig.Shared().Clustered() {
				continue // see TestClusterLatchWithBraces
			}
			t.Run(kind, func(t *testing.T) { stage.measure(t, both, fewRounds) })
		}
	})
}
