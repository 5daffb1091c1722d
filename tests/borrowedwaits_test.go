package tests

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// Acquisitions that wait for a slow replica do not delay other calls of the client, also when a
// borrowed client has left a former master.
func TestBorrowed_blocking_commands_delay_nothing(t *testing.T) {
	t.Parallel()
	f := newFixedEndpoint(t)
	options := latchkey.Options{Replicas: latchkey.Replicas{Min: 1, Timeout: time.Second}, RetryBudget: 15 * time.Second, Label: latchkey.NoLabel}
	client := lent(t, f.pair.Master.Options(f.tap.Addr()), options)
	mustUnlock(t, mustLock(t, client.NewLock("before")))
	slow := func() time.Duration {
		t.Helper()
		admin, replica := rig.NewAdmin(t, f.pair.Master), f.pair.Replicas[0]
		replica.Pause(t)
		defer replica.Resume(t)
		var begun sync.WaitGroup
		begun.Add(5)
		for range 5 {
			go func() {
				begun.Done()
				_ = firstOf(client.NewLock(rig.Name(t)).TryLock(within(t, soon)))
			}()
		}
		begun.Wait()
		awaitWAIT(t, admin)
		start := time.Now()
		_, err := isLocked(within(t, soon), client.NewLock("other"))
		took := time.Since(start)
		require.NoError(t, err)
		return took
	}
	t.Logf("before: a query takes %v", slow())
	f.swap()
	rig.Eventually(t, soon, "it has left", func() error {
		h, err := client.NewLock("after").TryLock(within(t, soon))
		if err == nil {
			mustUnlock(t, h)
		}
		return err
	})
	took := slow()
	t.Logf("after: %v", took)
	assert.Less(t, took, 5*time.Second, "each of the five waits takes one")
}
