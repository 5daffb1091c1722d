package interop

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// addBrief adds a waiter of one side that will give up, and returns a channel that closes when it has.
func (q *queue) addBrief(side string, number int) <-chan struct{} {
	wait, gone := time.Second, make(chan struct{})
	if side == "Go" {
		go func() {
			defer close(gone)
			_, err := q.client.NewFairLock(q.name).Lock(context.Background(), latchkey.Wait(wait))
			assert.ErrorIs(q.t, err, latchkey.ErrNotAcquired)
		}()
	} else {
		answers := q.java.on("brief-"+strconv.Itoa(number)).start("lock.try",
			fields{"kind": "fair", "name": q.name, "wait": wait.Milliseconds()})
		go func() {
			defer close(gone)
			assert.Equal(q.t, "false", string((<-answers).Value))
		}()
	}
	q.grown()
	return gone
}

// Waiters of either side that give up do not change the order of the others.
func TestMixedQueueWithImpatient(t *testing.T) {
	t.Parallel()
	eachFairWait(t, func(t *testing.T, version string, wait time.Duration) {
		q := newQueue(t, here(t), version, wait)
		hold, err := q.client.NewFairLock(q.name).Lock(within(t, soon))
		require.NoError(t, err)
		var gone []<-chan struct{}
		for i := range 4 {
			q.addGo(10 * i)
			gone = append(gone, q.addBrief("Java", i))
			q.addJava(10*i + 1)
			gone = append(gone, q.addBrief("Go", i))
		}
		for _, c := range gone {
			rig.Await(t, soon, "a waiter gives up", c)
		}
		require.NoError(t, hold.Unlock(context.Background()))
		q.served(8)
	})
}
