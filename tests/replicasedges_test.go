package tests

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// The release of an inner hold raises the time of the lock, but no replica has confirmed
// that.
func TestReplicas_inner_release(t *testing.T) {
	t.Parallel()
	const lease = 2 * time.Second
	r := rig.NewReplicated(t, 1, 0)
	options := confirmed(200 * time.Millisecond)
	options.Lease = lease
	client := connect(t, r.Master, options)
	lock := client.NewLock(rig.Name(t))
	outer := mustLock(t, lock)
	inner := mustReenter(t, outer, lock)
	require.Equal(t, 2, outer.Count())
	r.Replicas[0].Pause(t)
	rig.Throughout(t, lease/4, "less is left than a lease", outer.Err)
	before := outer.ValidFor()
	mustUnlock(t, inner)
	assert.LessOrEqual(t, outer.ValidFor(), before)
	r.Replicas[0].Resume(t)
	mustUnlock(t, outer)
}

// A downgrade is relied on only if replicas have confirmed it.
func TestReplicas_downgrade(t *testing.T) {
	t.Parallel()
	r := rig.NewReplicated(t, 1, 0)
	admin, replica := rig.NewAdmin(t, r.Master), rig.NewAdmin(t, r.Replicas[0])
	client := connect(t, r.Master, confirmed(300*time.Millisecond))
	name := rig.Name(t)
	write := mustLock(t, client.NewRWLock(name).WriteLock())
	read, err := write.Downgrade(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "read", replica.Text("HGET", name, "mode"))
	mustUnlock(t, read)

	write = mustLock(t, client.NewRWLock(name).WriteLock())
	r.Replicas[0].Pause(t)
	_, err = write.Downgrade(t.Context())
	require.ErrorIs(t, err, latchkey.ErrNotReplicated)
	rig.Eventually(t, soon, "neither hold stays", free(admin, name))
	require.Error(t, write.Err())
	r.Replicas[0].Resume(t)
}

func mustReenter(t *testing.T, outer *latchkey.Hold, lock latchkey.Locker) *latchkey.Hold {
	t.Helper()
	hold, err := lock.Lock(outer.Context(within(t, soon)))
	require.NoError(t, err)
	return hold
}
