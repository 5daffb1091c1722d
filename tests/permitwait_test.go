package tests

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// byMessages rules out polling and kept permits for the duration of a test.
var byMessages = latchkey.Options{Lease: 2 * time.Hour, Tuning: latchkey.Tuning{PollCeiling: time.Hour, StaleWaiterTimeout: time.Hour}}

// scripts is the number of scripts that were sent, as text or by digest.
func scripts(calls map[string]int64) int64 { return calls["eval"] + calls["evalsha"] }

// Ten permits are released at once. Ten waiters in ten clients all get one after two round trips,
// by the messages alone.
func TestReleaseOfManyWakesAsMany(t *testing.T) {
	rig.Need(t, rig.Stats)
	server := rig.Shared()
	admin := rig.NewAdmin(t, server)
	require.NoError(t, rig.InTime(t, func(int) error { // on a busy machine, some may still ask when they listen
		const waiters = 10
		giver := newSemaphore(t, connect(t, server), 0)
		require.ErrorIs(t, giver.TryAcquire(t.Context()), latchkey.ErrNotAcquired, "and the server knows the script")
		before, took := admin.CommandStats(), make(chan error, waiters)
		for range waiters {
			s := connect(t, server, byMessages).NewSemaphore(giver.Name())
			go func() { took <- s.Acquire(within(t, time.Minute)) }()
		}
		rig.Eventually(t, soon, "all listen, and have asked twice", func() error {
			listen, asked := admin.Subscribers("redisson_sc:{"+giver.Name()+"}"), scripts(admin.Since(before))
			if listen != waiters || asked < 2*waiters {
				return fmt.Errorf("%d listen, and there were %d attempts", listen, asked)
			}
			return nil
		})
		before = admin.CommandStats()
		start := time.Now()
		require.NoError(t, giver.ReleaseN(t.Context(), waiters))
		for range waiters {
			require.NoError(t, rig.Await(t, soon, "a waiter", took))
		}
		t.Logf("ten waiters in ten clients have their permits after %v", time.Since(start))
		sent := scripts(admin.Since(before))
		assert.Zero(t, available(t, giver))
		if sent > waiters+1 {
			return fmt.Errorf("%d scripts, and not one attempt each and the release", sent)
		}
		return nil
	}))
}

// The waiters of one client are served in order, and a large request in front of them is not
// overtaken.
func TestLargeRequestIsNotOvertakenByItsOwnClient(t *testing.T) {
	server := rig.Shared()
	giver := newSemaphore(t, connect(t, server), 7)
	require.NoError(t, giver.AcquireN(t.Context(), 7))
	s := connect(t, server, byMessages).NewSemaphore(giver.Name())
	admin := rig.NewAdmin(t, server)
	type grant struct {
		who int
		err error
	}
	granted := make(chan grant, 4)
	ask := func(who, n int) {
		go func() { granted <- grant{who, s.AcquireN(within(t, soon), n)} }()
	}
	ask(0, 7)
	awaitWaiter(t, admin, giver.Name())
	for who := 1; who < 4; who++ {
		ask(who, 1)
	}
	for range 6 {
		require.NoError(t, giver.Release(t.Context()))
	}
	select {
	case g := <-granted:
		t.Fatalf("%d was granted before there were seven: %v", g.who, g.err)
	case <-time.After(100 * time.Millisecond):
	}
	require.NoError(t, giver.Release(t.Context()))
	first := rig.Await(t, soon, "the large one", granted)
	assert.Zero(t, first.who)
	require.NoError(t, first.err)
	require.NoError(t, giver.ReleaseN(t.Context(), 3))
	for range 3 {
		require.NoError(t, rig.Await(t, soon, "a small one", granted).err)
	}
	assert.Zero(t, available(t, giver))
}

// Eight clients contend for one permit each, and two for seven of the ten. Permits are kept for a
// request that has waited long, so that each client gets what it wants again and again.
func TestLargeRequestsAreNotStarved(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	options := latchkey.Options{Tuning: latchkey.Tuning{StaleWaiterTimeout: 300 * time.Millisecond, Turn: -1}} // each pass is a grant of the server
	giver := newSemaphore(t, connect(t, server, options), capacity)
	const clients, enough = 10, 4
	ctx, stop := context.WithCancel(t.Context())
	var times [clients]atomic.Int32
	all := rig.Goroutines(t)
	for i := range clients {
		n := 1
		if i >= 8 {
			n = 7
		}
		s := connect(t, server, options).NewSemaphore(giver.Name())
		for range 3 { // goroutines of one client wait too
			all.Go(func() {
				for ctx.Err() == nil {
					if !assert.NoError(t, s.AcquireN(context.WithoutCancel(ctx), n)) {
						return
					}
					times[i].Add(1)
					rest(100 * time.Millisecond)
					assert.NoError(t, s.ReleaseN(context.WithoutCancel(ctx), n))
				}
			})
		}
	}
	for i := range clients {
		rig.Eventually(t, soon, fmt.Sprintf("client %d has had its permits", i), func() error {
			if n := times[i].Load(); n < enough {
				return fmt.Errorf("%d times", n)
			}
			return nil
		})
	}
	stop()
	all.Wait()
	assert.Equal(t, capacity, available(t, giver))
	admin := rig.NewAdmin(t, server)
	rig.Eventually(t, soon, "nothing of the waiters is left", func() error { // a client that is called late leaves in the background
		left := slices.DeleteFunc(keysLeft(admin, giver.Name()), func(key string) bool {
			return key == giver.Name() || key == "latchkey_sc_total:{"+giver.Name()+"}" ||
				key == "latchkey_sc_bar:{"+giver.Name()+"}" // which expires by itself
		})
		if len(left) > 0 {
			return fmt.Errorf("%q", left)
		}
		return nil
	})
}

// Permits that are kept for a waiter that has died or given up become free again.
func TestPermitsKeptForTheDeadComeBack(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	options := latchkey.Options{Tuning: latchkey.Tuning{StaleWaiterTimeout: 500 * time.Millisecond}}
	giver := newSemaphore(t, connect(t, server, options), 10)
	require.NoError(t, giver.AcquireN(t.Context(), 5))
	kept := func() error {
		err := giver.TryAcquire(t.Context())
		if errors.Is(err, latchkey.ErrNotAcquired) {
			return nil
		}
		return errors.Join(err, errors.New("others can have them"), giver.Release(t.Context()))
	}
	ctx, cancel := context.WithCancel(t.Context())
	gaveUp := make(chan error, 1)
	s := connect(t, server, options).NewSemaphore(giver.Name())
	go func() { gaveUp <- s.AcquireN(ctx, 9) }()
	rig.Eventually(t, soon, "permits are kept", kept)
	cancel()
	require.ErrorIs(t, rig.Await(t, soon, "the end of the wait", gaveUp), context.Canceled)
	rig.Eventually(t, soon, "they are let go", func() error { return giver.TryAcquire(t.Context()) })

	link := rig.NewLink(t, server)
	dead := connectVia(t, server, link.Addr(), options).NewSemaphore(giver.Name())
	dying, end := context.WithCancel(t.Context())
	go func() { gaveUp <- dead.AcquireN(dying, 9) }()
	rig.Eventually(t, soon, "permits are kept", kept)
	link.Cut()
	require.NoError(t, giver.Acquire(within(t, soon)))
	end()
	require.Error(t, rig.Await(t, soon, "the end of the wait", gaveUp))
}

// holdAll acquires all permits and waits to be killed. Its arguments: name, ticket, number of
// permits, lease.
var holdAll = rig.Child("hold-all", func(ctx context.Context, args []string) error {
	n, err1 := strconv.Atoi(args[2])
	lease, err2 := time.ParseDuration(args[3])
	client, _, err3 := dialTicket(args[1], "", latchkey.Options{Lease: lease})
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	if _, err := client.NewPermitSemaphore(args[0]).AcquireN(ctx, n); err != nil {
		return err
	}
	fmt.Println("holds")
	select {}
})

// The holder of all permits is killed. A waiter gets in when the lease ends, without any other
// traffic.
func TestPermitsOfAKilledProcessComeBack(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	const lease = 2 * time.Second
	s := newPermits(t, connect(t, server, byMessages), capacity)
	child := holdAll.Start(t, s.Name(), server.Ticket(), strconv.Itoa(capacity), lease.String())
	child.Line(t, soon, "holds")
	taken := make(chan error, 1)
	go func() {
		_, err := s.AcquireN(within(t, soon), capacity)
		taken <- err
	}()
	awaitWaiter(t, rig.NewAdmin(t, server), s.Name())
	child.Kill()
	start := time.Now()
	require.NoError(t, rig.Await(t, soon, "the waiter", taken))
	t.Logf("%d permits taken %v after their holder was killed, lease %v", capacity, time.Since(start), lease)
	counts(t, s, 0, capacity)
}

// A hundred thousand permits have expired. Every call works and counts correctly, and none takes
// the server long.
func TestManyExpiredPermits(t *testing.T) {
	rig.Need(t, rig.Settings)
	n := rig.Sized(100_000)
	server, ctx := rig.Fresh(t), t.Context()
	admin := rig.NewAdmin(t, server)
	s := connect(t, server).NewPermitSemaphore("pool")
	warm, err := s.TrySetPermits(ctx, n)
	require.True(t, warm, err)
	expire(admin, s.Name(), n)
	useEverything(t, s, n)                                               // this loads the scripts
	rig.Eventually(t, soon, "the slowest script is fast", func() error { // others may use the processor of the server
		expire(admin, s.Name(), n)
		times := scriptTimes(t, admin, func() { useEverything(t, s, n) })
		require.Greater(t, len(times), 20)
		slowest := times[len(times)-1]
		t.Logf("%d expired permits: the slowest of %d scripts took %v", n, len(times), slowest)
		if slowest >= time.Millisecond {
			return fmt.Errorf("a script took %v", slowest)
		}
		return nil
	})
}

// expire turns n of the available permits into expired ones.
func expire(admin *rig.Admin, name string, n int) {
	for start := 0; start < n; start += 1000 {
		words := []string{"ZADD", idsOf(name)}
		for i := start; i < start+1000; i++ {
			id := make([]byte, 16)
			binary.BigEndian.PutUint64(id, uint64(i))
			words = append(words, "1000", string(id))
		}
		admin.Do(words...)
	}
	admin.Do("SET", name, "0")
	admin.Do("ZREMRANGEBYRANK", idsOf(name), strconv.Itoa(n), "-1")
}

// useEverything calls everything that a semaphore with n permits can do. All n are available.
func useEverything(t *testing.T, s *latchkey.PermitSemaphore, n int) {
	t.Helper()
	ctx := t.Context()
	counts(t, s, n, 0)
	permits, err := s.AcquireN(ctx, 20)
	require.NoError(t, err)
	p, err := s.TryAcquire(ctx)
	require.NoError(t, err)
	counts(t, s, n-21, 21)
	_, err = s.RemainingLease(ctx, p.ID())
	require.NoError(t, err)
	require.NoError(t, s.SetLease(ctx, p.ID(), time.Minute))
	require.NoError(t, p.Extend(ctx, 2*time.Minute))
	require.NoError(t, p.Release(ctx))
	ids := make([]string, 0, len(permits))
	for _, p := range permits {
		ids = append(ids, p.ID())
	}
	_, err = s.Release(ctx, ids...)
	require.NoError(t, err)
	require.NoError(t, s.AddPermits(ctx, 5))
	require.NoError(t, s.SetPermits(ctx, n))
	_, err = s.TrySetPermits(ctx, 1)
	require.NoError(t, err)
	counts(t, s, n, 0)
}
