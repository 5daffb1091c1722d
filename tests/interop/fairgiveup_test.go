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

// addBrief adds a waiter of one side that will give up, and returns a channel that closes when it
// has.
func (q *queue) addBrief(side string, number int, wait time.Duration) <-chan struct{} {
	gone := make(chan struct{})
	if side == "Go" {
		go func() {
			defer close(gone)
			_, err := q.client.NewFairLock(q.name).Lock(context.Background(), latchkey.Wait(wait))
			assert.Error(q.t, err)
		}()
	} else {
		answers := q.java.on("brief-"+strconv.Itoa(number)).start("lock.try",
			fields{"kind": "fair", "name": q.name, "wait": wait.Milliseconds()})
		go func() {
			defer close(gone)
			assert.Equal(q.t, "false", string((<-answers).Value))
		}()
	}
	q.grown(1)
	return gone
}

// Waiters of either side that give up do not change the order of the others.
func TestMixedQueueWithImpatient(t *testing.T) {
	t.Parallel()
	eachFairWait(t, func(t *testing.T, version string, wait time.Duration) {
		// Places last longer than it takes to add all waiters.
		q := newQueueWith(t, here(t), version, wait, latchkey.Options{Tuning: latchkey.Tuning{StaleWaiterTimeout: 20 * time.Second}})
		pairs, brief := rig.Lasting(4*time.Second)/time.Second, rig.Lasting(6*time.Second)
		hold, err := q.client.NewFairLock(q.name).Lock(within(t, soon))
		require.NoError(t, err)
		var gone []<-chan struct{}
		for i := range int(pairs) {
			q.addGo(10 * i)
			gone = append(gone, q.addBrief("Java", i, brief))
			q.addJava(10*i + 1)
			gone = append(gone, q.addBrief("Go", i, brief))
		}
		for _, c := range gone {
			rig.Await(t, soon, "a waiter gives up", c)
		}
		require.NoError(t, hold.Unlock(context.Background()))
		q.served(2 * int(pairs))
	})
}
