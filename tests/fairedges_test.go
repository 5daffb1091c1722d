package tests

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// The answer to the first attempt comes when the lease that it grants is over. The
// waiter has no place in the queue then, so that nobody would call it: it asks again.
func TestFairGrantThatComesTooLate(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	tap := rig.NewTap(t, server)
	client := connectVia(t, server, tap.Addr())
	mustUnlock(t, mustLock(t, client.NewFairLock(name+" before"))) // the script is known
	held := tap.HoldReply(rig.Both(rig.Named("EVALSHA", "EVAL"), rig.Mentions(name)))
	start := time.Now()
	waiter := lockInBackground(within(t, time.Minute), client.NewFairLock(name), latchkey.Lease(200*time.Millisecond))
	rig.Await(t, soon, "the answer is held back", held.Arrived)
	rest(400 * time.Millisecond) // twice the lease
	held.Release()
	next := rig.Await(t, time.Minute, "the lock", waiter)
	require.NoError(t, next.err)
	assert.Less(t, next.at.Sub(start), 3*time.Second)
	_ = next.hold.Unlock(context.Background()) // its lease is short
}
