package interop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// A spin lock of this library wakes a caller that waits for the same name with an ordinary lock of
// Redisson. A spin lock of Redisson wakes nobody: an ordinary lock of this library tries again
// after its poll ceiling.
func TestSpinAndOrdinary(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, version string) {
		const ceiling = 2 * time.Second
		where, name := here(t), rig.Name(t)
		client, j := where.connect(t, latchkey.Options{Tuning: latchkey.Tuning{PollCeiling: ceiling}}), where.java(t, version)
		spin, ordinary := fields{"kind": "spin", "name": name}, fields{"kind": "lock", "name": name}

		hold := mustLock(t, client.NewSpinLock(name, latchkey.Backoff{}))
		waiting := j.on("waiter").start("lock.lock", ordinary)
		listening(t, where.admin, name)
		began := time.Now()
		mustUnlock(t, hold)
		a := rig.Await(t, patience, "Java acquires", waiting)
		require.NoError(t, a.err())
		assert.Less(t, a.ended().Sub(began), wakeLimit)
		j.on("waiter").do("lock.unlock", ordinary)

		j.on("holder").do("lock.lock", spin)
		goWaiting := inBackground(func() (*latchkey.Hold, error) { return client.NewLock(name).Lock(within(t, patience)) })
		listening(t, where.admin, name)
		released := j.on("holder").do("lock.unlock", spin)
		got := rig.Await(t, patience, "Go acquires", goWaiting)
		require.NoError(t, got.err)
		assert.Less(t, got.at.Sub(released.began()), ceiling+wakeLimit)
		mustUnlock(t, got.value)
	})
}
