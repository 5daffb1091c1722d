package tests

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// fairKey names what Redisson and this library keep beside a fair lock.
func queueOf(name string) string     { return "redisson_lock_queue:{" + name + "}" }
func deadlinesOf(name string) string { return "redisson_lock_timeout:{" + name + "}" }
func notesOf(name string) string     { return "latchkey_fair:{" + name + "}" }

// queueUp starts waiters one after the other, each only when the one before it
// stands in the queue, and returns where they report that they are inside.
func queueUp(t *testing.T, ctx context.Context, admin *rig.Admin, name string, clients []*latchkey.Client, waiters int) <-chan int {
	t.Helper()
	inside := make(chan int, waiters)
	before := admin.Int("LLEN", queueOf(name))
	for i := range waiters {
		lock := clients[i%len(clients)].NewFairLock(name)
		go func() {
			hold, err := lock.Lock(ctx)
			if err != nil {
				return
			}
			inside <- i
			_ = hold.Unlock(ctx)
		}()
		rig.Eventually(t, soon, "the waiter is in the queue", func() error {
			if n := admin.Int("LLEN", queueOf(name)); n < before+int64(i)+1 {
				return fmt.Errorf("%d in the queue", n)
			}
			return nil
		})
	}
	return inside
}

func TestFairLockIsGrantedInOrder(t *testing.T) {
	const waiters = 40
	server, name := rig.Shared(), rig.Name(t)
	admin := rig.NewAdmin(t, server)
	clients := []*latchkey.Client{connect(t, server), connect(t, server), connect(t, server)}
	hold := mustLock(t, clients[0].NewFairLock(name))
	inside := queueUp(t, t.Context(), admin, name, clients, waiters)
	mustUnlock(t, hold)
	start := time.Now()
	for want := range waiters {
		require.Equal(t, want, rig.Await(t, soon, "the next", inside))
	}
	t.Logf("%d in %v", waiters, time.Since(start))
	assert.Less(t, time.Since(start), 5*time.Second)
	rig.Eventually(t, soon, "nothing is left", func() error {
		if left := admin.Dump(name); len(left) > 0 {
			return fmt.Errorf("left: %v", left)
		}
		return nil
	})
}
