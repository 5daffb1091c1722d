package latchkey

import "time"

// What a client holds is registered by its key, from when it begins until it is over. It uses the wait queue of what it
// is while there is one: while goroutines of the client want it, and for a short time after.

// lineHeld is something that a client holds, and that goroutines of it may want.
type lineHeld interface {
	// lineKey names what those wait for that want it.
	lineKey() lineKey
	// passedIn returns the line in which it is passed on, or onlyLine if it is not passed on.
	passedIn() lineKind
	// keepsOut reports whether it keeps others out.
	keepsOut() bool
}

// lineLinks link something that a client holds to the others on its key, and to the goroutines that want it. The mutex
// of the shard of the key guards the fields that change.
type lineLinks struct {
	of  lineHeld
	all *waitQueues

	newer, older *lineLinks // the next ones on the key, or nil
	queue        *waitQueue // the line in which it is passed on, or the whole queue; nil if there is none
	mayAttempt   bool       // its last release failed, so those that wait may query the server
}

// linksOf returns the links of something that is about to be held.
func (all *waitQueues) linksOf(h lineHeld) lineLinks { return lineLinks{of: h, all: all} }

// find returns what is held on a key, the newest for which wanted returns true, or nil. The mutex of the shard is held
// meanwhile.
func (all *waitQueues) find(key string, wanted func(lineHeld) bool) lineHeld {
	shard := all.shard(key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	for l := shard.live[key]; l != nil; l = l.older {
		if wanted(l.of) {
			return l.of
		}
	}
	return nil
}

// held returns everything that is held.
func (all *waitQueues) held() (held []lineHeld) {
	for i := range all.shards {
		shard := &all.shards[i]
		shard.mu.Lock()
		for _, newest := range shard.live {
			for l := newest; l != nil; l = l.older {
				held = append(held, l.of)
			}
		}
		shard.mu.Unlock()
	}
	return held
}

// attachTo makes what is held on the key of a wait queue use it. s.mu is held.
func (s *queueShard) attachTo(q *waitQueue) {
	for l := s.live[q.key.key]; l != nil; l = l.older {
		if l.of.lineKey() != q.key {
			continue
		}
		l.attach(q)
		if !l.mayAttempt {
			l.queue.blocking++
		}
	}
}

// detachFrom makes what is held stop using a wait queue. s.mu is held.
func (s *queueShard) detachFrom(q *waitQueue) {
	for l := s.live[q.key.key]; l != nil; l = l.older {
		if l.of.lineKey() == q.key {
			l.queue = nil
		}
	}
}

// link links something in. s.mu is held.
func (s *queueShard) link(l *lineLinks) {
	key := l.of.lineKey().key
	if older := s.live[key]; older != nil {
		l.older, older.newer = older, l
	}
	s.live[key] = l
}

// unlink is the reverse of link. s.mu is held.
func (s *queueShard) unlink(l *lineLinks) {
	newer, older := l.newer, l.older
	l.newer, l.older = nil, nil
	if older != nil {
		older.newer = newer
	}
	switch key := l.of.lineKey().key; {
	case newer != nil:
		newer.older = older
	case older != nil:
		s.live[key] = older
	default:
		delete(s.live, key)
	}
}

// attach makes it use the wait queue, in which it keeps others out. It does not block the front yet. shard.mu is held.
func (l *lineLinks) attach(q *waitQueue) {
	q.users++
	q.attached++
	l.queue = q.lineOf(l.of.passedIn())
	l.queue.held += l.keepsOut()
}

// keepsOut is 1 if it keeps others out, else 0.
func (l *lineLinks) keepsOut() int32 {
	if l.of.keepsOut() {
		return 1
	}
	return 0
}

// lockShard locks the shard of the key, and returns it.
func (l *lineLinks) lockShard() *queueShard {
	shard := l.all.shard(l.of.lineKey().key)
	shard.mu.Lock()
	return shard
}

// holdBegins is called when it begins to be held, and returns how often the hold may be passed on.
func (l *lineLinks) holdBegins() (passes int) {
	shard := l.lockShard()
	defer shard.mu.Unlock()
	shard.link(l)
	q := shard.queues[l.of.lineKey()]
	if q == nil {
		return endlessPasses
	}
	l.attach(q)
	return l.queue.countHold(l.of.keepsOut())
}

// firstInLine returns the first in line behind it, or nil.
func (l *lineLinks) firstInLine() recipient {
	defer l.lockShard().mu.Unlock()
	if l.queue == nil {
		return nil
	}
	return l.queue.firstLocked()
}

// hasLine reports whether anybody waits in line behind it.
func (l *lineLinks) hasLine() bool {
	defer l.lockShard().mu.Unlock()
	return l.queue != nil && len(l.queue.line) > 0
}

// takeFirst removes the first in line, to pass it the hold: see waitQueue.takeFirstLocked.
func (l *lineLinks) takeFirst() *waiter {
	defer l.lockShard().mu.Unlock()
	if l.queue == nil {
		return nil
	}
	return l.queue.takeFirstLocked(l.of)
}

// openLine lets others have the hold along with its holder, until closeLine.
func (l *lineLinks) openLine() {
	shard := l.lockShard()
	defer shard.mu.Unlock()
	shard.queueOf(l.of.lineKey())
	l.queue.open = l.of
}

func (l *lineLinks) closeLine() {
	defer l.lockShard().mu.Unlock()
	if q := l.queue; q != nil && q.open == l.of {
		q.open = nil
	}
}

// openFor returns for how long the release leaves a mutex to other libraries: see recipeTurns.openFor.
func (l *lineLinks) openFor(taken time.Time) time.Duration {
	defer l.lockShard().mu.Unlock()
	if l.queue == nil {
		return 0
	}
	return l.queue.recipe.openFor(taken, time.Now())
}

// leftFree records what the release of a mutex did: see waitQueue.leftFree.
func (l *lineLinks) leftFree(open time.Duration, granted bool) {
	defer l.lockShard().mu.Unlock()
	if l.queue != nil {
		l.queue.leftFree(open, granted)
	}
}

// noteReceivers records how many subscribers received the message that the lock is free.
func (l *lineLinks) noteReceivers(receivers int64) {
	shard := l.lockShard()
	defer shard.mu.Unlock()
	if l.queue != nil && l.queue.sub.Live() {
		receivers--
	}
	if receivers > 0 {
		shard.queueOf(l.of.lineKey()).noteStrangers()
	}
}

// releaseBegins reports whether this client will receive the message of the release: see waitQueue.releaseBegins.
func (l *lineLinks) releaseBegins() bool {
	defer l.lockShard().mu.Unlock()
	return l.queue != nil && l.queue.releaseBegins()
}

// releaseFails lets the first in line query the server, because the last release has failed: it may have run, or may
// never run. The waiter that comes to the front goes on with next, which may be nil; if there is no such waiter, next is
// returned as left. taken is false if that was done before: then next is still the caller's.
func (l *lineLinks) releaseFails(next linePlace) (left linePlace, taken bool) {
	defer l.lockShard().mu.Unlock()
	if l.mayAttempt {
		return nil, false
	}
	l.mayAttempt = true
	if l.queue == nil {
		return next, true
	}
	return l.queue.unblock(next), true
}

// holdEnds ends the hold for the goroutines in line. noEcho, next and left are as for waitQueue.endHold. It returns the
// wait queue if its front may have to be woken.
func (l *lineLinks) holdEnds(noEcho bool, next linePlace) (left linePlace, whole *waitQueue) {
	shard := l.lockShard()
	defer shard.mu.Unlock()
	shard.unlink(l)
	q := l.queue
	if q == nil {
		return next, nil
	}
	whole, l.queue = q.whole(), nil
	whole.attached--
	q.held -= l.keepsOut()
	left, used := q.endHold(noEcho, !l.mayAttempt, next)
	if !used {
		return left, nil
	}
	return left, whole
}
