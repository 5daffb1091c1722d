package tests

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// stall makes that many callers give up on a paused server.
func stall(t *testing.T, server *rig.Server, client *latchkey.Client, callers int) {
	t.Helper()
	server.Pause(t)
	name := rig.Name(t)
	var leaving sync.WaitGroup
	for i := range callers {
		leaving.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_, err := client.NewLock(fmt.Sprint(name, i)).TryLock(ctx)
			if ctx.Err() == nil || errors.Is(err, latchkey.ErrUnavailable) { // else it may have begun too late to be sent
				requireUnavailable(t, err)
			}
		})
	}
	leaving.Wait()
	server.Resume(t)
}

// Callers that gave up during a short stall of the server, as many as may be in flight, do not
// block later callers.
func TestStallDoesNotOutlastTheServer(t *testing.T) {
	rig.Need(t, rig.Process)
	for name, open := range map[string]func(*testing.T, *rig.Server) (*latchkey.Client, int){
		"own": func(t *testing.T, s *rig.Server) (*latchkey.Client, int) {
			return connect(t, s), defaultMaxInFlight
		},
		"own, one in flight": func(t *testing.T, s *rig.Server) (*latchkey.Client, int) {
			return connect(t, s, latchkey.Options{Tuning: latchkey.Tuning{MaxInFlight: 1}}), 1
		},
		"borrowed": func(t *testing.T, s *rig.Server) (*latchkey.Client, int) {
			return borrowed(t, s, latchkey.Options{Tuning: latchkey.Tuning{MaxInFlight: 64}}), 64
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := rig.Fresh(t)
			client, callers := open(t, server)
			lock := client.NewLock(rig.Name(t))
			mustUnlock(t, mustLock(t, lock))
			for range 2 {
				require.NoError(t, rig.InTime(t, func(int) error {
					stall(t, server, client, callers)
					start := time.Now()
					hold, err := lock.TryLock(t.Context())
					took := time.Since(start)
					if err != nil {
						return err
					}
					mustUnlock(t, hold)
					if took >= time.Second {
						return fmt.Errorf("it took %v", took)
					}
					return nil
				}))
			}
		})
	}
}

// borrowed returns a client of the library that uses a rueidis client of the test.
func borrowed(t *testing.T, server *rig.Server, options latchkey.Options) *latchkey.Client {
	t.Helper()
	client, closeAll, err := borrow(likeOurs(server.Options(server.Addr())), options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, closeAll(within(t, soon))) })
	return client
}

// The connection is broken, and the server does not answer on a new one. The first caller, for
// which the connection is opened, still obeys its context.
func TestCancellationIsObeyedWhenTheConnectionIsBroken(t *testing.T) {
	rig.Need(t, rig.Process)
	server := rig.Fresh(t)
	tap := rig.NewTap(t, server)
	lock := connectVia(t, server, tap.Addr()).NewLock(rig.Name(t))
	mustUnlock(t, mustLock(t, lock))
	server.Pause(t)
	defer server.Resume(t)
	opened := tap.Accepted()
	tap.Cut()
	rest(50 * time.Millisecond) // nothing reports that the client has noticed
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	locked := lockInBackground(ctx, lock)
	rig.Eventually(t, soon, "a new connection", func() error {
		if tap.Accepted() == opened {
			return errors.New("none")
		}
		return nil
	})
	cancel()
	require.ErrorIs(t, rig.Await(t, soon, "Lock", locked).err, context.Canceled)
}

// A command may be in flight when the rueidis client is closed. Its outcome is unknown, and the
// error says so.
func TestOutcomeIsUnknownWhenTheBorrowedClientIsClosed(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	tap := rig.NewTap(t, server)
	redis, client := borrowedTwo(t, server, tap.Addr())
	reply := tap.HoldReply(rig.Mentions(name))
	defer reply.Release()
	locked := make(chan error, 1)
	go func() { _, err := client.NewLock(name).TryLock(t.Context()); locked <- err }()
	rig.Await(t, soon, "the command is executed", reply.Arrived)
	go redis.Close()
	err := rig.Await(t, soon, "TryLock", locked)
	require.ErrorIs(t, err, rueidis.ErrClosing)
	require.ErrorIs(t, err, latchkey.ErrUnknownOutcome)
}

// borrowedTwo returns a rueidis client, and a client of the library that uses it and has already
// been used.
func borrowedTwo(t *testing.T, server *rig.Server, addr string) (rueidis.Client, *latchkey.Client) {
	t.Helper()
	redis, err := rueidis.NewClient(likeOurs(server.Options(addr)))
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	client, err := latchkey.New(redis, persistent)
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close(within(t, soon)) }) // its server is gone
	mustUnlock(t, mustLock(t, client.NewLock(rig.Name(t))))
	return redis, client
}

// A closed rueidis client can do nothing more: calls end long before their budget, calls that send
// nothing do not return ErrUnknownOutcome, and Close returns.
func TestAClosedBorrowedClientIsGivenUp(t *testing.T) {
	server := singleServer(t)
	redis, client := borrowedTwo(t, server, server.Addr())
	hold := mustLock(t, client.NewLock(rig.Name(t)))
	redis.Close()
	rig.Eventually(t, soon, "it is closed, which a client of a cluster does in the background", func() error {
		if err := redis.Do(t.Context(), redis.B().Ping().Build()).Error(); !errors.Is(err, rueidis.ErrClosing) {
			return fmt.Errorf("it answers %w", err)
		}
		return nil
	})
	start := time.Now()
	_, err := client.NewLock(rig.Name(t)).TryLock(t.Context())
	require.ErrorIs(t, err, rueidis.ErrClosing)
	_, err = client.NewLock(rig.Name(t)).TryLock(t.Context())
	requireUnavailable(t, err)
	require.ErrorIs(t, err, rueidis.ErrClosing)
	require.NotErrorIs(t, err, latchkey.ErrUnknownOutcome)
	require.ErrorIs(t, hold.Unlock(t.Context()), latchkey.ErrUnknownOutcome)
	require.ErrorIs(t, client.Close(within(t, soon)), rueidis.ErrClosing)
	require.Less(t, time.Since(start), soon, "each of the calls has a budget as long as that")
}
