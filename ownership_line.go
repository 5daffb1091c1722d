package latchkey

import "time"

// This file connects an ownership with the goroutines of its client that want its key. There is a wait queue
// only while there are any, and for a short time after.

// lockShard locks the shard of the key, and returns it.
func (o *ownership) lockShard() *queueShard {
	shard := o.lock.client.waitQueues.shard(o.lock.names.Key)
	shard.mu.Lock()
	return shard
}

// firstInLine returns the first in line behind the ownership, or nil.
func (o *ownership) firstInLine() any {
	defer o.lockShard().mu.Unlock()
	if o.onKey.queue == nil {
		return nil
	}
	return o.onKey.queue.firstLocked()
}

// hasLine reports whether anybody waits in line behind the ownership.
func (o *ownership) hasLine() bool {
	defer o.lockShard().mu.Unlock()
	return o.onKey.queue != nil && len(o.onKey.queue.line) > 0
}

// takeFirst removes the first in line, to pass it the hold: see waitQueue.takeFirstLocked.
func (o *ownership) takeFirst() *waiter {
	defer o.lockShard().mu.Unlock()
	if o.onKey.queue == nil {
		return nil
	}
	return o.onKey.queue.takeFirstLocked(o)
}

// openLine lets others have the hold along with its holder, until closeLine.
func (o *ownership) openLine() {
	shard := o.lockShard()
	defer shard.mu.Unlock()
	shard.queueOf(o.lock.lineKey())
	o.onKey.queue.open = o
}

func (o *ownership) closeLine() {
	defer o.lockShard().mu.Unlock()
	if q := o.onKey.queue; q != nil && q.open == any(o) {
		q.open = nil
	}
}

// openFor returns for how long the release leaves a mutex to other libraries: see waitQueue.openFor.
func (o *ownership) openFor() time.Duration {
	taken := o.turnBegan()
	defer o.lockShard().mu.Unlock()
	if o.onKey.queue == nil {
		return 0
	}
	return o.onKey.queue.openFor(taken)
}

// leftFree records what the release of a mutex did: see waitQueue.leftFree.
func (o *ownership) leftFree(open time.Duration, granted bool) {
	defer o.lockShard().mu.Unlock()
	if o.onKey.queue != nil {
		o.onKey.queue.leftFree(open, granted)
	}
}

// noteReceivers records how many subscribers received the message that the lock is free.
func (o *ownership) noteReceivers(receivers int64) {
	shard := o.lockShard()
	defer shard.mu.Unlock()
	if o.onKey.queue != nil && o.onKey.queue.sub.Live() {
		receivers--
	}
	if receivers > 0 {
		shard.queueOf(o.lock.lineKey()).noteStrangers()
	}
}

// releaseBegins reports whether this client will receive the message of the release: see
// waitQueue.releaseBegins.
func (o *ownership) releaseBegins() bool {
	defer o.lockShard().mu.Unlock()
	return o.onKey.queue != nil && o.onKey.queue.releaseBegins()
}

// releaseFails lets the first in line query the server, because the last release has failed: it may have run,
// or may never run. The waiter that comes to the front goes on with the next owner; if there is no such waiter, the
// owner is returned as left. o.mu is held: an ownership that is over is no longer counted.
func (o *ownership) releaseFails() (left any) {
	defer o.lockShard().mu.Unlock()
	if o.othersMayAttempt {
		return nil
	}
	o.othersMayAttempt = true
	next := o.takeNext().asLeft()
	if o.onKey.queue == nil {
		return next
	}
	return o.onKey.queue.unblock(next)
}

// leaveLine ends the hold for the goroutines in line. noEcho, next and left are as for waitQueue.endHold.
// It returns the wait queue if its front may have to be woken.
func (o *ownership) leaveLine(noEcho bool, next *ownership) (left any, whole *waitQueue) {
	shard := o.lockShard()
	defer shard.mu.Unlock()
	o.lock.client.registry.live.remove(shard, o)
	q := o.onKey.queue
	if q == nil {
		return next.asLeft(), nil
	}
	whole, o.onKey.queue = q.whole(), nil
	whole.attached--
	q.held -= o.keepsOut()
	left, used := q.endHold(noEcho, !o.othersMayAttempt, next.asLeft())
	if !used {
		return left, nil
	}
	return left, whole
}
