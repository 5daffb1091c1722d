package latchkey

import (
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// This file manages the entries of this client's owners in the queues of locks: which owner has one, how a
// grant begins an ownership, and what happens to an entry whose acquisition gives up.

// confirmRounds is the number of refusals after which the front listens to Redisson's channel if the server has
// not confirmed the channel of this client.
const confirmRounds = 2

// queueEntry returns the entry with which an attempt waits, or "" if it does not; standing is an entry that may
// be in the queue already, or "".
func (a *acquisition) queueEntry() (entry, standing string) {
	o := a.ownership
	if !a.inLine || !o.lock.spec.passes || o.isGuest || o.lock.keys().noQueue.Load() {
		return "", ""
	}
	listens := false
	if o.lock.client.handover.any.Load() {
		o.makeEntry(a)
		listens = o.lock.client.handover.listens(o)
	}
	if o.entry == noEntry {
		return "", ""
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.entry.asked {
		standing = o.entry.text
	}
	if listens {
		entry = o.entry.text
		o.entry.asked, o.doubt.queued = true, true
	}
	return entry, standing
}

// mayStandInQueue reports whether the entry of the owner may be in the queue.
func (o *ownership) mayStandInQueue() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.entry.asked
}

// makeEntry makes the entry of an owner, which never changes.
func (o *ownership) makeEntry(a *acquisition) {
	e := o.ownEntry(a.since)
	if e.text != "" {
		return
	}
	c, tokens := o.lock.client, o.lock.spec.entryTokens()
	e.wanted = a.lease
	e.lease = min(a.lease, c.options.StaleWaiterTimeout)
	if o.lock.spec.fenced {
		tokens = strconv.FormatInt(o.reserveTokens(a), 10)
		if c.options.TimeFencing {
			tokens += "t"
		}
	}
	e.text = o.wire + " " + strconv.FormatInt(millis(e.lease), 10) + " " + tokens
}

// waitsToBeTold prepares the wait of an attempt that was refused. It reports whether the server will send a
// message when this client has the lock: the holder of the lock knows the queue, and the owner waits there, or
// will as soon as the server confirms that this client listens.
func (a *acquisition) waitsToBeTold(round int) bool {
	o := a.ownership
	if o == nil || !o.lock.spec.passes || o.isGuest || o.lock.keys().noQueue.Load() {
		return false
	}
	o.ownEntry(a.since)
	mayListen := o.lock.client.handover.listen(o)
	o.mu.Lock()
	defer o.mu.Unlock()
	return !a.noQueue && (o.entry.asked || mayListen && round < confirmRounds) && (!a.byStranger)
}

// stopWaiting ends the wait for messages about the owner.
func (o *ownership) stopWaiting() {
	if o.lock.spec.handsOver {
		o.lock.client.handover.forget(o)
	}
}

// takeGrant begins the ownership if a grant has arrived for it and is enough. known is true, once, if a release
// of this client has put the owner into the queue, so that the caller need not query the server.
func (a *acquisition) takeGrant() (begun, known bool) {
	o := a.ownership
	if o.entry == noEntry {
		return false, false
	}
	o.mu.Lock()
	granted, from := o.entry.grant, o.entry.made
	if granted != nil && granted.since != "" && granted.since == o.entry.since {
		from = o.entry.seen
	}
	known = o.entry.known && granted == nil
	o.entry.grant, o.entry.known = nil, false
	o.mu.Unlock()
	if known {
		known = o.lock.client.handover.listens(o)
	}
	if granted == nil || !a.isEnough(granted.lease, from) {
		return false, known
	}
	now := o.lock.client.clock()
	for each := range a.each {
		each.beginWith(&a.request, newGrantedTerm(from, now, granted.lease, &a.request), now, now, granted.token)
	}
	return true, false
}

// seenInQueue records that an attempt found the entry of the owner in the queue, and since when it has been
// there. A grant removes the entry, so a grant of this entry is later than the attempt, and its lease counts
// from before the attempt was sent. If the grant expires and the entry is put into the queue again, its time
// differs.
func (o *ownership) seenInQueue(since string, sent transport.Stamp) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.entry != noEntry {
		o.entry.since, o.entry.seen = since, sent
	}
}

// isEnough reports whether the rest of a grant's lease, which began at from, lasts until it is renewed. If not,
// the caller queries the server, which knows that the owner holds the lock.
func (a *acquisition) isEnough(granted time.Duration, from transport.Stamp) bool {
	c := a.lock.client
	select {
	case <-c.closing:
		return false
	default:
	}
	left := granted - driftMargin(granted) - c.clock().Since(from)
	least := granted / 2
	if !a.renew && a.lease <= granted {
		least = a.lease * 9 / 10
	}
	return c.confirmCalls == nil && a.maxHold == 0 && a.atLeast == 0 && left > least
}

// chooseNext makes the owner with which this client wants the lock again, when it releases the lock and others
// are in line: the release puts that owner into the queue. The turn is held.
func (o *ownership) chooseNext() {
	if !o.lock.spec.passes || o.lock.keys().noQueue.Load() {
		return
	}
	first, is := o.firstInLine().(*acquisition)
	if !is || first.lock.spec != o.lock.spec || first.lock.Name() != o.lock.Name() {
		return
	}
	next := o.lock.client.registry.fresh(first.lock)
	wish := &acquisition{request: first.request, lock: first.lock, ownership: next, inLine: true, since: o.lock.client.clock()}
	next.makeEntry(wish)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.phase != releasing { // nobody would take the owner
		return
	}
	next.entry.asked, next.doubt.queued = true, true
	o.lock.client.handover.expects(next)
	o.local.next = next
}

// chooseTurn decides whether the release leaves the lock to pollers.
func (o *ownership) chooseTurn() {
	if !o.lock.spec.recipe {
		return
	}
	open := o.openFor()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.local.openMS = int32(millis(open)) //nolint:gosec // it is short
}

// turnBegan returns when the server gave the ownership the lock.
func (o *ownership) turnBegan() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return time.Now().Add(o.local.began - o.lock.client.clock().Mono)
}

// noteOpen records whether the release has left the lock to pollers.
func (o *ownership) noteOpen(a transport.Answer) {
	if !o.lock.spec.recipe {
		return
	}
	o.mu.Lock()
	open := fromMillis(int64(o.local.openMS))
	o.mu.Unlock()
	o.leftFree(open, !a.Message.IsInt64())
}

// openArg returns, for the release of a mutex, for how many ms it leaves the mutex to pollers, or "0".
func (o *ownership) openArg() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strconv.Itoa(int(o.local.openMS))
}

// nextInDoubt records that the release may yet run, and put the next owner into the queue or give it the lock.
// o.mu is held.
func (o *ownership) nextInDoubt(a transport.Answer) {
	if o.local.next != nil {
		o.local.next.noteDoubt(a)
	}
}

// noteHandover records for the next owner what the release did.
func (o *ownership) noteHandover(a transport.Answer) {
	o.mu.Lock()
	next := o.local.next
	o.mu.Unlock()
	if next == nil || !freed(a) || a.Spared != nil {
		return
	}
	next.mu.Lock()
	defer next.mu.Unlock()
	next.entry.known = !next.entry.unsure
	reply, err := a.Message.ToArray()
	if err != nil || len(reply) != 2 {
		return
	}
	if owner, err := reply[0].ToString(); err == nil && owner == next.wire {
		token, _ := reply[1].ToString()
		n, _ := strconv.ParseInt(token, 10, 64)
		next.entry.grant = &grant{n, next.entry.wanted, ""}
	}
}

// noteStrangers records whether anybody except this client received the message that the lock is free.
func (o *ownership) noteStrangers(a transport.Answer) {
	if told, err := a.Message.AsInt64(); err == nil && o.lock.spec.passes {
		o.strangersTold(told)
	}
}

// takeNext returns the next owner, for the goroutine that comes to the front, or nil. o.mu is held.
func (o *ownership) takeNext() any {
	next := o.local.next
	o.local.next = nil
	if next == nil {
		return nil
	}
	return next
}

// handoverArgs appends the arguments of a release that concern the queue.
func (o *ownership) handoverArgs(to []string, count int) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	own, next, full := "", "", time.Duration(0)
	if o.doubt.mayWait() {
		own = o.entry.text
	}
	if o.local.next != nil && count == 0 {
		next, full = o.local.next.entry.text, o.local.next.entry.wanted
	}
	return o.lock.client.handover.args(to, o.lock.key, own, next, full)
}

// args appends the arguments of a release that concern the queue: the entries of the owner and of the next one,
// and the lease of the next one.
func (h *handover) args(to []string, key, own, next string, full time.Duration) []string {
	return append(h.channelArgs(append(to, own, next), key), h.client.leaseText(full))
}

// successor is an attempter that can go on with what the previous one left.
type successor interface {
	// takeOver reports whether it goes on with left.
	takeOver(left any) bool
	// leave returns what the next can go on with, or nil.
	leave() any
}

// takeOver makes the new front go on with left, or abandons it. left may be nil.
func takeOver(left any, a attempter) {
	if left == nil {
		return
	}
	if s, is := a.(successor); !is || !s.takeOver(left) {
		abandonLeft(left)
	}
}

// exit leaves the front and the wait queue. The next in line may go on with what a leaves.
func exit(q *waitQueue, a attempter) {
	var left any
	if s, is := a.(successor); is {
		left = s.leave()
	}
	abandonLeft(q.exit(left))
}

// abandonLeft gives up an owner that nobody goes on with.
func abandonLeft(left any) {
	if o, is := left.(*ownership); is {
		o.abandon(o.entry.wanted)
	}
}

// takeOver implements [successor].
func (a *acquisition) takeOver(left any) bool {
	o := left.(*ownership)
	if a.ownership != nil || a.lock.spec != o.lock.spec || a.lock.Name() != o.lock.Name() || a.lease != o.entry.wanted {
		return false
	}
	a.ownership = o
	return true
}

// leave implements [successor]. An owner is left to the next in line if it has nothing except its place in the
// queue.
func (a *acquisition) leave() any {
	o := a.ownership
	if o == nil || a.hasTurn || a.tooFew || !o.lock.spec.passes {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.phase != acquiring || !o.entry.asked || o.local.shown || o.doubt.mayBeHeld() {
		return nil
	}
	a.ownership = nil
	return o
}
