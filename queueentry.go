package latchkey

import (
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// The entries of the owners of this client in the queues of locks: who has one, what a grant
// begins, and what becomes of one whose acquisition gives up.

// confirmRounds is after how many refusals the front listens to Redisson's channel if the server
// has not confirmed the channel of this client.
const confirmRounds = 2

// queueEntry is the entry with which an attempt waits, "" if it does not; standing is the one
// that may stand in the queue already, or "".
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

// mayStandInQueue reports whether the entry of the owner may stand in the queue.
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

// waitsToBeTold prepares the rest of an attempt that was refused. It reports whether the server
// will tell when the lock is ours: the holder of the lock knows the queue, and the owner waits
// there, or will as soon as the server confirms that this client listens.
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

// stopWaiting says that nothing is to be heard of the owner any more.
func (o *ownership) stopWaiting() {
	if o.lock.spec.handsOver {
		o.lock.client.handover.forget(o)
	}
}

// takeGrant begins the ownership if it has been granted the lock, and what was granted is
// enough. known is true, once, if a release of this client has put the owner into the queue:
// there is no need to ask.
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

// seenInQueue notes that an attempt has found the entry of the owner in the queue, and since when it
// has been there. A grant of the entry that had come then is later than the attempt: it takes the entry
// away, which was still there. So its lease counts from before the attempt was sent. If the grant
// runs out, and the entry is put there again, it comes at another time.
func (o *ownership) seenInQueue(since string, sent transport.Stamp) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.entry != noEntry {
		o.entry.since, o.entry.seen = since, sent
	}
}

// isEnough reports whether what is left of the lease of a grant, counted from then, will do until it
// is renewed. Otherwise the server is asked, which knows that the owner holds the lock.
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

// chooseNext makes the owner under which this client wants the lock again, when it releases it
// and others are in line: the release puts it into the queue. The turn is held.
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
	if o.phase != releasing { // nobody would take it
		return
	}
	next.entry.asked, next.doubt.queued = true, true
	o.lock.client.handover.expects(next)
	o.local.next = next
}

// chooseTurn decides whether the release leaves the lock to those who poll for it.
func (o *ownership) chooseTurn() {
	if !o.lock.spec.recipe {
		return
	}
	open := o.openFor()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.local.openMS = int32(millis(open)) //nolint:gosec // it is short
}

// turnBegan is when the server has given the ownership the lock.
func (o *ownership) turnBegan() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return time.Now().Add(o.local.began - o.lock.client.clock().Mono)
}

// noteOpen notes whether the release has left the lock to those who poll for it.
func (o *ownership) noteOpen(a transport.Answer) {
	if !o.lock.spec.recipe {
		return
	}
	o.mu.Lock()
	open := fromMillis(int64(o.local.openMS))
	o.mu.Unlock()
	o.leftFree(open, !a.Message.IsInt64())
}

// openArg tells the release of a mutex for how many ms it leaves the mutex to those who poll for
// it, "0" if it does not.
func (o *ownership) openArg() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strconv.Itoa(int(o.local.openMS))
}

// nextInDoubt notes that the release may yet be executed that puts the next owner into the queue, or
// gives it the lock. o.mu is held.
func (o *ownership) nextInDoubt(a transport.Answer) {
	if o.local.next != nil {
		o.local.next.noteDoubt(a)
	}
}

// noteHandover notes for the next owner what the release has done.
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

// noteStrangers notes whether anybody but this client was told that the lock is free.
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

// handoverArgs appends what the release of an ownership is told of the queue.
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

// args appends what a release is told of the queue: the entries of the owner and of the next one, and
// the lease of that.
func (h *handover) args(to []string, key, own, next string, full time.Duration) []string {
	return append(h.channelArgs(append(to, own, next), key), h.client.leaseText(full))
}

// successor is an attempter that can go on with what was left by the one before it.
type successor interface {
	// takeOver reports whether it does.
	takeOver(left any) bool
	// leave returns what the next can go on with, or nil.
	leave() any
}

// takeOver has the new front go on with what was left, or nil.
func takeOver(left any, a attempter) {
	if left == nil {
		return
	}
	if s, is := a.(successor); !is || !s.takeOver(left) {
		abandonLeft(left)
	}
}

// exit leaves the front and the wait queue, and what the next in line can go on with.
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

// leave implements [successor]. An owner is left to the next in line if nothing but its place in
// the queue is known of it.
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
