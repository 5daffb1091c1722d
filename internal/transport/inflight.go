package transport

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// errSlots means that no command could be sent before the call's time was over,
// because too many are waiting for an answer.
var errSlots = errors.New("latchkey: too many commands wait for an answer")

const (
	// abandonedFor is how long a command whose caller has left is taken to occupy
	// the connection at most: a silent one of our own is closed well before that.
	abandonedFor = 5 * time.Second
	// reservedSlots are for what keeps and gives back holds, which must not queue
	// behind those who want one.
	reservedSlots = 120
)

// inflight bounds the commands that wait for the answer of one node. rueidis makes
// callers wait without looking at their contexts once 1024 commands queue on a
// connection; a caller that waits here can leave.
//
// The slot of a caller that leaves before its command is answered is abandoned: the
// command still occupies the connection. It is free when its own answer comes, or that
// to a command which was sent later, or after abandonedFor.
type inflight struct {
	slots  chan struct{} // holds one for each command in flight
	probes chan struct{} // holds one when a command may go beyond the bound
	// latest is the number of the last departure, and left says that the slots of some
	// are still abandoned.
	latest atomic.Int64
	left   atomic.Bool

	mu        sync.Mutex
	abandoned []departure // oldest first
	probing   bool
	expiry    *time.Timer // of the oldest, while there is one
}

// departure is a caller that left before its command was answered.
type departure struct {
	number int64
	at     time.Time
}

// ticket is a slot that has been taken.
type ticket struct {
	after int64 // the number of the last departure before the command was sent
	probe bool
}

// unheard is the ticket of a command from which nothing is heard about those that were
// sent before.
func (t ticket) unheard() ticket { return ticket{0, t.probe} }

func newInflight(n int) *inflight {
	return &inflight{slots: make(chan struct{}, n), probes: make(chan struct{}, 1)}
}

// reserve waits for a slot until ctx ends or the time is over.
func (f *inflight) reserve(ctx context.Context, until time.Time) (ticket, error) {
	select {
	case f.slots <- struct{}{}:
		return f.ticket(false), nil
	default:
		return f.wait(ctx, until)
	}
}

func (f *inflight) wait(ctx context.Context, until time.Time) (ticket, error) {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	for {
		select {
		case f.slots <- struct{}{}:
			return f.ticket(false), nil
		case <-f.probes:
			if f.probe() {
				return f.ticket(true), nil
			}
		case <-ctx.Done():
			return ticket{}, errSlots
		case <-timer.C:
			return ticket{}, errSlots
		}
	}
}

func (f *inflight) ticket(probe bool) ticket { return ticket{f.latest.Load(), probe} }

// offerProbe lets one command go beyond the bound when all slots are abandoned: nobody
// would notice that the server answers again. f.mu is held.
func (f *inflight) offerProbe() {
	if f.probing || len(f.abandoned) < cap(f.slots) {
		return
	}
	select {
	case f.probes <- struct{}{}:
	default:
	}
}

// probe hands on the slot that was abandoned first, unless there are others by now. The
// answer to a probe must be awaited, also when its caller leaves; there is no other
// until then.
func (f *inflight) probe() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.probing || len(f.abandoned) < cap(f.slots) {
		return false
	}
	f.abandoned = f.abandoned[1:]
	f.probing = true
	return true
}

// finish frees the slot of a command that has been answered. Answers come in the order of
// the commands, so those that were abandoned before it was sent are over too.
func (f *inflight) finish(t ticket) {
	<-f.slots
	if t.probe || f.left.Load() {
		f.over(t, func(d departure) bool { return d.number <= t.after })
	}
}

// abandon leaves the slot taken. If the answer is awaited after all, answeredLate takes note of
// it, by the number of the departure.
func (f *inflight) abandon() (number int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	number = f.latest.Add(1)
	f.abandoned = append(f.abandoned, departure{number, time.Now()})
	f.left.Store(true)
	if f.expiry == nil {
		f.expiry = time.AfterFunc(abandonedFor, f.expire)
	}
	f.offerProbe()
	return number
}

// answeredLate is finish for a command whose caller has left. A later answer may have freed
// its slot already.
func (f *inflight) answeredLate(t ticket, number int64) {
	f.over(t, func(d departure) bool { return d.number == number || d.number <= t.after })
}

// over takes note of an answer.
func (f *inflight) over(t ticket, freed func(departure) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t.probe {
		f.probing = false
	}
	f.free(freed)
	f.offerProbe()
}

// expire frees the slots that were abandoned long ago.
func (f *inflight) expire() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.expiry = nil
	f.free(func(d departure) bool { return time.Since(d.at) >= abandonedFor })
	if len(f.abandoned) > 0 {
		f.expiry = time.AfterFunc(abandonedFor-time.Since(f.abandoned[0].at), f.expire)
	}
}

// free never blocks, since each departure in the list has a slot. f.mu is held.
func (f *inflight) free(over func(departure) bool) {
	stay := slices.DeleteFunc(f.abandoned, over)
	for range len(f.abandoned) - len(stay) {
		<-f.slots
	}
	f.abandoned = stay
	f.left.Store(len(stay) > 0)
}
