package tests

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// calledScript matches the commands that run a script of the library.
func calledScript(name string) rig.Match {
	return func(c rig.Command) bool { return c.Script() == name }
}

// The reply of each call is lost. Requests may count twice, so that fewer go, and never more; what
// is given back is given back once.
func TestRateLimiter_lost_replies(t *testing.T) {
	t.Parallel()
	for _, each := range losses {
		t.Run(each.name, func(t *testing.T) {
			t.Parallel()
			server, name := rig.Shared(), rig.Name(t)
			tap := rig.NewTap(t, server)
			client, other := connectVia(t, server, tap.Addr()), connect(t, server)
			l := client.NewRateLimiter(name, latchkey.Rate{N: 10, Per: 10 * time.Hour, Burst: 20})
			mustAllow(t, l, 1)
			lose := func(script string) <-chan rig.Command { return tap.Lose(1, calledScript(script), each.loss) }
			counted := func(before, once int) int {
				if each.loss == rig.CutRequest {
					return before - once
				}
				return before - 2*once
			}

			hit := lose("rate/take")
			mustAllow(t, l, 1)
			rig.Await(t, soon, "the loss", hit)
			left := counted(19, 1)
			require.Equal(t, left, availableNow(t, other, name))

			mustAllow(t, other.NewRateLimiter(name, latchkey.Rate{N: 10, Per: 10 * time.Hour, Burst: 20}), left)
			hit = lose("rate/take")
			r := mustReserve(t, l, 2)
			rig.Await(t, soon, "the loss", hit)
			left = counted(0, 2)
			require.Equal(t, left, availableNow(t, other, name))

			hit = lose("rate/cancel")
			require.NoError(t, r.Cancel(t.Context()))
			rig.Await(t, soon, "the loss", hit)
			require.Equal(t, left+2, availableNow(t, other, name))

			hit = lose("rate/set")
			require.NoError(t, l.SetRate(t.Context(), latchkey.Rate{N: 1, Per: time.Hour, Burst: 30}))
			rig.Await(t, soon, "the loss", hit)
			require.Equal(t, left+2+10, availableNow(t, other, name))
		})
	}
}

// The server answers nothing. A call says so when its time is over, and a wait that may have
// counted says that this is unknown.
func TestRateLimiter_silent_server(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	tap := rig.NewTap(t, server)
	client := connectVia(t, server, tap.Addr())
	l := client.NewRateLimiter(name, hourly)
	mustAllow(t, l, 1)
	held := tap.HoldReplies(calledScript("rate/take"))
	defer held.Release()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	began := time.Now()
	err := l.Wait(ctx)
	require.ErrorIs(t, err, latchkey.ErrUnavailable)
	require.ErrorIs(t, err, latchkey.ErrUnknownOutcome)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, latchkey.ErrNotAcquired)
	require.Less(t, time.Since(began), time.Second+leeway)
}

// While the server is down, a wait goes on until its context ends; when it is back, so is the
// limiter.
func TestRateLimiter_restart(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Process)
	server := rig.Fresh(t)
	client := connect(t, server, brief)
	l := client.NewRateLimiter("limiter", hourly)
	mustAllow(t, l, 5)
	server.Kill(t)
	_, err := l.Allow(within(t, soon))
	require.ErrorIs(t, err, latchkey.ErrUnavailable)
	waits := make(chan error, 1)
	go func() { waits <- l.Wait(within(t, soon)) }()
	time.Sleep(brief.RetryBudget) // the server is down for longer than a budget
	server.Restart(t)
	require.NoError(t, rig.Await(t, soon, "the wait", waits), "the server has lost the limiter")
}

// On a server without memory, requests are an error, refusals go on, and a cancel works.
func TestRateLimiter_out_of_memory(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Settings)
	server := rig.Fresh(t)
	admin, client := rig.NewAdmin(t, server), connect(t, server)
	full, half := client.NewRateLimiter("full", hourly), client.NewRateLimiter("half", hourly)
	mustAllow(t, full, 5)
	mustAllow(t, half, 1)
	r := mustReserve(t, full, 2)
	admin.Do("CONFIG", "SET", "maxmemory", "1")
	_, err := half.Allow(within(t, soon))
	hasCode(t, err, "OOM")
	hasCode(t, half.Wait(within(t, soon)), "OOM")
	allowed, err := full.Allow(within(t, soon))
	require.NoError(t, err)
	require.False(t, allowed)
	require.NoError(t, r.Cancel(t.Context()))
	require.Zero(t, availableNow(t, client, "full"))
	require.Equal(t, 4, availableNow(t, client, "half"))
}

// A failover keeps what the replica has received.
func TestFailover_rate_limiter(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Process)
	rig.Long(t)
	s := rig.NewSentinel(t, 1)
	client, err := latchkey.Connect(within(t, soon), s.URL(), latchkey.Options{RetryBudget: 20 * time.Second})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close(within(t, soon)) })
	l := client.NewRateLimiter("limiter", hourly)
	mustAllow(t, l, 5)
	r := mustReserve(t, l, 3)
	_, admin := s.Master()
	admin.Do("SET", "in step", "1") // WAIT waits for the writes of its own connection only
	require.Equal(t, int64(1), admin.Int("WAIT", "1", "20000"))
	s.Failover()
	allowed, err := l.Allow(within(t, time.Minute))
	require.NoError(t, err)
	require.False(t, allowed)
	require.Equal(t, -3, availableNow(t, client, "limiter"))
	require.NoError(t, r.Cancel(t.Context()))
	require.Zero(t, availableNow(t, client, "limiter"))
}

// limiterRate is that of the processes that are killed.
var limiterRate = latchkey.Rate{N: 200, Per: time.Second, Burst: 10}

var limiterChild = rig.Child("limiter", func(ctx context.Context, args []string) error {
	client, closeAll, err := dialTicket(args[0], "", latchkey.Options{})
	if err != nil {
		return err
	}
	l := client.NewRateLimiter(args[1], limiterRate)
	for err == nil {
		if err = l.Wait(ctx); err == nil {
			fmt.Println("goes")
		}
	}
	return errors.Join(err, closeAll(context.WithoutCancel(ctx)))
})

// Three processes wait in turn, and are killed while they do, one after the other. The others go
// on, and all together never exceed the rate.
func TestRateLimiter_killed_processes(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	rig.Need(t, rig.Process)
	client := connect(t, server)
	mustAllow(t, client.NewRateLimiter(name, limiterRate), limiterRate.Burst)
	began := time.Now()
	goes := 0
	for range 3 {
		child := limiterChild.Start(t, server.Ticket(), name)
		for range 40 {
			child.Line(t, soon, "goes")
			goes++
		}
		child.Kill()
	}
	most := float64(limiterRate.Burst) + time.Since(began).Seconds()*float64(limiterRate.N)
	require.LessOrEqual(t, float64(goes), most)
	require.NoError(t, client.NewRateLimiter(name, limiterRate).Wait(within(t, soon)))
}

// Many clients wait at one limiter, and others try: all that go are within the rate, and almost all
// of the rate is used, in equal shares. LATCHKEY_TEST_LIMITER is the number of clients.
func TestRateLimiter_many_clients(t *testing.T) {
	t.Parallel()
	clients, span := 8, 2*time.Second
	if text := os.Getenv("LATCHKEY_TEST_LIMITER"); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		clients, span = n, 20*time.Second
	}
	server, name := rig.Shared(), rig.Name(t)
	rate := latchkey.Rate{N: 400, Per: time.Second, Burst: 20}
	all := make([]*latchkey.RateLimiter, clients)
	var opening sync.WaitGroup
	for i := range all {
		if i%50 == 0 {
			opening.Wait()
		}
		opening.Go(func() { all[i] = connect(t, server).NewRateLimiter(name, rate) })
	}
	opening.Wait()
	counts := make([]atomic.Int64, clients)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	admin := rig.NewAdmin(t, server)
	serverTime := func() time.Time {
		words := admin.Strings("TIME")
		s, _ := strconv.ParseInt(words[0], 10, 64)
		us, _ := strconv.ParseInt(words[1], 10, 64)
		return time.UnixMicro(s*1e6 + us)
	}
	var waits sync.WaitGroup
	for i, l := range all {
		waits.Go(func() {
			for {
				err := l.Wait(ctx)
				if errors.Is(err, context.Canceled) {
					return
				}
				if !assert.NoError(t, err) {
					return
				}
				counts[i].Add(1)
			}
		})
	}
	rig.Eventually(t, soon, "all have their turns", func() error {
		if counts[clients-1].Load() == 0 {
			return errors.New("the last client had none")
		}
		return nil
	})
	snapshot := func() (each []int64, sum int64) {
		for i := range counts {
			each = append(each, counts[i].Load())
			sum += each[i]
		}
		return each, sum
	}
	began := serverTime()
	before, sumBefore := snapshot()
	time.Sleep(span) // in which the turns are counted
	after, sumAfter := snapshot()
	took := serverTime().Sub(began).Seconds()
	cancel()
	waits.Wait()

	went, might := float64(sumAfter-sumBefore), took*float64(rate.N)
	var sum, squares float64
	for i := range after {
		share := float64(after[i] - before[i])
		sum += share
		squares += share * share
	}
	jain := sum * sum / (float64(clients) * squares)
	t.Logf("%d clients used %.1f %% of the rate; Jain's index of their shares is %.3f", clients, 100*went/might, jain)
	require.LessOrEqual(t, went, might+float64(rate.Burst+clients), "each may have gone before it was counted")
	rig.Target(t, went >= 0.99*might, "the rate is used to %.1f %%", 100*went/might)
	rig.Target(t, jain >= 0.98, "Jain's index is %.3f", jain)
}

// A cancel that arrives late gives nothing back that others have reserved since.
func TestRateLimiter_late_cancel(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	tap := rig.NewTap(t, server)
	client, other := connectVia(t, server, tap.Addr()), connect(t, server)
	l := client.NewRateLimiter(name, hourly)
	mustAllow(t, l, 5)
	r := mustReserve(t, l, 2)
	held := tap.HoldCommand(calledScript("rate/cancel"))
	done := make(chan error, 1)
	go func() { done <- r.Cancel(t.Context()) }()
	rig.Await(t, soon, "the cancel", held.Arrived)
	mustReserve(t, other.NewRateLimiter(name, hourly), 2)
	held.Release()
	if err := rig.Await(t, soon, "its end", done); err != nil {
		require.ErrorIs(t, err, latchkey.ErrUnknownOutcome)
	}
	becomesAvailable(t, other, name, -4)
}
