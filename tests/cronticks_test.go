package tests

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeycron"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// Schedulers of gocron run a job once per tick, on the server of the tests. Each scheduler has a
// clock that the test moves by a minute when the scheduler should come to the next tick. The
// server's clock is that of the machine. The module latchkeycron has such tests on the embedded
// server, where time is faked for both.

// tickOptions make the lock of a scheduler that dies free soon.
var tickOptions = latchkey.Options{Lease: 2 * time.Second}

// The first tick has the minimum time fleetLeast for its lock. After a tick in which the machine
// was too slow it is longer.
const (
	fleetLeast     = 200 * time.Millisecond
	fleetLeastMost = 5 * time.Second
)

// tickFleet is several machines with the same job.
type tickFleet struct {
	t        *testing.T
	server   *rig.Server
	name     string
	least    time.Duration // for which the lock of the job stays taken; it changes between ticks
	tick     atomic.Int64  // the present one
	machines []*tickMachine
	leaving  sync.WaitGroup // what machines that are gone leave behind

	mu   sync.Mutex
	jobs map[int64]int // how often the job ran, by tick
}

// tickMachine is a scheduler with a clock and a client of its own.
type tickMachine struct {
	fleet     *tickFleet
	number    int
	link      *rig.Link
	clock     *clockwork.FakeClock
	client    *latchkey.Client
	scheduler gocron.Scheduler
	leave     func()      // shuts it down, once
	dies      atomic.Bool // at the end of its next run

	asked chan tickAttempt // when it knows whether it runs the job
	ended chan struct{}    // a run
}

func newTickFleet(t *testing.T, machines int) *tickFleet {
	f := &tickFleet{t: t, server: rig.Shared(), name: rig.Name(t), least: fleetLeast, jobs: map[int64]int{}}
	for i := range machines {
		f.machines = append(f.machines, f.join(i))
	}
	t.Cleanup(func() {
		for _, m := range f.machines {
			f.leaving.Go(m.leave)
		}
		f.leaving.Wait()
	})
	return f
}

// join starts a machine. Its clock is some seconds behind that of the previous one.
func (f *tickFleet) join(number int) *tickMachine {
	m := &tickMachine{fleet: f, number: number, link: rig.NewLink(f.t, f.server), asked: make(chan tickAttempt, 1), ended: make(chan struct{}, 1)}
	client, closeAll, err := dial(f.server, m.link.Addr(), tickOptions)
	require.NoError(f.t, err)
	m.leave = sync.OnceFunc(func() { m.shutDown(closeAll) })
	m.client = client
	m.clock = clockwork.NewFakeClockAt(time.Date(2026, 1, 1, 0, 0, 30-2*number, 0, time.UTC))
	m.scheduler, err = gocron.NewScheduler(gocron.WithDistributedLocker(m), gocron.WithClock(m.clock), gocron.WithLocation(time.UTC))
	require.NoError(f.t, err)
	_, err = m.scheduler.NewJob(gocron.CronJob("* * * * *", false), gocron.NewTask(m.run), gocron.WithName(f.name))
	require.NoError(f.t, err)
	m.scheduler.Start()
	return m
}

// shutDown shuts a machine down. One that has died does not reach the server.
func (m *tickMachine) shutDown(closeAll func(context.Context) error) {
	assert.NoError(m.fleet.t, m.scheduler.Shutdown())
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	if err := closeAll(ctx); !m.dies.Load() {
		assert.NoError(m.fleet.t, err)
	}
}

// run is the job.
func (m *tickMachine) run() {
	m.fleet.mu.Lock()
	defer m.fleet.mu.Unlock()
	m.fleet.jobs[m.fleet.tick.Load()]++
}

// Lock is the locker of latchkeycron, and notes the attempt.
func (m *tickMachine) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	a := tickAttempt{tick: int(m.fleet.tick.Load()), scheduler: m.number, least: m.fleet.least, before: time.Now()}
	locker := latchkeycron.NewLocker(m.client, latchkeycron.WithAtLeast(a.least), latchkeycron.WithKeyPrefix(""))
	lock, err := locker.Lock(ctx, key)
	a.after, a.err = time.Now(), err
	m.asked <- a
	return tickRun{lock, m}, err
}

// tickRun is the lock of one run.
type tickRun struct {
	gocron.Lock

	machine *tickMachine
}

// Unlock ends the run. A machine that dies releases nothing.
func (r tickRun) Unlock(ctx context.Context) error {
	defer func() { r.machine.ended <- struct{}{} }()
	if r.machine.dies.Load() {
		r.machine.link.Cut()
		return nil
	}
	return r.Lock.Unlock(ctx)
}

// advance moves the clock of the machine to its next tick.
func (m *tickMachine) advance() {
	m.fleet.t.Helper()
	require.NoError(m.fleet.t, m.clock.BlockUntilContext(within(m.fleet.t, soon), 1), "its next run is due")
	m.clock.Advance(time.Minute)
}

// attempt waits until the machine has run the job or knows that it does not.
func (m *tickMachine) attempt() tickAttempt {
	m.fleet.t.Helper()
	a := rig.Await(m.fleet.t, soon, "the scheduler asks", m.asked)
	if a.ran() {
		rig.Await(m.fleet.t, soon, "the run ends", m.ended)
	}
	return a
}

// inTurn lets the machines come to the next tick one after the other, each after the previous one
// has run the job or knows that it does not. The first is another one in each tick.
func (f *tickFleet) inTurn(afterFirst func(*tickMachine)) (all tickAttempts) {
	f.t.Helper()
	first := int(f.tick.Add(1)) % len(f.machines)
	for i := range f.machines {
		m := f.machines[(first+i)%len(f.machines)]
		m.advance()
		all = append(all, m.attempt())
		if i == 0 {
			afterFirst(m)
		}
	}
	return all
}

// atOnce lets all machines come to the next tick at the same time.
func (f *tickFleet) atOnce() (all tickAttempts) {
	f.t.Helper()
	f.tick.Add(1)
	for _, m := range f.machines {
		m.advance()
	}
	for _, m := range f.machines {
		all = append(all, m.attempt())
	}
	return all
}

// replace replaces a machine that is gone.
func (f *tickFleet) replace(m *tickMachine) {
	f.t.Helper()
	f.leaving.Go(m.leave)
	f.machines[m.number] = f.join(m.number)
}

// dying is a tick in which the first machine dies while it runs the job.
func (f *tickFleet) dying() tickAttempts {
	f.t.Helper()
	first := f.machines[int(f.tick.Load()+1)%len(f.machines)]
	first.dies.Store(true)
	defer f.replace(first)
	return f.inTurn(func(*tickMachine) {})
}

// closing is a tick in which the first machine shuts down right after it has run the job.
func (f *tickFleet) closing() tickAttempts {
	f.t.Helper()
	var first *tickMachine
	defer func() { f.replace(first) }()
	return f.inTurn(func(m *tickMachine) {
		first = m
		m.leave()
	})
}

// next is the next tick: three machines come to it one after the other, or all at once, and in each
// fifth tick one of them dies or shuts down.
func (f *tickFleet) next() tickAttempts {
	f.t.Helper()
	switch f.tick.Load() % 10 {
	case 3:
		return f.dying()
	case 7:
		return f.closing()
	case 2, 4, 6, 8:
		return f.atOnce()
	}
	return f.inTurn(func(*tickMachine) {})
}

// runs returns how often the job ran in a tick.
func (f *tickFleet) runs(tick int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.jobs[int64(tick)]
}

// answered reports whether the server has answered all attempts. On a busy machine it may not, and
// the lock may then be taken for a while without a run.
func (all tickAttempts) answered() bool {
	return !slices.ContainsFunc(all, func(a tickAttempt) bool { return errors.Is(a.err, latchkey.ErrUnavailable) })
}

// Three schedulers, whose clocks differ, run each tick once, although machines die while they run
// the job, or shut down after it. A tick for which the machine of the test was too slow proves
// nothing: there is another one instead.
func TestCronTicksAreRunOnce(t *testing.T) {
	t.Parallel()
	n := rig.Count(t, "LATCHKEY_TEST_CRON_TICKS", max(rig.Sized(20), 8))
	f := newTickFleet(t, 3)
	admin := rig.NewAdmin(t, f.server)
	var all tickAttempts
	by := map[string]int{} // runs by scheduler
	judged, asked := 0, 0
	for ; judged < n && asked < 5*n; asked++ {
		each := f.next()
		if each.answered() && each.checkOnce(t) {
			judged++
			assert.Equal(t, 1, f.runs(each[0].tick), "jobs in tick %d", each[0].tick)
		} else {
			f.least = min(2*f.least, fleetLeastMost)
		}
		for _, a := range each {
			if a.ran() {
				by[fmt.Sprint("scheduler ", a.scheduler)]++
			}
		}
		all = append(all, each...)
		lockGone(t, admin, f.name)
	}
	runs := checkGaps(t, all)
	t.Logf("%d ticks, %d runs: %v; in %d ticks all asked in time", asked, runs, by, judged)
	checkShare(t, judged, asked)
}
