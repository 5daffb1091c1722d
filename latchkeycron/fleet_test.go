package latchkeycron_test

import (
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeycron"
	"github.com/latchkey-go/latchkey/latchkeytest"
)

// Inside synctest.Test time is faked: a Sleep moves it, and takes no real time.

// The fleets of these tests run in bubbles of testing/synctest: an hour takes no time, and a busy
// machine does not delay a tick. Each scheduler has a clock and a client of its own.
//
// Run the long form without -race: the race detector of Go 1.26 may crash in a bubble that spans a
// day (golang/go#78156).

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // the clients of killed processes log
	os.Exit(m.Run())
}

// ticks returns the number of ticks of a test with a fleet. LATCHKEY_TEST_CRON_TICKS=1000 is the
// long form, which runs without -race: the race detector of Go 1.26 becomes slow in a bubble that
// starts very many timers, and then crashes. With 36 ticks that happened in 2 of 25 runs.
func ticks(t *testing.T) int {
	t.Helper()
	if text := os.Getenv("LATCHKEY_TEST_CRON_TICKS"); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		return n
	}
	return 12
}

// skewed is a clock that is ahead of the clock of the test.
type skewed struct {
	clockwork.Clock
	ahead time.Duration
}

func (s skewed) Now() time.Time                  { return s.Clock.Now().Add(s.ahead) }
func (s skewed) Since(t time.Time) time.Duration { return s.Now().Sub(t) }
func (s skewed) Until(t time.Time) time.Duration { return t.Sub(s.Now()) }

// ledger records the runs by tick of the clock of the test, which has one tick a minute.
type ledger struct {
	mu   sync.Mutex
	runs map[int][]string // the schedulers that ran each tick
	from time.Time
}

func newLedger() *ledger { return &ledger{runs: map[int][]string{}, from: time.Now()} }

func (l *ledger) note(who string) (tick int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	tick = int(time.Since(l.from).Round(time.Minute) / time.Minute)
	l.runs[tick] = append(l.runs[tick], who)
	return tick
}

// each checks how often each tick was run, and returns how many ticks each scheduler ran.
func (l *ledger) each(t *testing.T, first, last, want int) map[string]int {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	by := map[string]int{}
	for n := first; n <= last; n++ {
		assert.Len(t, l.runs[n], want, "tick %d was run by %v", n, l.runs[n])
		for _, who := range l.runs[n] {
			by[who]++
		}
	}
	assert.Len(t, l.runs, last-first+1, "there are other runs: %v", l.runs)
	return by
}

// scheduler stands for a process: a gocron scheduler with a clock of its own and a job that is due
// each minute.
type scheduler struct {
	gocron.Scheduler
	refusals []error // why runs were skipped
}

func newScheduler(t *testing.T, ahead time.Duration, with gocron.SchedulerOption, job any) *scheduler {
	t.Helper()
	s := &scheduler{}
	var err error
	s.Scheduler, err = gocron.NewScheduler(with, gocron.WithClock(skewed{clockwork.NewRealClock(), ahead}), gocron.WithLocation(time.UTC))
	require.NoError(t, err)
	_, err = s.NewJob(gocron.CronJob("* * * * *", false), gocron.NewTask(job), gocron.WithName("nightly"),
		gocron.WithEventListeners(gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) { s.refusals = append(s.refusals, err) })))
	require.NoError(t, err)
	s.Start()
	return s
}

// inBubble runs a test with a server of its own.
func inBubble(t *testing.T, test func(t *testing.T, server *latchkeytest.Server)) {
	synctest.Test(t, func(t *testing.T) { test(t, latchkeytest.NewServer(t)) })
}

// after lets n ticks pass.
func after(n int) {
	time.Sleep(time.Duration(n) * time.Minute)
	synctest.Wait()
}

// Three schedulers whose clocks differ run each tick once, although one process is killed while it
// runs the job and another one shuts down.
func TestEachTickIsRunOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, server *latchkeytest.Server) {
		n, runs := ticks(t), newLedger()
		time.Sleep(30 * time.Second)
		var all []*scheduler
		clients := make([]*latchkey.Client, 3)
		// The scheduler that is ahead is first at each tick.
		for i, ahead := range []time.Duration{2 * time.Second, 300 * time.Millisecond, -1900 * time.Millisecond} {
			clients[i] = server.Client()
			locker, who := latchkeycron.NewLocker(clients[i]), fmt.Sprint(i)
			all = append(all, newScheduler(t, ahead, gocron.WithDistributedLocker(locker), func() {
				if runs.note(who) == n/3 && i == 0 {
					server.Crash(clients[i])
				}
			}))
		}
		after(2 * n / 3)
		require.NoError(t, all[1].Shutdown())
		require.NoError(t, clients[1].Close(t.Context()))
		after(n - 2*n/3)

		by := runs.each(t, 1, n, 1)
		assert.Equal(t, map[string]int{"0": n / 3, "1": 2*n/3 - n/3, "2": n - 2*n/3}, by)
		for _, err := range all[2].refusals {
			require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		}
		assert.Len(t, all[2].refusals, 2*n/3, "it came late to all others")
		assert.ErrorIs(t, all[0].refusals[0], latchkey.ErrUnavailable, "who is cut off does not run the job")
		assert.Len(t, all[0].refusals, n-n/3)
		require.NoError(t, all[0].Shutdown())
		require.NoError(t, all[2].Shutdown())
	})
}

// Without AtLeast the same fleet runs each tick three times, which is what the default prevents.
func TestWithoutAtLeastALateSchedulerRunsTheTickAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, server *latchkeytest.Server) {
		runs := newLedger()
		time.Sleep(30 * time.Second)
		for i, ahead := range []time.Duration{2 * time.Second, 0, -2 * time.Second} {
			locker := latchkeycron.NewLocker(server.Client(), latchkeycron.WithAtLeast(0))
			s := newScheduler(t, ahead, gocron.WithDistributedLocker(locker), func() { runs.note(fmt.Sprint(i)) })
			defer func() { require.NoError(t, s.Shutdown()) }()
		}
		after(5)
		runs.each(t, 1, 5, 3)
	})
}

// An attempt that is retried while the server fails ends before the lock of a quick run is free
// again.
func TestTheDefaultOutlastsAnAttemptThatIsRepeated(t *testing.T) {
	t.Parallel()
	assert.Greater(t, latchkeycron.DefaultAtLeast, 3*time.Second+time.Second)
}

// The leader, one of three schedulers, runs all ticks. When it shuts down, the next one leads at
// once; when it is killed, the next one leads after the lease.
func TestOneSchedulerLeads(t *testing.T) {
	inBubble(t, func(t *testing.T, server *latchkeytest.Server) {
		n, runs := ticks(t), newLedger()
		time.Sleep(10 * time.Second) // so that a lease ends before the next tick
		clients := make([]*latchkey.Client, 3)
		electors := make([]*latchkeycron.Elector, 3)
		all := make([]*scheduler, 3)
		for i, ahead := range []time.Duration{2 * time.Second, 300 * time.Millisecond, -1900 * time.Millisecond} {
			clients[i] = server.Client()
			electors[i] = latchkeycron.NewElector(clients[i], "scheduler", latchkeycron.WithValue(fmt.Sprint(i)))
			time.Sleep(time.Second) // the electors campaign in this order
			all[i] = newScheduler(t, ahead, gocron.WithDistributedElector(electors[i]), func() { runs.note(fmt.Sprint(i)) })
		}
		after(n / 3)
		require.NoError(t, all[0].Shutdown())
		require.NoError(t, electors[0].Close(t.Context()))
		after(n / 3)
		server.Crash(clients[1]) // its scheduler keeps running
		after(3)
		_ = clients[1].Close(t.Context())
		after(n - 2*(n/3) - 3)

		by := runs.each(t, 1, n, 1)
		assert.Equal(t, map[string]int{"0": n / 3, "1": n / 3, "2": n - 2*(n/3)}, by)
		for i := 1; i < 3; i++ {
			require.NoError(t, all[i].Shutdown())
			require.NoError(t, electors[i].Close(t.Context()))
		}
	})
}
