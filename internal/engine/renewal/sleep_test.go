package renewal_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/primitive/lock"
	"github.com/latchkey-go/latchkey/internal/testredis"
)

// fakeClock has a monotonic and a wall clock that diverge on request.
type fakeClock struct{ sleep atomic.Int64 }

func (f *fakeClock) now() lease.Stamp {
	s := lease.SystemClock()
	s.Wall += time.Duration(f.sleep.Load())
	return s
}

// engineWith returns a client with that clock, which logs nothing.
func engineWith(t *testing.T, clock *fakeClock) *core.Parts {
	t.Helper()
	return testredis.NewEngine(t, func(s *testredis.Settings) {
		s.Clock, s.Logger = clock.now, slog.New(slog.DiscardHandler)
	})
}

// lockOn acquires a lock with that name.
func lockOn(c *core.Parts, name string, settings ...request.Setting) (*hold.Handle, error) {
	return acquire.NewLock(c, lock.Reentrant, name).Acquire(context.Background(), "lock", true, settings)
}

func TestHold_is_lost_when_the_machine_has_slept(t *testing.T) {
	var clock fakeClock
	c := engineWith(t, &clock)
	h, err := lockOn(c, testredis.UniqueName(t, c))
	require.NoError(t, err)
	work := h.Context(context.Background())
	clock.sleep.Add(int64(31 * time.Second)) // the monotonic clock stood still
	require.ErrorIs(t, h.Err(), fault.ErrLost, "the first look tells")
	<-work.Done()
	require.ErrorIs(t, context.Cause(work), fault.ErrLost)
	require.ErrorIs(t, h.Unlock(context.Background()), fault.ErrNotHeld)
}

func TestHold_loss_is_signaled_when_the_machine_has_slept(t *testing.T) {
	var clock fakeClock
	c := engineWith(t, &clock)
	h, err := lockOn(c, testredis.UniqueName(t, c))
	require.NoError(t, err)
	clock.sleep.Add(int64(31 * time.Second))
	select {
	case <-h.Lost(): // nobody looked
	case <-time.After(lease.Default - 5*time.Second):
		t.Fatal("the loss was not signaled")
	}
}

// Contexts end soon after the machine wakes up. How soon does not depend on other events.
func TestContext_ends_soon_after_the_machine_has_slept(t *testing.T) {
	var clock fakeClock
	c := engineWith(t, &clock)
	minute := request.Setting{Kind: request.Lease, D: time.Minute}
	best := time.Hour
	for i := 0; i < 20 && best >= 250*time.Millisecond; i++ { // on a busy machine most are late
		h, err := lockOn(c, fmt.Sprint(testredis.UniqueName(t, c), i), minute)
		require.NoError(t, err)
		work := h.Context(context.Background())
		time.Sleep(20 * time.Millisecond) // until the watchdog sleeps, most often
		clock.sleep.Add(int64(time.Minute))
		awake := time.Now()
		<-work.Done()
		best = min(best, time.Since(awake))
	}
	require.Less(t, best, 250*time.Millisecond)
}

// The machine sleeps for a large part of the lease. The hold is renewed at once, because the rest
// of the lease is too short to wait for a third of it.
func TestWatchdog_renews_what_the_machine_has_nearly_overslept(t *testing.T) {
	var clock fakeClock
	c := engineWith(t, &clock)
	h, err := lockOn(c, testredis.UniqueName(t, c))
	require.NoError(t, err)
	time.Sleep(20 * time.Millisecond) // until the watchdog sleeps, most often
	clock.sleep.Add(int64(lease.Default * 8 / 10))
	require.Eventually(t, func() bool { return h.Err() != nil || h.ValidFor() > lease.Default/2 }, lease.Default, time.Millisecond)
	require.NoError(t, h.Err())
	require.NoError(t, h.Unlock(context.Background()))
}
