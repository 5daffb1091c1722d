package latchkey

import "time"

// What an ownership has to do with the goroutines of its client that want its key. There is a wait queue only
// while there are any, or were a moment ago.

// lockShard locks the shard of the key, and returns it.
func (o *ownership) lockShard() *queueShard {
	shard := o.lock.client.waitQueues.shard(o.lock.key)
	shard.mu.Lock()
	return shard
}

// firstInLine is who is the first in line behind the ownership, or nil.
func (o *ownership) firstInLine() any {
	defer o.lockShard().mu.Unlock()
	if o.onKey.queue == nil {
		return nil
	}
	return o.onKey.queue.firstInLine()
}

// hasLine reports whether anybody is in line behind the ownership.
func (o *ownership) hasLine() bool {
	defer o.lockShard().mu.Unlock()
	return o.onKey.queue != nil && o.onKey.queue.line.length > 0
}

// takeFirst takes the first in line out of it, to be passed the hold: see waitQueue.takeFirst.
func (o *ownership) takeFirst() *waiter {
	defer o.lockShard().mu.Unlock()
	if o.onKey.queue == nil {
		return nil
	}
	return o.onKey.queue.takeFirstFor(o)
}

// openLine says that others may have the hold from now on along with its holder, and closeLine that they may not
// any more.
func (o *ownership) openLine() {
	shard, hash := o.lock.client.waitQueues.locate(o.lock.key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	shard.queueOf(o.lock.key, hash)
	o.onKey.queue.open = o
}

func (o *ownership) closeLine() {
	defer o.lockShard().mu.Unlock()
	if q := o.onKey.queue; q != nil && q.open == any(o) {
		q.open = nil
	}
}

// openFor is for how long the release leaves a mutex to pollers: see waitQueue.openFor.
func (o *ownership) openFor() time.Duration {
	taken := o.turnBegan()
	defer o.lockShard().mu.Unlock()
	if o.onKey.queue == nil {
		return 0
	}
	return o.onKey.queue.openFor(taken)
}

// leftFree notes what the release of a mutex has done: see waitQueue.leftFree.
func (o *ownership) leftFree(open time.Duration, given bool) {
	defer o.lockShard().mu.Unlock()
	if o.onKey.queue != nil {
		o.onKey.queue.leftFree(open, given)
	}
}

// strangersTold notes how many subscribers were told that the lock is free.
func (o *ownership) strangersTold(told int64) {
	shard, hash := o.lock.client.waitQueues.locate(o.lock.key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if o.onKey.queue != nil && o.onKey.queue.sub.live() {
		told--
	}
	if told > 0 {
		shard.queueOf(o.lock.key, hash).strangersTold()
	}
}

// releaseBegins reports whether the message of the release will be heard here: see waitQueue.releaseBegins.
func (o *ownership) releaseBegins() bool {
	defer o.lockShard().mu.Unlock()
	return o.onKey.queue != nil && o.onKey.queue.releaseBegins()
}

// releaseFails has the first in line ask the server, because the last release has failed. It may have been
// executed, and it may never be. left is what the next in front would go on with, if there is nobody. o.mu is
// held: an ownership that is over is not counted any more.
func (o *ownership) releaseFails(next any) (left any) {
	defer o.lockShard().mu.Unlock()
	o.othersAsk = true
	if o.onKey.queue == nil {
		return next
	}
	return o.onKey.queue.standsNoMore(next)
}

// leaveLine ends the hold for those in line. told, noEcho, next and left are as for waitQueue.endHold. The
// wait queue is returned if its front may have to be woken.
func (o *ownership) leaveLine(told int64, noEcho bool, next any) (left any, whole *waitQueue) {
	shard, hash := o.lock.client.waitQueues.locate(o.lock.key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	o.lock.client.registry.live.remove(o, hash)
	q := o.onKey.queue
	if q == nil {
		return next, nil
	}
	whole, o.onKey.queue = q.whole(), nil
	whole.attached--
	left, used := q.endHold(told, noEcho, !o.othersAsk, next)
	if !used {
		return left, nil
	}
	return left, whole
}
