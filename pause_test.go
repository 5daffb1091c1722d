package latchkey

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/object"
	"github.com/latchkey-go/latchkey/internal/engine/serverline"
	"github.com/latchkey-go/latchkey/internal/primitive/fair"
	"github.com/latchkey-go/latchkey/internal/primitive/latch"
	"github.com/latchkey-go/latchkey/internal/primitive/semaphore"
)

// Whatever time the server reports, waiters of all kinds pause for some time, but no longer than the settings allow.
func TestPauses_are_positive_and_capped(t *testing.T) {
	c := newTestClient(t, Options{PollCeiling: time.Second, StaleWaiterTimeout: 2 * time.Second, Logger: quiet()})
	rw := c.NewRWLock("rw")
	s, l := &c.NewSemaphore("s").inside, &c.NewCountDownLatch("l").inside
	polling := []line.Attempter{
		&semaphore.Acquisition{Semaphore: s, Wait: object.Wait{Of: &s.Object}, Line: &semaphore.Line{}},
		&latch.Awaiter{Latch: l, Wait: object.Wait{Of: &l.Object}},
	}
	for _, p := range []*acquire.Lock{
		&c.NewMutex("mutex").inside, &c.NewLock("lock").inside, &c.NewFencedLock("fenced").inside,
		&rw.Writer().inside, &rw.Reader().inside, c.NewPermitSemaphore("permits").inside.Permits,
	} {
		polling = append(polling, acquisitionOf(p))
	}
	front := inQueue(c, 0)
	for ticket := range uint64(serverline.Nearest) {
		inQueue(c, ticket)
	}
	behind, spin := inQueue(c, serverline.Nearest), acquisitionOf(&c.NewSpinLock("spin", Backoff{}).inside)
	for ceiling, askers := range map[time.Duration][]line.Attempter{
		c.engine().Config.PollCeiling:            append(polling, front),
		DefaultBackoffMax:                        {spin},
		4 * c.engine().Config.StaleWaiterTimeout: {behind},
	} {
		for _, a := range askers {
			_, name := a.What()
			for _, left := range []time.Duration{math.MinInt64, -1, 0, 1, time.Millisecond, time.Hour, NoExpiry - 1, NoExpiry} {
				for round := range 100 {
					pause := a.Pause(c.engine().Lines.Use(line.Key{Key: "any"}), round, left)
					require.Positive(t, pause, "%s: %v", name, left)
					require.LessOrEqual(t, pause, ceiling, "%s: %v", name, left)
				}
			}
		}
	}
}

func acquisitionOf(p *acquire.Lock) *acquire.Acquisition { return p.NewAcquisition("lock", true, nil) }

// inQueue returns an acquisition with that ticket in the queue of a fair lock.
func inQueue(c *Client, ticket uint64) line.Attempter {
	a := acquisitionOf(&c.NewFairLock("fair").inside)
	a.Start()
	a.Ownership.OwnEntry(a.Since)
	list := a.Lock.Spec.Attempts.(fair.Protocol).Waiters
	w := &serverline.Waiter{List: list, Ownership: a.Ownership, Queue: c.engine().Lines.Use(line.Key{Key: "fair"})}
	list.SetPlace(w, ticket, false)
	return serverline.Attempter{Acquisition: a, Waiter: w}
}
