package tests

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
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

// A Once when replies, results and leases are late or lost, when processes die, and when the server
// is full or replaced.

// A lost reply causes neither a second run nor a lost result.
func TestOnce_lostReplies(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	for _, loss := range []rig.Loss{rig.Cut, rig.CutRequest} {
		for n := 1; n <= 2; n++ {
			tap := rig.NewTap(t, server)
			o := connectVia(t, server, tap.Addr()).NewOnce(fmt.Sprint(name, loss, n), time.Hour)
			_, done, err := o.Result(t.Context()) // its connection is up
			require.NoError(t, err)
			require.False(t, done)
			lost := tap.Lose(n, rig.Both(rig.Named("EVAL", "EVALSHA"), rig.Mentions(o.Name())), loss)
			runs := 0
			result := doOnce(t, o, func(context.Context) ([]byte, error) {
				runs++
				return []byte("a result"), nil
			})
			rig.Await(t, soon, "a reply is lost", lost)
			require.Equal(t, 1, runs)
			require.Equal(t, "a result", string(result))
			require.Equal(t, "a result", string(doOnce(t, connect(t, server).NewOnce(o.Name(), time.Hour), never(t))))
		}
	}
}

// A result that is late, from a process that has lost its run, does not replace that of the next
// run, whether the next one still runs or has succeeded.
func TestOnce_lateResult(t *testing.T) {
	t.Parallel()
	for _, before := range []bool{true, false} {
		t.Run(fmt.Sprint("while the next one runs ", before), func(t *testing.T) {
			t.Parallel()
			server, name := rig.Shared(), rig.Name(t)
			tap := rig.NewTap(t, server)
			old := runInBackground(t, connectVia(t, server, tap.Addr()).NewOnce(name, time.Hour), "late")
			old.runs(t)
			held, release := holdCommands(tap, rig.Mentions("late"))
			old.end <- nil
			rig.Await(t, soon, "the result is on its way", held.Arrived)
			rig.NewAdmin(t, server).Do("DEL", name)
			next := runInBackground(t, connect(t, server).NewOnce(name, time.Hour), "new")
			next.runs(t)
			if !before {
				require.Equal(t, onceResult{"new", nil}, next.ends(t, nil))
			}
			release()
			got := rig.Await(t, soon, "the late one", old.result)
			require.ErrorIs(t, got.err, latchkey.ErrLost)
			require.NotErrorIs(t, got.err, latchkey.ErrUnavailable)
			require.Empty(t, got.result)
			if before {
				require.Equal(t, onceResult{"new", nil}, next.ends(t, nil))
			}
			require.Equal(t, "new", string(doOnce(t, connect(t, server).NewOnce(name, time.Hour), never(t))))
		})
	}
}

// A result that never reached the server was not stored, although an earlier copy of a release
// would explain that the owner is gone.
func TestOnce_resultThatNeverArrived(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	tap := rig.NewTap(t, server)
	run := runInBackground(t, connectVia(t, server, tap.Addr(), latchkey.Options{Lease: time.Minute, RetryBudget: soon}).NewOnce(name, time.Hour), "cut off")
	run.runs(t)
	lost := tap.Lose(2, rig.Mentions("cut off"), rig.CutRequest)
	stop := tap.LoseAll(rig.Mentions("cut off"), rig.CutRequest)
	run.end <- nil
	rig.Await(t, soon, "the result is repeated", lost)
	rig.NewAdmin(t, server).Do("DEL", name)
	stop()
	got := rig.Await(t, 2*soon, "the end of the run", run.result)
	require.ErrorIs(t, got.err, latchkey.ErrLost)
	require.Empty(t, got.result)
}

// If the server does not confirm the result, Do says so, and the background stores it.
func TestOnce_unconfirmedResult(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	tap := rig.NewTap(t, server)
	client := connectVia(t, server, tap.Addr(), latchkey.Options{RetryBudget: 200 * time.Millisecond, Lease: time.Minute})
	run := runInBackground(t, client.NewOnce(name, time.Hour), "a result")
	run.runs(t)
	stop := tap.LoseAll(rig.Mentions("a result"), rig.CutRequest)
	got := run.ends(t, nil)
	require.ErrorIs(t, got.err, latchkey.ErrUnknownOutcome)
	require.NotErrorIs(t, got.err, latchkey.ErrUnavailable)
	stop()
	require.Equal(t, "a result", string(doOnce(t, connect(t, server).NewOnce(name, time.Hour), never(t))))
}

// Without messages, waiters learn of the result by polling.
func TestOnce_lostMessages(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	tap := rig.NewTap(t, server)
	waiter := connectVia(t, server, tap.Addr(), latchkey.Options{Tuning: latchkey.Tuning{PollCeiling: 200 * time.Millisecond}})
	run := runInBackground(t, connect(t, server).NewOnce(name, time.Hour), "a result")
	run.runs(t)
	tap.DropMessages(true)
	waiting := runInBackground(t, waiter.NewOnce(name, time.Hour), "another")
	rig.Eventually(t, soon, "it waits", func() error {
		if waiter.Waiting()[latchkey.KindOnce] == 0 {
			return errors.New("it does not")
		}
		return nil
	})
	run.ends(t, nil)
	require.Equal(t, onceResult{"a result", nil}, rig.Await(t, soon, "the result", waiting.result))
}

// Close ends the context of the run, and lets another client run.
func TestOnce_close(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	client := connect(t, server)
	run := runInBackground(t, client.NewOnce(name, time.Hour), "of a closed client")
	ctx := run.runs(t)
	require.NoError(t, client.Close(within(t, soon)))
	rig.Await(t, soon, "the end of the context", ctx.Done())
	require.ErrorIs(t, context.Cause(ctx), latchkey.ErrClosed)
	require.Equal(t, "of another", string(doOnce(t, connect(t, server).NewOnce(name, time.Hour), returns("of another"))))
	got := run.ends(t, nil)
	require.ErrorIs(t, got.err, latchkey.ErrClosed)
	require.ErrorIs(t, firstOf(client.NewOnce(name, time.Hour).Do(t.Context(), never(t))), latchkey.ErrClosed)
	require.Equal(t, "of another", string(doOnce(t, connect(t, server).NewOnce(name, time.Hour), never(t))))
}

// A limit of the hold ends the run.
func TestOnce_maxHold(t *testing.T) {
	t.Parallel()
	client, name := connect(t, rig.Shared()), rig.Name(t)
	o := client.NewOnce(name, time.Hour)
	_, err := o.Do(t.Context(), func(ctx context.Context) ([]byte, error) {
		<-ctx.Done()
		return []byte("late"), nil
	}, latchkey.MaxHold(200*time.Millisecond))
	require.ErrorIs(t, err, latchkey.ErrMaxHold)
	require.Equal(t, "in time", string(doOnce(t, o, returns("in time"))))
}

// On a server that is out of memory nothing runs, but a run that began before can end.
func TestOnce_outOfMemory(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Settings)
	server := rig.Fresh(t)
	admin, client := rig.NewAdmin(t, server), connect(t, server)
	succeeds := runInBackground(t, client.NewOnce("succeeds", time.Hour), string(make([]byte, 1<<16)))
	succeeds.runs(t)
	fails := runInBackground(t, client.NewOnce("fails", time.Hour), "")
	fails.runs(t)
	admin.Do("CONFIG", "SET", "maxmemory", "1")
	_, err := client.NewOnce("other", time.Hour).Do(within(t, soon), never(t))
	hasCode(t, err, "OOM")
	broken := errors.New("broken")
	require.NoError(t, succeeds.ends(t, nil).err)
	require.Equal(t, broken, fails.ends(t, broken).err)
	require.NoError(t, free(admin, "fails")())
	require.Len(t, doOnce(t, client.NewOnce("succeeds", time.Hour), never(t)), 1<<16)
	require.NoError(t, client.NewOnce("succeeds", time.Hour).Forget(t.Context()))
	require.NoError(t, free(admin, "succeeds")())
}

// A master that takes over and does not know the result lets the work run again, with a larger
// token. The old run learns that it is lost.
func TestFailover_that_loses_a_success(t *testing.T) {
	t.Parallel()
	f := newLockFailover(t, fencedKind)
	old := connectVia(t, f.Master, f.tap().Addr(), faultOptions).NewOnce(f.name, time.Hour)
	f.fallBehind()
	run := runInBackground(t, old, "of the former master")
	ctx := run.runs(t)
	token := old.HoldFrom(ctx).Token()
	f.over()
	next := connectVia(t, f.Replicas[0], f.Replicas[0].Addr(), faultOptions).NewOnce(f.name, time.Hour)
	result, err := next.Do(within(t, soon), func(ctx context.Context) ([]byte, error) {
		assert.Greater(t, next.HoldFrom(ctx).Token(), token)
		return []byte("of the next"), nil
	})
	require.NoError(t, err)
	require.Equal(t, "of the next", string(result))
	rig.Await(t, soon, "the old run is lost", ctx.Done())
	require.ErrorIs(t, run.ends(t, nil).err, latchkey.ErrLost)
	require.Equal(t, "of the next", string(doOnce(t, next, never(t))))
}

// A run whose slot moves ends as any other, and its waiter has the result.
func TestMigration_of_a_run(t *testing.T) {
	rig.Long(t)
	t.Parallel()
	cluster := rig.NewCluster(t)
	name := rig.Name(t)
	a, b := connectCluster(t, cluster, latchkey.Options{}), connectCluster(t, cluster, latchkey.Options{})
	run := runInBackground(t, a.NewOnce(name, time.Hour), "a result")
	run.runs(t)
	waiting := runInBackground(t, b.NewOnce(name, time.Hour), "another")
	rig.Eventually(t, soon, "b listens", onceHeard(rig.NewAdmin(t, cluster.Server()), name, 1))
	cluster.MoveSlot(name)
	require.Equal(t, onceResult{"a result", nil}, run.ends(t, nil))
	require.Equal(t, onceResult{"a result", nil}, rig.Await(t, 2*soon, "the result", waiting.result))
	require.NoError(t, b.NewOnce(name, time.Hour).Forget(t.Context()))
}

// What a run writes: its token, and that it has begun. The storage refuses a smaller token.
const onceWrite = `
if tonumber(redis.call('hget', KEYS[1], 'token') or 0) > tonumber(ARGV[1]) then
  return 0
end
redis.call('hset', KEYS[1], 'token', ARGV[1])
redis.call('hincrby', KEYS[1], 'begun', 1)
return 1`

// onceProcess does the work "name 0", "name 1" and so on. Its arguments: name, server, how many.
// The test kills it at any moment.
var onceProcess = rig.Child("once", func(ctx context.Context, args []string) error {
	client, closeAll, err := dialTicket(args[1], "", latchkey.Options{Lease: crashLease})
	if err != nil {
		return err
	}
	server, err := rig.Attach(args[1])
	if err != nil {
		return err
	}
	raw, err := server.Client()
	if err != nil {
		return err
	}
	defer raw.Close()
	fmt.Println("begins")
	many, _ := strconv.Atoi(args[2])
	for i := range many {
		name := fmt.Sprint(args[0], " ", i)
		o := client.NewOnce(name, latchkey.Forever)
		_, err := o.Do(ctx, func(ctx context.Context) ([]byte, error) {
			token := strconv.FormatInt(o.HoldFrom(ctx).Token(), 10)
			wrote, err := rueidis.NewLuaScript(onceWrite).Exec(ctx, raw, []string{"work:{" + name + "}"}, []string{token}).AsInt64()
			if err == nil && wrote != 1 {
				fmt.Println("refused", name)
			}
			time.Sleep(rand.N(20 * time.Millisecond)) // a fault may happen
			return []byte(token), err
		})
		if err != nil && !errors.Is(err, latchkey.ErrLost) {
			return err
		}
	}
	fmt.Println("done")
	return closeAll(ctx)
})

// Processes are killed at any point of their runs. Each work succeeds: its result is that of the
// last run that wrote, and nothing ran after the success.
func TestOnce_killedProcesses(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	works, kills := rig.Sized(400), rig.Sized(16)
	start := func() *rig.ChildProcess {
		p := onceProcess.Start(t, name, server.Ticket(), strconv.Itoa(works))
		p.Line(t, soon, "begins")
		return p
	}
	running := []*rig.ChildProcess{start(), start()}
	for i := range kills {
		time.Sleep(rand.N(200 * time.Millisecond)) // the fault comes at any time
		running[i%2].Kill()
		running[i%2] = start()
	}
	for _, p := range running {
		p.Line(t, 2*time.Minute, "done")
	}
	client, raw := connect(t, server), server.Raw(t)
	again := 0
	for i := range works {
		work := fmt.Sprint(name, " ", i)
		wrote, err := raw.Do(t.Context(), rig.Build(raw, "HGETALL", "work:{"+work+"}")).AsStrMap()
		require.NoError(t, err)
		if wrote["begun"] != "1" {
			again++
		}
		require.Equal(t, wrote["token"], string(doOnce(t, client.NewOnce(work, latchkey.Forever), never(t))), "%v", wrote)
		require.NoError(t, client.NewOnce(work, latchkey.Forever).Forget(t.Context()))
		require.NoError(t, raw.Do(t.Context(), rig.Build(raw, "DEL", "work:{"+work+"}")).Error())
	}
	t.Logf("%d works, %d kills; %d works were begun more than once", works, kills, again)
}

// A million calls of several clients on names that succeed, fail and are forgotten. At most one
// runs at a time, and each success is the only one until it is forgotten.
func TestOnce_manyOperations(t *testing.T) {
	if os.Getenv("LATCHKEY_TEST_ONCE") == "" {
		t.Parallel()
	}
	total := int64(rig.Count(t, "LATCHKEY_TEST_ONCE", rig.Sized(20_000)))
	const clients, goroutines, names = 4, 8, 16
	prefix := rig.Name(t)
	type work struct {
		running   atomic.Int32
		mu        sync.Mutex
		token     int64
		succeeded string // "" if not, or forgotten
	}
	works := make([]*work, names)
	for i := range works {
		works[i] = &work{}
	}
	broken := errors.New("broken")
	var calls, runs, failures, forgotten atomic.Int64
	do := func(o *latchkey.Once, w *work) {
		before := func() string { w.mu.Lock(); defer w.mu.Unlock(); return w.succeeded }()
		ran := false
		result, err := o.Do(within(t, time.Minute), func(ctx context.Context) ([]byte, error) {
			ran = true
			assert.Equal(t, int32(1), w.running.Add(1), "two run")
			defer w.running.Add(-1)
			token := o.HoldFrom(ctx).Token()
			w.mu.Lock()
			defer w.mu.Unlock()
			assert.Empty(t, w.succeeded, "it ran after a success")
			assert.Greater(t, token, w.token)
			w.token = token
			runs.Add(1)
			if rand.N(4) == 0 {
				failures.Add(1)
				return nil, broken
			}
			w.succeeded = strconv.FormatInt(token, 10)
			return []byte(w.succeeded), nil
		})
		switch {
		case err != nil:
			assert.True(t, ran, "%v", err)
			assert.ErrorIs(t, err, broken)
		case before != "" && !ran:
			number, err := strconv.ParseInt(string(result), 10, 64)
			assert.NoError(t, err)
			least, _ := strconv.ParseInt(before, 10, 64)
			assert.GreaterOrEqual(t, number, least, "an older result")
		}
	}
	forget := func(o *latchkey.Once, w *work) { // excludes the others, so that the reference is exact
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.succeeded == "" {
			return
		}
		_, done, err := o.Result(within(t, time.Minute))
		assert.NoError(t, err)
		if !done {
			return // its result is on its way
		}
		assert.NoError(t, o.Forget(within(t, time.Minute)))
		w.succeeded = ""
		forgotten.Add(1)
	}
	var all sync.WaitGroup
	for range clients {
		client := connect(t, rig.Shared())
		for range goroutines {
			all.Go(func() {
				for calls.Add(1) <= total && !t.Failed() {
					i := rand.N(names)
					o := client.NewOnce(fmt.Sprint(prefix, i), time.Hour)
					if rand.N(10) == 0 {
						forget(o, works[i])
					} else {
						do(o, works[i])
					}
				}
			})
		}
	}
	all.Wait()
	t.Logf("%d calls, %d runs, %d failures, %d forgotten", total, runs.Load(), failures.Load(), forgotten.Load())
}

// A copy of the acquisition that arrives after the success was forgotten is undone: nobody waits
// for a run that nobody has.
func TestOnce_late_copy_of_the_acquisition(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	tap, admin := rig.NewTap(t, server), rig.NewAdmin(t, server)
	client := connectVia(t, server, tap.Addr(), latchkey.Options{Lease: time.Hour})
	doOnce(t, client.NewOnce(name+"warm", time.Hour), returns("")) // loads the scripts
	late := tap.HoldCommand(rig.Both(calledScript("once/acquire"), rig.Mentions(name)))
	o, done := client.NewOnce(name, time.Hour), make(chan error, 1)
	go func() { done <- firstOf(o.Do(context.Background(), returns("x"))) }()
	rig.Await(t, soon, "the first attempt", late.Arrived)
	require.NoError(t, rig.Await(t, time.Minute, "the success of the second", done))
	require.NoError(t, o.Forget(t.Context()))
	late.Release() // when the late copy runs, nobody but the server knows, and it may end unseen
	for seen, end := false, time.Now().Add(10*time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		there := admin.Int("EXISTS", name) == 1
		if seen && !there {
			return
		}
		seen = seen || there
	}
	rig.Eventually(t, time.Minute, "the late run is over", free(admin, name))
}
