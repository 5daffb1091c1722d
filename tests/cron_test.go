package tests

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeycron"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// Schedulers of gocron run side by side, by the clock of the machine. cronticks_test.go moves their
// clocks.

// cronTick is the time between two runs. The schedulers are cronSkew apart, and the lock stays
// taken for cronLeast.
const (
	cronTick  = 400 * time.Millisecond
	cronSkew  = 50 * time.Millisecond
	cronLeast = 200 * time.Millisecond
)

// startScheduler starts a scheduler whose job is due at first, and then in each tick.
func startScheduler(t *testing.T, name string, first time.Time, with gocron.SchedulerOption, job func()) gocron.Scheduler {
	t.Helper()
	s, err := gocron.NewScheduler(with)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Shutdown() })
	_, err = s.NewJob(gocron.DurationJob(cronTick), gocron.NewTask(job), gocron.WithName(name),
		gocron.WithStartAt(gocron.WithStartDateTime(first)))
	require.NoError(t, err)
	s.Start()
	return s
}

// timed is a locker that records when each lock was acquired, and by which scheduler.
type timed struct {
	gocron.Locker
	who int
	all *acquisitions
}

type acquisitions struct {
	mu  sync.Mutex
	all tickAttempts
}

func (l timed) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	a := tickAttempt{scheduler: l.who, before: time.Now(), least: cronLeast}
	lock, err := l.Locker.Lock(ctx, key)
	if err != nil {
		return nil, err
	}
	a.after = time.Now()
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	l.all.all = append(l.all.all, a)
	return lock, nil
}

func (r *acquisitions) seen() tickAttempts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}

// await waits for n more acquisitions and returns them.
func (r *acquisitions) await(t *testing.T, n int) tickAttempts {
	t.Helper()
	before := len(r.seen())
	rig.Eventually(t, soon+time.Duration(2*n)*cronTick, fmt.Sprint(n, " runs"), func() error {
		if found := len(r.seen()) - before; found < n {
			return fmt.Errorf("there are %d", found)
		}
		return nil
	})
	return r.seen()[before:]
}

// Two runs never begin within the minimum time of the lock, although one scheduler is cut off,
// another is closed, and only the last goes on.
func TestCronLockerOncePerTick(t *testing.T) {
	t.Parallel()
	server, name, n := rig.Shared(), rig.Name(t), max(rig.Sized(20), 3)
	link := rig.NewLink(t, server)
	settings := latchkey.Options{Lease: time.Second}
	cut, closed, last := connectVia(t, server, link.Addr(), settings), connect(t, server, settings), connect(t, server, settings)
	var all acquisitions
	var jobs atomic.Int64
	began := time.Now()
	schedulers := make([]gocron.Scheduler, 3)
	for i, client := range []*latchkey.Client{cut, closed, last} {
		locker := timed{latchkeycron.NewLocker(client, latchkeycron.WithAtLeast(cronLeast), latchkeycron.WithKeyPrefix("")), i, &all}
		first := began.Add(cronTick + time.Duration(i)*cronSkew)
		schedulers[i] = startScheduler(t, name, first, gocron.WithDistributedLocker(locker), func() { jobs.Add(1) })
	}
	all.await(t, n)
	link.Cut()
	all.await(t, n)
	require.NoError(t, schedulers[1].Shutdown())
	require.NoError(t, closed.Close(t.Context()))
	for _, a := range all.await(t, n) {
		assert.Equal(t, 2, a.scheduler, "who is gone runs jobs")
	}
	require.NoError(t, schedulers[2].Shutdown())

	seen := all.seen()
	assert.EqualValues(t, len(seen), jobs.Load())
	checkGaps(t, seen)
	took := seen[len(seen)-1].before.Sub(seen[0].before)
	t.Logf("%d runs in %v: %.2f in a tick", len(seen), took, float64(len(seen)-1)*cronTick.Seconds()/took.Seconds())
}

// Exactly one elector leads. The next one leads at once after a Close, and within a lease after the
// leader is cut off.
func TestCronElectorTakesOver(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	link := rig.NewLink(t, server)
	var all []*latchkeycron.Elector
	leader := func(want int) func() error {
		return func() error {
			for i, e := range all {
				if leads := e.IsLeader(t.Context()) == nil; leads != (i == want) {
					return fmt.Errorf("%d leads: %t", i, leads)
				}
			}
			return nil
		}
	}
	for i, client := range []*latchkey.Client{
		connect(t, server, latchkey.Options{Lease: time.Hour}),
		connectVia(t, server, link.Addr(), latchkey.Options{Lease: 3 * time.Second}),
		connect(t, server),
	} {
		e := latchkeycron.NewElector(client, name)
		all = append(all, e)
		t.Cleanup(func() { _ = e.Close(within(t, 2*time.Second)) })
		if i == 0 {
			rig.Eventually(t, soon, "the first leads", leader(0))
		}
		electionQueued(t, rig.NewAdmin(t, server), name, i)
	}
	require.NoError(t, leader(0)())
	require.NoError(t, all[0].Close(t.Context()))
	rig.Eventually(t, soon, "the second leads, although the lease of the first is an hour", leader(1))

	stop, done := make(chan struct{}), make(chan struct{})
	go func() { // frequent checks never see two leaders
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
			next := all[2].IsLeader(t.Context()) == nil // then the previous one no longer leads
			if next && all[1].IsLeader(t.Context()) == nil {
				assert.Fail(t, "two lead")
				return
			}
		}
	}()
	link.Cut()
	rig.Eventually(t, soon, "the third leads, when the lease of the second is over", leader(2))
	close(stop)
	<-done
	assert.Greater(t, all[2].Leadership().Term(), all[1].Leadership().Term())
}
