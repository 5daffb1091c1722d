package latchkey

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Whatever the server says is left, waiters of all kinds rest for some time, and for no
// longer than the settings allow.
func TestPauses_are_positive_and_capped(t *testing.T) {
	c := newTestClient(t, Options{PollCeiling: time.Second, StaleWaiterTimeout: 2 * time.Second, Logger: quiet()})
	rw := c.NewRWLock("rw")
	polling := []attempter{&semAcquisition{Semaphore: c.NewSemaphore("s")}, &awaiter{CountDownLatch: c.NewCountDownLatch("l")}}
	for _, p := range []*primitive{
		c.NewMutex("mutex").primitive, c.NewLock("lock").primitive, c.NewFencedLock("fenced").primitive,
		rw.Writer().primitive, rw.Reader().primitive, c.NewPermitSemaphore("permits").permits,
	} {
		polling = append(polling, requestFor(p))
	}
	front, behind := requestFor(c.NewFairLock("fair").primitive), requestFor(c.NewFairLock("fair").primitive)
	front.stands(0)
	for ticket := range uint64(nearest) {
		requestFor(front.ownership.lock).stands(ticket)
	}
	behind.stands(nearest)
	for ceiling, askers := range map[time.Duration][]attempter{
		c.options.PollCeiling:            append(polling, front),
		DefaultBackoffMax:                {requestFor(c.NewSpinLock("spin", Backoff{}).primitive)},
		4 * c.options.StaleWaiterTimeout: {behind},
	} {
		for _, a := range askers {
			for _, left := range []time.Duration{math.MinInt64, -1, 0, 1, time.Millisecond, time.Hour, NoExpiry - 1, NoExpiry} {
				for round := range 100 {
					pause := a.pause(c.waitQueues.use("any"), round, left)
					require.Positive(t, pause, "%s: %v", a.what(), left)
					require.LessOrEqual(t, pause, ceiling, "%s: %v", a.what(), left)
				}
			}
		}
	}
}

func requestFor(p *primitive) *request {
	r := &request{together: 1}
	r.ownership = p.orFresh(nil, r)
	return r
}

// stands gives the request a place in the queue of a fair lock.
func (r *request) stands(ticket uint64) {
	t := r.ownership
	t.fairWaiter = &fairWaiter{t: t, queue: t.client.waitQueues.use(t.lock.waiterChannel(t.wire))}
	t.fairWaiter.setTicket(ticket)
}
