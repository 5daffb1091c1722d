package tests

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// fairPermitProcess waits for permits of a fair semaphore and keeps what it gets, until it is
// killed. Its arguments: name, server, number of waiters, number of permits for each, and how long
// a silent waiter keeps its place.
var fairPermitProcess = rig.Child("fair permits", func(ctx context.Context, args []string) error {
	waiters, _ := strconv.Atoi(args[2])
	n, _ := strconv.Atoi(args[3])
	stale, err := time.ParseDuration(args[4])
	if err != nil {
		return err
	}
	client, _, err := dialTicket(args[1], "", latchkey.Options{Lease: fairPermitLease, Tuning: latchkey.Tuning{StaleWaiterTimeout: stale}})
	if err != nil {
		return err
	}
	for range waiters {
		go func() {
			if _, err := client.NewFairSemaphore(args[0]).AcquireN(ctx, n); err == nil {
				fmt.Println("acquired")
			}
		}()
	}
	select {} // until it is killed
})

// fairPermitLease is long enough for a busy machine to renew it.
const fairPermitLease = 3 * time.Second

// grantable waits until the server can grant permits to this many waiters in the queue.
func grantable(t *testing.T, admin *rig.Admin, name string, want int64) {
	t.Helper()
	rig.Eventually(t, soon, "their clients listen", func() error {
		if n := admin.Int("HLEN", permitGrantsOf(name)); n < want {
			return fmt.Errorf("%d of %d", n, want)
		}
		return nil
	})
}

// permitsRenewed waits until the permit that would expire first is renewed.
func permitsRenewed(t *testing.T, admin *rig.Admin, name string) {
	t.Helper()
	soonest := func() string {
		ids := admin.Strings("ZRANGE", idsOf(name), "0", "0")
		if len(ids) == 0 {
			return "none"
		}
		return ids[0] + admin.Text("ZSCORE", idsOf(name), ids[0])
	}
	before := soonest()
	rig.Eventually(t, soon, "the leases are renewed", func() error {
		if now := soonest(); now == before || now == "none" {
			return fmt.Errorf("%q expires first", now)
		}
		return nil
	})
}

// A process with waiting goroutines is killed: the waiter behind them does not wait for them.
func TestFairSemaphoreKilledWaitersArePassedOver(t *testing.T) {
	t.Parallel()
	server, ctx := rig.Shared(), t.Context()
	admin := rig.NewAdmin(t, server)
	s := newFairPermits(t, connect(t, server), 2)
	held, err := s.AcquireN(ctx, 2)
	require.NoError(t, err)
	const dead = 50
	child := fairPermitProcess.Start(t, s.Name(), server.Ticket(), strconv.Itoa(dead), "1", "2s")
	grantable(t, admin, s.Name(), dead)
	behind := queueForPermits(within(t, time.Minute), t, admin, s, 2)
	child.Kill()
	killed := time.Now()
	permitsGot{permits: held}.release(t)
	got := rig.Await(t, soon, "the one behind, long before each of them has kept its place in turn", behind)
	require.NoError(t, got.err)
	t.Logf("%v after the kill", time.Since(killed).Round(time.Millisecond))
	got.release(t)
	rig.Eventually(t, soon, "a command of the process that arrived late is passed over too", func() error {
		again, err := s.TryAcquireN(ctx, 2)
		permitsGot{permits: again}.release(t)
		return err
	})
	nothingWaits(t, admin, s.Name())
	fairCounts(t, s, 2, 0)
}

// A process that holds permits is killed: they go to the first waiters in the queue at the end of
// its lease.
func TestFairSemaphoreKilledHolderGivesItsPermitsBack(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	admin := rig.NewAdmin(t, server)
	s := newFairPermits(t, connect(t, server), 4)
	child := fairPermitProcess.Start(t, s.Name(), server.Ticket(), "2", "2", "5s")
	child.Line(t, soon, "acquired")
	child.Line(t, soon, "acquired")
	first := queueForPermits(within(t, time.Minute), t, admin, s, 3)
	second := queueForPermits(within(t, time.Minute), t, admin, s, 1)
	permitsRenewed(t, admin, s.Name())
	require.Empty(t, first)
	child.Kill()
	for _, w := range []<-chan permitsGot{first, second} {
		got := rig.Await(t, soon, "a waiter", w)
		require.NoError(t, got.err)
		defer got.release(t)
	}
}

// A client is killed after it was granted permits, before it learns of them. They come back.
func TestFairSemaphoreGrantToADyingClient(t *testing.T) {
	t.Parallel()
	server, ctx := rig.Shared(), t.Context()
	admin := rig.NewAdmin(t, server)
	s := newFairPermits(t, connect(t, server), 2)
	held, err := s.AcquireN(ctx, 2)
	require.NoError(t, err)
	child := fairPermitProcess.Start(t, s.Name(), server.Ticket(), "1", "2", "5s")
	grantable(t, admin, s.Name(), 1)
	behind := queueForPermits(within(t, time.Minute), t, admin, s, 1)
	child.Stop(t) // its connections stay open, but nobody reads from them
	permitsGot{permits: held}.release(t)
	fairCounts(t, s, 0, 2)
	require.Empty(t, behind)
	child.Kill()
	got := rig.Await(t, soon, "the one behind", behind)
	require.NoError(t, got.err)
	got.release(t)
	fairCounts(t, s, 2, 0)
}

// A process that is stopped for longer than its waiter counts as alive is passed over, and gets its
// turn when it continues.
func TestFairSemaphoreStoppedWaiter(t *testing.T) {
	t.Parallel()
	server, ctx := rig.Shared(), t.Context()
	admin := rig.NewAdmin(t, server)
	s := newFairPermits(t, connect(t, server), 1)
	held, err := s.Acquire(ctx)
	require.NoError(t, err)
	child := fairPermitProcess.Start(t, s.Name(), server.Ticket(), "1", "1", "2s")
	grantable(t, admin, s.Name(), 1)
	behind := queueForPermits(within(t, time.Minute), t, admin, s, 1)
	child.Stop(t)
	rig.Eventually(t, soon, "it is passed over", func() error {
		if n := admin.Int("ZCARD", permitQueueOf(s.Name())); n > 1 {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
	require.NoError(t, held.Release(ctx))
	got := rig.Await(t, soon, "the one behind", behind)
	require.NoError(t, got.err)
	child.Continue(t)
	got.release(t)
	child.Line(t, soon, "acquired")
}

// The reply to the n-th command is lost, for every n of a run that waits and releases. No permit is
// lost.
func TestFairSemaphoreNthReplyLost(t *testing.T) {
	t.Parallel()
	rig.Long(t)
	server := rig.Shared()
	run := func(t *testing.T, n int, loss rig.Loss) {
		t.Helper()
		admin, tap := rig.NewAdmin(t, server), rig.NewTap(t, server)
		s := newFairPermits(t, connect(t, server), 2)
		lossy := connectVia(t, server, tap.Addr(), latchkey.Options{
			RetryBudget: time.Second, Lease: time.Second, Tuning: latchkey.Tuning{StaleWaiterTimeout: time.Second},
		}).NewFairSemaphore(s.Name())
		held, err := s.AcquireN(t.Context(), 2)
		require.NoError(t, err)
		if n > 0 {
			tap.Lose(n, rig.Any, loss)
		}
		waiting := make(chan permitsGot, 1)
		go func() {
			permits, err := lossy.AcquireN(within(t, time.Minute), 2)
			waiting <- permitsGot{permits, err}
		}()
		permitQueueLength(t, admin, s.Name(), 1)
		permitsGot{permits: held}.release(t)
		got := rig.Await(t, soon, "the waiter", waiting)
		require.NoError(t, got.err)
		for _, p := range got.permits {
			if err := p.Release(context.Background()); err != nil && !errors.Is(err, latchkey.ErrUnknownOutcome) && !errors.Is(err, latchkey.ErrLost) {
				require.NoError(t, err)
			}
		}
		fairCounts(t, s, 2, 0)
		nothingWaits(t, admin, s.Name())
	}
	for _, each := range losses {
		for n := range 9 {
			t.Run(fmt.Sprintf("%s %d", each.name, n), func(t *testing.T) {
				t.Parallel()
				run(t, n, each.loss)
			})
		}
	}
}

// The queue is lost, or an old one comes back, as after a failover: the order stays, and nothing is
// lost.
func TestFairSemaphoreQueueIsLostOrOld(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Stats) // the embedded server cannot RESTORE
	server, ctx := rig.Shared(), t.Context()
	admin := rig.NewAdmin(t, server)
	options := latchkey.Options{Tuning: latchkey.Tuning{StaleWaiterTimeout: 2 * time.Second}, RetryBudget: soon}
	clients := []*latchkey.Client{connect(t, server, options), connect(t, server, options)}
	s := newFairPermits(t, clients[0], 1)
	keys := []string{permitQueueOf(s.Name()), permitAliveOf(s.Name()), permitGrantsOf(s.Name())}
	for _, lost := range [][]string{keys, keys[:1], keys[1:2], keys[2:]} {
		held, err := s.Acquire(ctx)
		require.NoError(t, err)
		var waiting []<-chan permitsGot
		for i := range 6 {
			waiting = append(waiting, queueForPermits(within(t, time.Minute), t, admin, clients[i%2].NewFairSemaphore(s.Name()), 1))
		}
		grantable(t, admin, s.Name(), 6)
		old := map[string]string{}
		for _, key := range lost {
			rig.Eventually(t, soon, "the key is there", func() error { // on a crowded machine the waiters may seem dead for a while
				if old[key] = admin.Text("DUMP", key); old[key] == "" {
					return errors.New(key)
				}
				return nil
			})
			admin.Do("DEL", key)
		}
		rig.Eventually(t, soon, "all have their places again", func() error {
			if n := admin.Int("ZCARD", keys[0]) + admin.Int("ZCARD", keys[1]); n != 12 {
				return fmt.Errorf("%d", n)
			}
			return nil
		})
		require.NoError(t, held.Release(ctx))
		for i, w := range waiting {
			got := rig.Await(t, soon, fmt.Sprintf("number %d", i), w)
			require.NoError(t, got.err)
			got.release(t)
		}
		for key, text := range old {
			require.NoError(t, admin.Do("RESTORE", key, "0", text, "REPLACE").Error())
		}
		next, err := s.Acquire(within(t, soon)) // behind entries whose waiters are gone
		require.NoError(t, err)
		require.NoError(t, next.Release(ctx))
		fairCounts(t, s, 1, 0)
		nothingWaits(t, admin, s.Name())
	}
}

// A server that is out of memory takes permits back and grants them to waiters.
func TestFairSemaphoreOutOfMemory(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Settings|rig.Private)
	server, ctx := rig.Fresh(t), t.Context()
	admin := rig.NewAdmin(t, server)
	s := newFairPermits(t, connect(t, server, latchkey.Options{Lease: 5 * time.Second}), 2)
	held, err := s.AcquireN(ctx, 2)
	require.NoError(t, err)
	first := queueForPermits(within(t, time.Minute), t, admin, s, 1)
	second := queueForPermits(within(t, time.Minute), t, admin, s, 2)
	grantable(t, admin, s.Name(), 2)
	admin.Do("CONFIG", "SET", "maxmemory", "1")
	_, err = s.TryAcquire(ctx)
	require.Error(t, err)
	_, err = s.Acquire(within(t, soon))
	var refusal *rueidis.RedisError
	require.ErrorAs(t, err, &refusal, "it cannot join the queue")
	permitsRenewed(t, admin, s.Name()) // and waiters stay alive
	permitsGot{permits: held}.release(t)
	got := rig.Await(t, soon, "the first", first)
	require.NoError(t, got.err)
	permitsRenewed(t, admin, s.Name())
	require.NoError(t, got.permits[0].Err())
	got.release(t)
	got = rig.Await(t, soon, "the second", second)
	require.NoError(t, got.err)
	got.release(t)
	fairCounts(t, s, 2, 0)
	admin.Do("CONFIG", "SET", "maxmemory", "0")
}

// Without messages the waiters poll, and the order is the same.
func TestFairSemaphoreWithoutMessages(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Private|rig.Settings)
	server, ctx := rig.Fresh(t), t.Context()
	admin := rig.NewAdmin(t, server)
	admin.Do("ACL", "SETUSER", "default", "resetchannels")
	client := connect(t, server, latchkey.Options{Tuning: latchkey.Tuning{PollCeiling: 200 * time.Millisecond}})
	s := newFairPermits(t, client, 1)
	held, err := s.Acquire(ctx)
	require.NoError(t, err)
	var waiting []<-chan permitsGot
	for range 10 { // more than a client has woken at a time
		waiting = append(waiting, queueForPermits(within(t, time.Minute), t, admin, s, 1))
	}
	require.NoError(t, held.Release(ctx))
	for _, w := range waiting {
		got := rig.Await(t, soon, "a waiter", w)
		require.NoError(t, got.err)
		got.release(t)
	}
}

// fairPoolWorker takes permits one after the other and records the order. Its arguments: name,
// server, number of waiters.
var fairPoolWorker = rig.Child("fairPoolWorker", func(ctx context.Context, args []string) error {
	waiters, _ := strconv.Atoi(args[2])
	return withClients(args[1], func(_ *latchkey.Client, raw rueidis.Client) error {
		client, closeAll, err := dialTicket(args[1], "", neverStale)
		if err != nil {
			return err
		}
		s := client.NewFairSemaphore(args[0])
		done := make(chan error, waiters)
		for range waiters {
			go func() {
				done <- s.Do(ctx, func(ctx context.Context) error {
					id := latchkey.PermitFrom(ctx).ID()
					return raw.Do(ctx, raw.B().Rpush().Key(grantsOf(args[0])).Element(id).Build()).Error()
				})
			}()
		}
		for range waiters {
			err = errors.Join(err, <-done)
		}
		return errors.Join(err, closeAll(context.Background()))
	})
})

// Hundreds of waiters in four processes get the permit in the order of the queue.
func TestFairSemaphoreOrderAmongProcesses(t *testing.T) {
	const processes = 4
	each := max(rig.Sized(100), 20)
	server := rig.Shared()
	admin := rig.NewAdmin(t, server)
	s := newFairPermits(t, connect(t, server), 1)
	held, err := s.Acquire(t.Context())
	require.NoError(t, err)
	var children []*rig.ChildProcess
	for range processes {
		children = append(children, fairPoolWorker.Start(t, s.Name(), server.Ticket(), strconv.Itoa(each)))
	}
	permitQueueLength(t, admin, s.Name(), int64(processes*each))
	list, err := s.Waiters(t.Context())
	require.NoError(t, err)
	var want []string
	for _, w := range list {
		want = append(want, w.Owner.String())
	}
	start := time.Now()
	require.NoError(t, held.Release(t.Context()))
	require.Equal(t, want, grants(t, admin, s.Name(), int64(processes*each)))
	t.Logf("%d in %v", processes*each, time.Since(start))
	for _, child := range children {
		child.Wait(t, soon)
	}
	fairCounts(t, s, 1, 0)
	nothingWaits(t, admin, s.Name())
}
