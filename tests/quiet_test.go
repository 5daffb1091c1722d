package tests

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// quietClient is a client of which all commands have come one at a time, so that callers write and
// read themselves, and a lock.
func quietClient(t *testing.T, server *rig.Server, addr string) (*latchkey.Client, *latchkey.Lock) {
	t.Helper()
	client := connectVia(t, server, addr)
	lock := client.NewLock(rig.Name(t))
	for range 3 {
		hold, err := lock.Lock(context.Background())
		require.NoError(t, err)
		mustUnlock(t, hold)
	}
	return client, lock
}

// A connection that was killed while nobody read it is found dead before anything is sent: there is no
// doubt, and nothing to undo.
func TestQuiet_killed_while_idle(t *testing.T) {
	rig.Need(t, rig.Process)
	server := rig.Fresh(t)
	tap := rig.NewTap(t, server)
	_, lock := quietClient(t, server, tap.Addr())
	for range 5 {
		tap.Cut()
		rest(50 * time.Millisecond) // as long as a connection that is used counts as up, and some
		tap.Forget()
		hold, err := lock.TryLock(context.Background())
		require.NoError(t, err)
		mustUnlock(t, hold)
		assert.LessOrEqual(t, len(tap.Executed(rig.Mentions(lock.Name()))), 2, "no undo")
	}
}

// A connection that breaks while a caller waits for its answer is replaced, and the call goes on.
func TestQuiet_killed_in_a_command(t *testing.T) {
	rig.Need(t, rig.Process)
	server := rig.Fresh(t)
	tap := rig.NewTap(t, server)
	_, lock := quietClient(t, server, tap.Addr())
	for _, loss := range []rig.Loss{rig.CutRequest, rig.Cut} {
		tap.Lose(1, rig.Mentions(lock.Name()), loss)
		hold, err := lock.Lock(context.Background())
		require.NoError(t, err)
		tap.Lose(1, rig.Mentions(lock.Name()), loss)
		require.NoError(t, hold.Unlock(context.Background()))
	}
	rig.Eventually(t, soon, "free", free(rig.NewAdmin(t, server), lock.Name()))
}

// A server that is started anew is found again by the next call.
func TestQuiet_restart(t *testing.T) {
	rig.Need(t, rig.Process)
	server := rig.Fresh(t)
	client, lock := quietClient(t, server, server.Addr())
	server.Kill(t)
	_, err := lock.TryLock(context.Background())
	toldUnavailable(t, err)
	server.Restart(t)
	hold, err := lock.Lock(context.Background())
	require.NoError(t, err)
	mustUnlock(t, hold)
	require.NoError(t, client.Close(within(t, soon)))
}

// A caller who cannot leave gets its error from a silent server when its time is over; one who can, when its context ends.
func TestQuiet_silent_server(t *testing.T) {
	rig.Need(t, rig.Process)
	server := rig.Fresh(t)
	_, lock := quietClient(t, server, server.Addr())
	hold, err := lock.Lock(context.Background())
	require.NoError(t, err)
	server.Pause(t)
	start := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = lock.TryLock(ctx)
	toldUnavailable(t, err)
	assert.Less(t, time.Since(start), time.Second, "that it cannot be asked is known when the context ends")
	start = time.Now()
	require.ErrorIs(t, hold.Unlock(context.Background()), latchkey.ErrUnavailable)
	assert.Less(t, time.Since(start), latchkey.DefaultRetryBudget+2*time.Second)
	server.Resume(t)
	rig.Eventually(t, soon, "free", free(rig.NewAdmin(t, server), lock.Name()))
}

// A caller whose context ends while its command is under way leaves, takes no connection with it, and what it
// asked for is undone; another on the same connection gets its answer.
func TestQuiet_caller_leaves_beside_another(t *testing.T) {
	rig.Need(t, rig.Process)
	server := rig.Fresh(t)
	tap := rig.NewTap(t, server)
	client, lock := quietClient(t, server, tap.Addr())
	admin, accepted := rig.NewAdmin(t, server), tap.Accepted()
	held := tap.HoldReply(rig.Mentions(lock.Name()))
	ctx, cancel := context.WithCancel(t.Context())
	leaving := make(chan error, 1)
	go func() {
		_, err := lock.TryLock(ctx)
		leaving <- err
	}()
	rig.Await(t, soon, "the command that is held up", held.Arrived)
	other := client.NewLock(lock.Name() + " other")
	staying := lockInBackground(context.Background(), other)
	cancel()
	require.ErrorIs(t, rig.Await(t, soon, "the caller", leaving), context.Canceled)
	held.Release()
	got := rig.Await(t, soon, "the other", staying)
	require.NoError(t, got.err)
	mustUnlock(t, got.hold)
	rig.Eventually(t, soon, "the undo", free(admin, lock.Name()))
	assert.Equal(t, accepted, tap.Accepted(), "no connection was opened")
}

// Many goroutines that begin at once on a quiet connection all get what they want.
func TestQuiet_many_at_once(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	for range 5 {
		client, lock := quietClient(t, server, server.Addr())
		var all sync.WaitGroup
		begin := make(chan struct{})
		for i := range 64 {
			mine := client.NewLock(fmt.Sprint(lock.Name(), " ", i))
			all.Go(func() {
				<-begin
				for range 10 {
					hold, err := mine.Lock(context.Background())
					if assert.NoError(t, err) {
						assert.NoError(t, hold.Unlock(context.Background()))
					}
				}
			})
		}
		close(begin)
		all.Wait()
	}
}

// Close ends while a command is under way that nobody answers. What it acquires late lives for its lease.
func TestQuiet_close_during_a_command(t *testing.T) {
	rig.Need(t, rig.Process)
	server := rig.Fresh(t)
	client, lock := quietClient(t, server, server.Addr())
	server.Pause(t)
	waiting := lockInBackground(context.Background(), lock, latchkey.Lease(5*time.Second))
	rest(100 * time.Millisecond) // nothing tells that it was sent
	start := time.Now()
	_ = client.Close(within(t, soon))
	got := rig.Await(t, soon, "the caller", waiting)
	require.Error(t, got.err)
	assert.Less(t, time.Since(start), 2*latchkey.DefaultRetryBudget+2*time.Second)
	server.Resume(t)
	rig.Eventually(t, soon, "free", free(rig.NewAdmin(t, server), lock.Name()))
}
