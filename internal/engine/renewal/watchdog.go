// Package renewal has the watchdog, which renews the holds of a client and ends those that it
// cannot renew. It knows of a hold what [Hold] says; when to renew it is up to [lease.Term].
package renewal

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport/nodes"
)

const (
	// renewFlights is how many renewals can be in flight to a server at once. A node of a cluster
	// can have more, since each is for one slot.
	renewFlights     = 8
	nodeRenewFlights = 16
	// longestSleep bounds how late the watchdog notices that the machine was asleep. Each look
	// costs a tenth of a millisecond of processor time.
	longestSleep = 200 * time.Millisecond
	// idleSleep is how long the watchdog sleeps when there is nothing to watch.
	idleSleep = time.Hour
	// clockJump is how far the clocks may diverge before every hold is checked.
	clockJump = 5 * time.Millisecond
)

// Config has the parts that a watchdog is made of.
type Config struct {
	Clock       func() lease.Stamp
	Topology    *nodes.Topology // says which node has which key
	PollCeiling time.Duration   // within about this time, a hold for which others wait is verified
	// Send sends a script once, and returns one result for each hold. It waits for no longer than
	// patience. With an error it returns the results that count regardless: see [script.Denials].
	Send func(c script.Call, patience time.Duration) (results []int64, err error)
	// Failed reports that a script did not renew holds, the first of which is one of that lock.
	Failed func(lock string, holds int, err error)
}

// Watchdog renews the holds of a client and ends those that it cannot renew. One goroutine keeps
// time for all holds, and never waits for the server, so that a loss is signaled when it is due.
// Others, while there is anything to renew, renew many holds with one script.
type Watchdog struct {
	config  Config
	signals chan struct{}   // something is due earlier than was planned
	open    context.Context // until Close
	end     context.CancelFunc
	tasks   sync.WaitGroup

	mu         sync.Mutex
	started    bool
	planned    async.Heap[Hold]
	nextVerify time.Duration // when to look for holds to verify
	wakeAt     time.Duration // when the timekeeper wakes next
	skew       time.Duration // between the clocks, when the timekeeper last ran
}

// route is the way to one node: the holds that wait to be renewed there, and the slots for the
// renewals in flight.
type route = nodes.Backlog[Hold]

// Flights returns how many renewals can be in flight to one node at once.
func Flights(cluster bool) int {
	if cluster {
		return nodeRenewFlights
	}
	return renewFlights
}

// New returns a watchdog. It starts no goroutine before it has a hold to watch.
func New(c Config) *Watchdog {
	open, end := context.WithCancel(context.Background())
	return &Watchdog{
		config:  c,
		signals: make(chan struct{}, 1),
		open:    open,
		end:     end,
		wakeAt:  async.NoDeadline,
	}
}

// Plan sets when a hold is due.
func (w *Watchdog) Plan(h Hold, due Due) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if async.IsClosed(w.open.Done()) {
		return
	}
	h.item().due = due
	w.planned.Put(h)
	w.start()
	// The timekeeper keeps sleeping if it wakes early enough anyway, so that a short hold costs no
	// switch of goroutines.
	if h.DueAt() < w.wakeAt {
		w.wakeAt = h.DueAt()
		async.Signal(w.signals)
	}
}

// start runs the timekeeper at the first hold. w.mu is held.
func (w *Watchdog) start() {
	if w.started {
		return
	}
	w.started = true
	now := w.config.Clock()
	w.skew = now.Wall - now.Mono
	w.tasks.Go(w.keepTime)
}

// Drop forgets a hold.
func (w *Watchdog) Drop(h Hold) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.planned.Remove(h)
}

// Close ends all goroutines.
func (w *Watchdog) Close() {
	w.mu.Lock()
	w.end()
	w.mu.Unlock()
	w.tasks.Wait()
}

// keepTime ends holds at their deadline, and starts the renewals of those that are to be renewed.
func (w *Watchdog) keepTime() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		signaled := false
		select {
		case <-timer.C:
		case <-w.signals:
			signaled = true
		case <-w.open.Done():
			return
		}
		now := w.config.Clock()
		w.verify(now.Mono)
		for _, h := range w.collect(now) {
			h.EndIfOver()
		}
		timer.Reset(w.sleep(signaled))
	}
}

// sleep plans the next look. After a signal there is always one, even if the hold that sent the
// signal has ended: the next hold then need not signal.
func (w *Watchdog) sleep(signaled bool) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.config.Clock().Mono
	w.wakeAt = min(now+longestSleep, w.nextVerify)
	switch {
	case w.planned.Next() != async.NoDeadline:
		w.wakeAt = min(w.wakeAt, w.planned.Next())
	case !signaled:
		w.wakeAt = async.NoDeadline
		return idleSleep // until a signal
	}
	return max(w.wakeAt-now, 0)
}

// collect starts the renewals that are due, and returns what may be past its deadline: after a
// jump of the wall clock, everything.
func (w *Watchdog) collect(now lease.Stamp) (overdue []Hold) {
	w.mu.Lock()
	defer w.mu.Unlock()
	jumped := now.Wall-now.Mono > w.skew+clockJump
	w.skew = now.Wall - now.Mono
	if jumped {
		return slices.Clone(w.planned)
	}
	var due []Hold
	for w.planned.Next() <= now.Mono {
		h := w.planned.TakeFirst()
		if h.item().due.Deadline <= now.Mono {
			overdue = append(overdue, h)
			continue
		}
		due = append(due, h)
	}
	if len(due) > 0 {
		w.startRenewals(append(due, w.dueSoon(now.Mono)...))
	}
	return overdue
}

// dueSoon returns the holds that are due soon: within a quarter of the time from their renewal to
// their deadline, which is half a period for a hold with its full lease. They share a script now
// and are due together from then on. w.mu is held.
func (w *Watchdog) dueSoon(now time.Duration) (soon []Hold) {
	for _, h := range w.planned {
		due := &h.item().due
		if due.RenewAt != async.NoDeadline && due.RenewAt-now <= (due.Deadline-due.RenewAt)/4 {
			soon = append(soon, h)
		}
	}
	return soon
}

// startRenewals starts the renewals of holds and does not wait for them: a silent node must not
// delay the holds on others. Until the result arrives, only the deadline of a hold counts. w.mu is
// held.
func (w *Watchdog) startRenewals(due []Hold) {
	for _, h := range due {
		h.item().due.RenewAt, h.item().due.VerifyAt = async.NoDeadline, async.NoDeadline
		w.planned.Put(h)
	}
	for _, h := range due { // at last, so that they share scripts
		w.send(h)
	}
}

// send puts a hold into the backlog of the node that has its key. w.mu is held.
func (w *Watchdog) send(h Hold) {
	topology := w.config.Topology
	r := nodes.BacklogOf[Hold](topology.Serving(w.slotOf(h)), w, Flights(topology.Cluster), 1)
	if r.Add(h) {
		w.tasks.Go(func() { w.serve(r) })
	}
}

// slotOf returns the slot of the key of a hold.
func (w *Watchdog) slotOf(h Hold) uint16 {
	return w.config.Topology.SlotOf(h.Keys().Key)
}

// serve renews the holds that wait for a node, until there are none.
func (w *Watchdog) serve(r *route) {
	for waiting := r.TakeAll(); len(waiting) > 0; waiting = r.TakeAll() {
		w.renewAll(r, waiting)
	}
}
