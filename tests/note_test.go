package tests

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// Notes of holds.

// An owner with several holds shows the latest note until that hold ends.
func TestNote_of_several_holds(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	client, other := connectLabelled(t, server, "notes"), connectLabelled(t, server, "looks")
	lock := client.NewLock(name)
	outer := mustLock(t, lock, latchkey.Note("outer"))
	shows(t, other, name, "notes", "outer")
	inner, err := lock.Lock(outer.Context(t.Context()), latchkey.Note("inner"))
	require.NoError(t, err)
	shows(t, other, name, "notes", "inner")
	mustUnlock(t, inner)
	shows(t, other, name, "notes", "outer")
	mustUnlock(t, outer)
	next := mustLock(t, lock)
	shows(t, other, name, "notes", "")
	mustUnlock(t, next)
}

// A reader does not keep the note of the write hold that was downgraded.
func TestNote_of_a_hold_that_is_downgraded(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	client, other := connectLabelled(t, server, "notes"), connectLabelled(t, server, "looks")
	write := mustLock(t, client.NewRWLock(name).Writer(), latchkey.Note("writes"))
	shows(t, other, name, "notes", "writes")
	rest(100 * time.Millisecond) // until all writes are done
	read, err := write.Downgrade(t.Context())
	require.NoError(t, err)
	shows(t, other, name, "notes", "")
	mustUnlock(t, read)
}

// A hold that is passed on inside a client loses the note of the former hold and shows its own.
func TestNote_of_a_hold_that_is_passed_on(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	client := connect(t, server, latchkey.Options{Label: "notes", Tuning: latchkey.Tuning{Turn: time.Second}})
	other, lock := connectLabelled(t, server, "looks"), client.NewMutex(name)
	note := func() string {
		found, err := client.Inspect(t.Context(), name)
		require.NoError(t, err)
		require.Len(t, found.Holders, 1)
		return found.Holders[0].Note
	}
	first := mustLock(t, lock, latchkey.Note("first"))
	var waiters [2]<-chan acquisition
	for i, options := range [][]latchkey.LockOption{{latchkey.Note("second")}, nil} {
		waiters[i] = lockInLine(within(t, soon), t, lock, options...)
	}
	mustUnlock(t, first)
	second := rig.Await(t, soon, "the second", waiters[0])
	require.NoError(t, second.err)
	assert.Equal(t, "second", note())
	shows(t, other, name, "notes", "second")
	mustUnlock(t, second.hold)
	third := rig.Await(t, soon, "the third", waiters[1])
	require.NoError(t, third.err)
	assert.Empty(t, note())
	shows(t, other, name, "notes", "")
	mustUnlock(t, third.hold)
}

// The members of a MultiLock have its note.
func TestNote_of_several_locks(t *testing.T) {
	t.Parallel()
	server, one, two := rig.Shared(), rig.Name(t)+"1", rig.Name(t)+"2"
	client, other := connectLabelled(t, server, "notes"), connectLabelled(t, server, "looks")
	hold := mustLock(t, latchkey.NewMultiLock(client.NewLock(one), client.NewFairLock(two)), latchkey.Note("both"))
	shows(t, other, one, "notes", "both")
	shows(t, other, two, "notes", "both")
	mustUnlock(t, hold)
}
