package tests

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// A server stood still for a moment, and more callers gave up than commands may be under
// way. Once it goes on, so does everybody else.
func TestCallersThatGaveUpStandInNobodysWay(t *testing.T) {
	rig.Need(t, rig.Settings)
	server, name := rig.Fresh(t), rig.Name(t)
	client := connect(t, server)
	mustUnlock(t, mustLock(t, client.NewLock(name)))
	server.Pause(t)
	var all sync.WaitGroup
	for i := range latchkey.DefaultMaxInFlight {
		all.Go(func() { _, _ = client.NewLock(fmt.Sprint(name, i)).TryLock(within(t, 100*time.Millisecond)) })
	}
	all.Wait()
	server.Resume(t)
	start := time.Now()
	mustUnlock(t, mustLock(t, client.NewLock(name)))
	assert.Less(t, time.Since(start), 2*time.Second)
}

// The connection is cut while the server does not answer: whoever comes to dial anew,
// or waits for it, leaves at the end of its context.
func TestContextsEndWhileNobodyCanDial(t *testing.T) {
	rig.Need(t, rig.Settings)
	server, name := rig.Fresh(t), rig.Name(t)
	tap := rig.NewTap(t, server)
	client := connectVia(t, server, tap.Addr())
	mustUnlock(t, mustLock(t, client.NewLock(name)))
	server.Pause(t)
	tap.Cut()
	var all sync.WaitGroup
	var worst atomic.Int64
	for i := range 100 {
		all.Go(func() {
			d := 100 * time.Millisecond
			if i%2 == 0 {
				d = 3 * time.Second
			}
			start := time.Now()
			_, _ = client.NewLock(fmt.Sprint(name, i)).TryLock(within(t, d))
			if over := int64(time.Since(start) - d); over > worst.Load() {
				worst.Store(over)
			}
		})
	}
	all.Wait()
	server.Resume(t)
	assert.Less(t, time.Duration(worst.Load()), 500*time.Millisecond, "the longest that a context was overrun")
}

// The program closes its rueidis client while a command is under way: nobody knows what
// came of that.
func TestClosedUnderACommand(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	tap := rig.NewTap(t, server)
	redis, err := rueidis.NewClient(likeOurs(server.Options(tap.Addr())))
	require.NoError(t, err)
	client, err := latchkey.New(redis, latchkey.Options{RetryBudget: 3 * time.Second})
	require.NoError(t, err)
	defer func() { _ = client.Close(context.Background()) }()
	mustUnlock(t, mustLock(t, client.NewLock(name)))
	reply := tap.HoldReply(rig.Mentions(name))
	defer reply.Release()
	done := make(chan error, 1)
	go func() {
		_, err := client.NewLock(name).TryLock(t.Context())
		done <- err
	}()
	rig.Await(t, soon, "sent", reply.Arrived)
	closed := make(chan struct{})
	go func() {
		redis.Close()
		close(closed)
	}()
	assert.ErrorIs(t, rig.Await(t, soon, "the caller", done), latchkey.ErrUnknownOutcome)
	reply.Release()
	rig.Await(t, soon, "the rueidis client", closed)
}
