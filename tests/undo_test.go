package tests

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// attempts makes n calls that try to acquire a lock while no reply comes. Each is or will be
// executed, and its caller gives up without knowing the outcome.
func attempts(t *testing.T, lock latchkey.Locker, tap *rig.Tap, n int, options ...latchkey.TryLockOption) {
	t.Helper()
	replies := tap.HoldReplies(rig.Mentions(lock.Name()))
	var leaving sync.WaitGroup
	for range n {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		leaving.Go(func() { _, _ = lock.TryLock(ctx, options...) })
	}
	leaving.Wait()
	replies.Release()
}

// costs fails if a tap sees more than limit commands that name a lock at any time during a period.
func costs(t *testing.T, tap *rig.Tap, name string, limit int, during time.Duration) {
	t.Helper()
	sent := 0
	rig.Throughout(t, during, "the commands are few", func() error {
		sent = 0
		for _, command := range tap.Commands() {
			if rig.Mentions(name)(command) {
				sent++
			}
		}
		if sent > limit {
			return fmt.Errorf("%d commands, more than %d", sent, limit)
		}
		return nil
	})
	t.Logf("%d commands", sent)
}

// With a client of our own, the reply to the first undo proves that nothing is executed later: a
// call that timed out costs one more command, however long its lease is.
func TestUndo_ends_with_its_proof(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	if server.Embedded() {
		t.Skip("the client is a borrowed one there")
	}
	tap := rig.NewTap(t, server)
	client := connectVia(t, server, tap.Addr())
	lock := client.NewRWLock(name).Writer() // whose attempts are not sent together with others
	mustUnlock(t, mustLock(t, lock))        // this loads the scripts
	const calls = 40
	tap.Forget()
	attempts(t, lock, tap, calls, latchkey.Lease(time.Hour))
	rig.Eventually(t, soon, "the undo", free(rig.NewAdmin(t, server), name))
	costs(t, tap, name, 3*calls-1, 3*time.Second) // a second undo of all would come after two seconds
}

// Without that proof, the undo of one call takes at most three commands over a lease that is not
// longer than the default.
func TestUndo_costs_three_commands(t *testing.T) {
	t.Parallel()
	rig.Long(t)
	server, name := rig.Shared(), rig.Name(t)
	tap := rig.NewTap(t, server)
	client, closeAll, err := borrow(likeOurs(server.Options(tap.Addr())), latchkey.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, closeAll(within(t, soon))) })
	mustUnlock(t, mustLock(t, client.NewLock(name)))
	const calls = 20
	tap.Forget()
	attempts(t, client.NewLock(name), tap, calls)
	rig.Eventually(t, soon, "the undo", free(rig.NewAdmin(t, server), name))
	costs(t, tap, name, calls+3*calls, defaultLease+5*time.Second)
}

// While a server is silent, undo waits for it with a single probe. Afterwards, each call that
// failed during the outage costs no more than any other.
func TestUndo_after_an_outage(t *testing.T) {
	rig.Need(t, rig.Process, rig.Stats)
	t.Parallel()
	server := rig.Fresh(t)
	client := connect(t, server)
	admin := rig.NewAdmin(t, server)
	mustUnlock(t, mustLock(t, client.NewLock("warm")))
	before := admin.CommandStats()
	server.Pause(t)
	end := time.Now().Add(rig.Lasting(3 * time.Second))
	var failed, doubtful atomic.Int64
	var callers sync.WaitGroup
	for i := range 100 {
		callers.Go(func() {
			for k := 0; time.Now().Before(end); k++ {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
				_, err := client.NewLock(fmt.Sprint("name ", i, " ", k)).TryLock(ctx)
				cancel()
				failed.Add(1)
				if errors.Is(err, latchkey.ErrUnknownOutcome) {
					doubtful.Add(1)
				}
			}
		})
	}
	callers.Wait()
	server.Resume(t)
	mustUnlock(t, mustLock(t, client.NewLock("after")))
	var scripts int64
	limit := 4*doubtful.Load() + 100 // the call itself, executed late, and its undo
	rig.Throughout(t, 3*time.Second, "the commands are few", func() error {
		sent := admin.Since(before)
		scripts = sent["evalsha"] + sent["eval"]
		if scripts > limit {
			return fmt.Errorf("%d commands, for %d calls whose outcome was unknown", scripts, doubtful.Load())
		}
		return nil
	})
	rig.Eventually(t, soon, "nothing is held", func() error {
		if keys := admin.Keys("name *"); len(keys) > 0 {
			return fmt.Errorf("%d keys", len(keys))
		}
		return nil
	})
	t.Logf("%d calls failed, %d with an unknown outcome; %d commands", failed.Load(), doubtful.Load(), scripts)
}

// A silent node does not delay the undo on other nodes.
func TestUndo_is_per_node(t *testing.T) {
	t.Parallel()
	cluster := rig.NewStubbornCluster(t)
	names := byNode(t, cluster, rig.Name(t), 2)
	silent, other := names[0], names[1]
	undone := make(chan struct{}, 100)
	client := connectCluster(t, cluster, latchkey.Options{Observer: func(e latchkey.Event) {
		if e.Type == latchkey.EventUndone && e.Name == other {
			undone <- struct{}{}
		}
	}})
	for _, name := range names {
		mustUnlock(t, mustLock(t, client.NewLock(name)))
	}
	paused := cluster.Pause(silent)
	t.Cleanup(func() { paused.Resume(t) })
	leaveWithout(t, client, silent, 300)
	rest(500 * time.Millisecond) // so that undo is busy with them

	answering := cluster.Pause(other)
	rig.Eventually(t, soon, "an attempt with an unknown outcome", func() error {
		_, err := client.NewLock(other).TryLock(within(t, 100*time.Millisecond))
		require.Error(t, err)
		if !errors.Is(err, latchkey.ErrUnknownOutcome) {
			return err // it was not sent in time
		}
		return nil
	})
	require.Empty(t, undone)
	answering.Resume(t)
	rig.Await(t, soon, "the undo on the node that answers", undone) // sooner than the lease ends
	_, admin := cluster.Serving(other)
	assert.False(t, admin.Exists(other))
}

// leaveWithout makes that many callers give up on a lock of a node that does not answer.
func leaveWithout(t *testing.T, client *latchkey.Client, name string, callers int) {
	t.Helper()
	var leaving sync.WaitGroup
	for range callers {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		leaving.Go(func() {
			_, _ = client.NewLock(name).TryLock(ctx)
		})
	}
	leaving.Wait()
}

// byNode returns n names that are served by different masters.
func byNode(t *testing.T, cluster *rig.Cluster, prefix string, n int) (names []string) {
	t.Helper()
	known := map[string]bool{}
	for i := 0; len(names) < n; i++ {
		name := fmt.Sprintf("%s:{%d}", prefix, i)
		server, _ := cluster.Serving(name)
		if !known[server.Addr()] {
			known[server.Addr()] = true
			names = append(names, name)
		}
	}
	return names
}
