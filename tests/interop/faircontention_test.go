package interop

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

// fairContentionLease is the lease of all contenders for a fair lock.
const fairContentionLease = 5 * time.Second

// fairContention is a fair lock for which goroutines contend all the time.
type fairContention struct {
	t    *testing.T
	lock *latchkey.Lock
	stop context.CancelFunc
	done sync.WaitGroup

	mu      sync.Mutex
	passes  int
	longest time.Duration // wait so far
}

func startFairContention(t *testing.T, lock *latchkey.Lock, contenders int) *fairContention {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	s := &fairContention{t: t, lock: lock, stop: stop}
	for range contenders {
		s.done.Go(func() {
			for ctx.Err() == nil {
				s.pass()
			}
		})
	}
	return s
}

func (s *fairContention) pass() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	start := time.Now()
	hold, err := s.lock.Lock(ctx)
	waited := time.Since(start)
	if assert.NoError(s.t, err) {
		assert.NoError(s.t, hold.Unlock(context.Background()))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passes++
	s.longest = max(s.longest, waited)
}

func (s *fairContention) passed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.passes
}

// A JVM is killed while its threads wait or one of them holds the lock. A waiter behind them waits
// for one lease and one stale period in total, 10 s, whatever Redisson's wait timeout is: for six
// threads, 30 s or 30 min.
func TestKilledJVMInAStormOfFairWaiters(t *testing.T) {
	rig.Long(t)
	t.Parallel()
	eachVersion(t, func(t *testing.T, version string) {
		where, name := here(t), rig.Name(t)
		client := where.connect(t, latchkey.Options{Lease: fairContentionLease})
		for range 2 {
			own := startJVM(t, version)
			j := where.javaIn(t, own, fields{"lockWatchdogTimeout": fairContentionLease.Milliseconds()})
			s := startFairContention(t, client.NewFairLock(name), 4)
			first, last := contend(j, name)
			rig.Await(t, patience, "Java contends", first)
			rig.Eventually(t, patience, "Go contends", s.after(50))
			own.kill()
			require.NotEmpty(t, rig.Await(t, soon, "its last answer", last).Error, "it was killed in the middle")
			rig.Eventually(t, time.Minute, "the others go on", s.after(s.passed()+50))
			s.stop()
			s.done.Wait()
			t.Logf("%d passes, nobody waited longer than %v", s.passes, s.longest)
			assert.Less(t, s.longest, 30*time.Second)
		}
	})
}

// contend lets six threads of Redisson contend. first gets an answer when the last thread has
// passed once; last belongs to a pass that is never reached.
func contend(j *java, name string) (first, last <-chan answer) {
	for _, thread := range []string{"a", "b", "c", "d", "e", "f"} {
		for i := range 500 {
			last = j.on(thread).start("lock.pass", fields{"kind": "fair", "name": name, "millis": stayMillis})
			if i == 0 {
				first = last
			}
		}
	}
	return first, last
}

// after is the condition that there were that many passes.
func (s *fairContention) after(passes int) func() error {
	return func() error {
		if n := s.passed(); n < passes {
			return fmt.Errorf("%d of %d", n, passes)
		}
		return nil
	}
}
