package acquire_test

import (
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/object"
	"github.com/latchkey-go/latchkey/internal/engine/waiters"
	"github.com/latchkey-go/latchkey/internal/primitive/fair"
	"github.com/latchkey-go/latchkey/internal/primitive/latch"
	"github.com/latchkey-go/latchkey/internal/primitive/lock"
	"github.com/latchkey-go/latchkey/internal/primitive/rw"
	"github.com/latchkey-go/latchkey/internal/primitive/semaphore"
	"github.com/latchkey-go/latchkey/internal/testredis"
)

// Whatever time the server reports, waiters of all kinds pause for some time, but no longer than
// the settings allow.
func TestPauses_are_positive_and_capped(t *testing.T) {
	c := testredis.NewEngine(t, func(s *testredis.Settings) {
		s.PollCeiling, s.StaleWaiterTimeout = time.Second, 2*time.Second
		s.Logger = slog.New(slog.DiscardHandler)
	})
	s, l := semaphore.New(c, "s"), latch.New(c, "l")
	polling := []line.Attempter{
		&semaphore.Acquisition{Semaphore: &s, Wait: object.Wait{Of: &s.Object}, Line: &semaphore.Line{}},
		&latch.Awaiter{Latch: &l, Wait: object.Wait{Of: &l.Object}},
	}
	for _, p := range []*acquire.Lock{
		acquire.NewLock(c, lock.Mutex, "mutex"), acquire.NewLock(c, lock.Reentrant, "lock"),
		acquire.NewLock(c, lock.Fenced, "fenced"), acquire.NewLock(c, rw.Write, "rw"), acquire.NewLock(c, rw.Read, "rw"),
		semaphore.NewPool(c, "permits").Permits,
	} {
		polling = append(polling, acquisitionOf(p))
	}
	front := inQueue(c, 0)
	for ticket := range uint64(waiters.Nearest) {
		inQueue(c, ticket)
	}
	behind := inQueue(c, waiters.Nearest)
	backoff := lock.Backoff{
		Initial: time.Millisecond, Max: 128 * time.Millisecond, Multiplier: 2,
	}
	spin := acquisitionOf(acquire.NewLock(c, lock.Spin(backoff.Pause), "spin"))
	for ceiling, askers := range map[time.Duration][]line.Attempter{
		c.Config.PollCeiling:            append(polling, front),
		backoff.Max:                     {spin},
		4 * c.Config.StaleWaiterTimeout: {behind},
	} {
		for _, a := range askers {
			_, name := a.What()
			for _, left := range []time.Duration{math.MinInt64, -1, 0, 1, time.Millisecond, time.Hour, lease.NoExpiry - 1, lease.NoExpiry} {
				for round := range 100 {
					pause := a.Pause(c.Lines.Use(line.Key{Key: "any"}), round, left)
					require.Positive(t, pause, "%s: %v", name, left)
					require.LessOrEqual(t, pause, ceiling, "%s: %v", name, left)
				}
			}
		}
	}
}

func acquisitionOf(p *acquire.Lock) *acquire.Acquisition { return p.NewAcquisition("lock", true, nil) }

// inQueue returns an acquisition with that ticket in the queue of a fair lock.
func inQueue(c *core.Parts, ticket uint64) line.Attempter {
	a := acquisitionOf(acquire.NewLock(c, fair.Spec(c, false), "fair"))
	a.Start()
	a.Ownership.OwnEntry(a.Since)
	list := a.Lock.Spec.Attempts.(fair.Protocol).Waiters
	w := &waiters.Waiter{List: list, Ownership: a.Ownership, Own: c.Lines.Use(line.Key{Key: "fair"})}
	list.SetPlace(w, ticket, false)
	return waiters.Attempter{Acquisition: a, Waiter: w}
}
