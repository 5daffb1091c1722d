package latchkey

import (
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// When a release hands a contended lock over while goroutines of this client wait for it, it puts the owner with
// which the client wants the lock next into the queue, in the same command.

// chooseNext makes the owner with which this client wants the lock again, when it releases the lock and others
// are in line: the release puts that owner into the queue. sendMu is held.
func (o *ownership) chooseNext() {
	if !o.lock.spec.passes || o.lock.client.Inbox.MustPoll(o.lock.names.Key, 0) { // the queue would not know when it polls
		return
	}
	first := o.links.FirstInLine()
	if first == nil {
		return
	}
	next, is := first.Next(o).(*ownership)
	if !is {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.phase != releasing { // nobody would take the owner
		return
	}
	next.entry.mayBeQueued, next.doubt.Queued = true, true
	o.lock.client.Inbox.Expect(&next.entry.slot)
	o.local.next = next
}

// chooseTurn decides whether the release leaves the mutex to other libraries.
func (o *ownership) chooseTurn() {
	if !o.lock.spec.recipe {
		return
	}
	open := o.links.OpenFor(o.turnBegan())
	o.mu.Lock()
	defer o.mu.Unlock()
	o.local.openMS = int16(script.Millis(open)) //nolint:gosec // it is short
}

// turnBegan returns when the server gave the ownership the lock.
func (o *ownership) turnBegan() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return time.Now().Add(o.local.began - o.lock.client.Clock().Mono)
}

// openArg returns, for the release of a mutex, for how many ms it leaves the mutex to other libraries, or "0".
func (o *ownership) openArg() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strconv.Itoa(int(o.local.openMS))
}

// noteOpen records whether the release has left the mutex to other libraries.
func (o *ownership) noteOpen(a transport.Answer) {
	if !o.lock.spec.recipe {
		return
	}
	o.mu.Lock()
	open := script.FromMillis(int64(o.local.openMS))
	o.mu.Unlock()
	o.links.LeftFree(open, !a.Message.IsInt64())
}

// noteHandover records for this next owner, if there is one, what the release did.
func (o *ownership) noteHandover(a transport.Answer) {
	if o == nil || !script.Freed(a) || a.KeysOmitted != nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.entry.known = !o.entry.unsure
	reply, err := a.Message.ToArray()
	if err != nil || len(reply) != 2 {
		return
	}
	if owner, err := reply[0].ToString(); err == nil && owner == o.wire {
		token, _ := reply[1].ToString()
		n, _ := strconv.ParseInt(token, 10, 64)
		o.entry.grant = &grant{n, o.entry.wanted, ""}
	}
}

// takeNext returns the next owner, for the goroutine that comes to the front, or nil. o.mu is held.
func (o *ownership) takeNext() *ownership {
	next := o.local.next
	o.local.next = nil
	return next
}

// asLeft is what this next owner, or nil, is for a line.
func (o *ownership) asLeft() line.Place {
	if o == nil {
		return nil
	}
	return o
}

// handoverArgs appends the arguments of a release that concern the queue.
func (o *ownership) handoverArgs(to []string, count int) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	own, next, full := "", "", time.Duration(0)
	if o.doubt.MayWait() || o.entry.hasPollTime {
		own = o.entry.text
	}
	if o.local.next != nil && count == 0 {
		next, full = o.local.next.entry.text, o.local.next.entry.wanted
	}
	return o.lock.client.queueArgs(to, o.lock.names.Key, own, next, full)
}

// queueArgs appends the arguments of a release that concern the queue: the entries of the owner and of the next one,
// and the lease of the next one.
func (c *engine) queueArgs(to []string, key, own, next string, full time.Duration) []string {
	return append(c.Inbox.ChannelArgs(append(to, own, next), key), c.LeaseText(full))
}
