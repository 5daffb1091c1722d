package nodes

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

const (
	// abandonedFor is the longest time for which a command whose caller has left counts as
	// occupying the connection: an owned connection that is silent is closed well before that.
	abandonedFor = 5 * time.Second
	// reservedSlots are for renewals and releases of existing holds, which must not queue behind
	// acquisitions.
	reservedSlots = 120
)

// InFlight bounds the commands that wait for the answer of one node: each takes a slot. rueidis
// blocks callers regardless of their contexts once 1024 commands queue on a connection; a caller
// that waits for a slot can leave.
//
// A caller that leaves before its command is answered abandons the slot. The command still occupies
// the connection, so the slot stays taken until that command or a later one is answered, or
// abandonedFor is over.
type InFlight struct {
	slots  chan struct{} // holds one element for each command in flight
	probes chan struct{} // holds one element when a command may exceed the bound
	// Slots are numbered as they are abandoned. lastAbandoned is the last number given;
	// anyAbandoned reports whether some of them are still taken.
	lastAbandoned atomic.Int64
	anyAbandoned  atomic.Bool

	mu        sync.Mutex
	abandoned []abandonedSlot // those still taken, oldest first
	probing   bool
	expiry    *time.Timer // of the oldest, while there is one
}

// abandonedSlot is the slot of a caller that left before its command was answered.
type abandonedSlot struct {
	number int64
	at     time.Time
}

// Slot is a slot that has been taken.
type Slot struct {
	abandonedBefore int64 // the last number given before the command was sent
	Probe           bool  // it exceeds the bound: its answer must be awaited
}

// Unheard returns the slot of a command whose answer says nothing about commands that were sent
// earlier.
func (s Slot) Unheard() Slot { return Slot{0, s.Probe} }

func newInFlight(n int) *InFlight {
	return &InFlight{slots: make(chan struct{}, n), probes: make(chan struct{}, 1)}
}

// Reserve waits for a slot until ctx ends or the time is over.
func (f *InFlight) Reserve(ctx context.Context, until time.Time) (Slot, error) {
	if slot, free := f.TryReserve(); free {
		return slot, nil
	}
	return f.wait(ctx, until)
}

// TryReserve takes a slot if one is free.
func (f *InFlight) TryReserve() (slot Slot, free bool) {
	select {
	case f.slots <- struct{}{}:
		return f.slot(false), true
	default:
		return Slot{}, false
	}
}

func (f *InFlight) wait(ctx context.Context, until time.Time) (Slot, error) {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	for {
		select {
		case f.slots <- struct{}{}:
			return f.slot(false), nil
		case <-f.probes:
			if f.probe() {
				return f.slot(true), nil
			}
		case <-ctx.Done():
			return Slot{}, outcome.ErrTooManyInFlight
		case <-timer.C:
			return Slot{}, outcome.ErrTooManyInFlight
		}
	}
}

func (f *InFlight) slot(probe bool) Slot { return Slot{f.lastAbandoned.Load(), probe} }

// offerProbe lets one command exceed the bound when all slots are abandoned: otherwise nobody would
// notice that the server answers again. f.mu is held.
func (f *InFlight) offerProbe() {
	if f.probing || len(f.abandoned) < cap(f.slots) {
		return
	}
	select {
	case f.probes <- struct{}{}:
	default:
	}
}

// probe passes on the slot that was abandoned first, unless other slots are free by now. The answer
// to a probe must be awaited even if its caller leaves: until it arrives there is no other probe.
func (f *InFlight) probe() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.probing || len(f.abandoned) < cap(f.slots) {
		return false
	}
	f.abandoned = f.abandoned[1:]
	f.probing = true
	return true
}

// Finish frees the slot of a command that has been answered. Answers come in the order of
// the commands, so it also frees the slots that were abandoned before this one was sent.
func (f *InFlight) Finish(slot Slot) {
	<-f.slots
	if slot.Probe || f.anyAbandoned.Load() {
		f.over(slot, func(a abandonedSlot) bool { return a.number <= slot.abandonedBefore })
	}
}

// Abandon keeps a slot taken whose caller leaves, and returns its number. The goroutine that still
// awaits the answer passes the number to AnsweredLate.
func (f *InFlight) Abandon() (number int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	number = f.lastAbandoned.Add(1)
	f.abandoned = append(f.abandoned, abandonedSlot{number, time.Now()})
	f.anyAbandoned.Store(true)
	if f.expiry == nil {
		f.expiry = time.AfterFunc(abandonedFor, f.expire)
	}
	f.offerProbe()
	return number
}

// AnsweredLate is Finish for a slot that was abandoned. A later answer may have freed it already.
func (f *InFlight) AnsweredLate(slot Slot, number int64) {
	f.over(slot, func(a abandonedSlot) bool { return a.number == number || a.number <= slot.abandonedBefore })
}

// over notes an answer, and frees the abandoned slots that it covers.
func (f *InFlight) over(slot Slot, freed func(abandonedSlot) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if slot.Probe {
		f.probing = false
	}
	f.free(freed)
	f.offerProbe()
}

// expire frees the slots that were abandoned long ago.
func (f *InFlight) expire() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.expiry = nil
	f.free(func(a abandonedSlot) bool { return time.Since(a.at) >= abandonedFor })
	if len(f.abandoned) > 0 {
		f.expiry = time.AfterFunc(abandonedFor-time.Since(f.abandoned[0].at), f.expire)
	}
}

// free frees the abandoned slots for which over is true. It never blocks, since each of them is
// taken. f.mu is held.
func (f *InFlight) free(over func(abandonedSlot) bool) {
	stay := slices.DeleteFunc(f.abandoned, over)
	for range len(f.abandoned) - len(stay) {
		<-f.slots
	}
	f.abandoned = stay
	f.anyAbandoned.Store(len(stay) > 0)
}
