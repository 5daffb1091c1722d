package latchkey

import "time"

// Strangers are clients that know nothing of the queue of a lock: Redisson, above all. They are
// told when the lock is free, and take it if they are quick. A client of this library shares the
// lock with them: beside strangers a turn has as many holds as there are goroutines that want the
// lock, and after it strangers may have as many.

const (
	// strangersLinger is for how long strangers are reckoned with that were seen.
	strangersLinger = time.Second
	// strangersMayShare is for how long those are reckoned with that may have a shared lock along
	// with clients of this library, and leave it last, which only those are told that listen.
	strangersMayShare = 10 * time.Second
	// strangerPause is how long strangers have to take a lock that is free, or permits.
	strangerPause = 3 * time.Millisecond
	// longestStrangerPause is how long they have if they were slower before.
	longestStrangerPause = 2 * strangerPause
)

// beside is what a wait queue knows of strangers. shard.mu guards it.
type beside struct {
	takesTurns     bool      // it is of a lock that takes turns with strangers
	strangersUntil time.Time // when they are forgotten
	had            int       // holds of this client since one of theirs
	lastTurn       int       // holds in the last turn of this client
	letPass        int       // releases of theirs after which others of them may go first
	passed         int       // releases that were heard meanwhile
}

// takeTurns says that the lock takes turns with strangers. To others their messages mean something
// else.
func (q *waitQueue) takeTurns() {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.takesTurns = true
}

// strangersTold notes that others than this client were told that the lock is free. shard.mu is held.
func (q *waitQueue) strangersTold() {
	q.contended = true
	q.strangersUntil = time.Now().Add(strangersLinger)
}

// strangerHolds notes that the front was refused because a stranger has the lock. With the
// first such refusal of a wait the turn of the strangers begins. It has as many holds as the turn of
// this client had, and one at least.
func (q *waitQueue) strangerHolds(first bool) {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.strangersUntil = time.Now().Add(strangersLinger)
	if first && q.had > 0 {
		q.beginStrangersTurn()
	}
}

// beginStrangersTurn lets them have as many holds as this client had in its last turn, also if it had
// none since theirs: the front may ask after the last of them. shard.mu is held.
func (q *waitQueue) beginStrangersTurn() {
	if q.had == 0 && q.letPass > 0 {
		return // their turn lasts
	}
	if q.had > 0 {
		q.lastTurn, q.had = q.had, 0
	}
	q.letPass = min(max(q.lastTurn-1, 0), q.exclusive().line.length)
}

// turnGoesOn counts a hold of this client, in a turn of its own. shard.mu is held.
func (q *waitQueue) turnGoesOn() {
	whole := q.whole()
	whole.had++
	whole.letPass = 0
}

// strangersKnown reports whether strangers have just been seen. shard.mu is held.
func (q *waitQueue) strangersKnown() bool { return until(q.whole().strangersUntil) > 0 }

// strangersMayLeaveLast reports whether the last who leaves the lock may be a stranger.
func (q *waitQueue) strangersMayLeaveLast() bool {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	return q.main != nil && time.Since(q.main.strangersUntil) < strangersMayShare
}

// strangersPause is how long strangers that are known have to take a lock. shard.mu is held.
func (q *waitQueue) strangersPause() time.Duration {
	if q.strangersKnown() {
		return strangerPause
	}
	return 0
}

// endlessPasses is how often a hold may be passed on that nobody else wants.
const endlessPasses = 1 << 30

// passesOfTurn returns how often a hold that begins may be passed on. shard.mu is held.
func (q *waitQueue) passesOfTurn() int {
	if q.strangersKnown() || q.hasPollers() {
		return q.line.length
	}
	return endlessPasses
}

// strangersFirst is the message of a release, before that of the lock itself, after which strangers
// may take it first.
const strangersFirst = "2"

// letStrangersFirst lets the messages of a release go by. The front asks if nothing else is heard for
// a moment. shard.mu is held.
func (q *waitQueue) letStrangersFirst() {
	q.beginStrangersTurn()
	q.letPass++
	q.letStrangerPass()
	if q.lines.Load() != nil {
		q.letPass++ // two messages tell of the release of such a lock
	}
	if q.ownMessages == 0 {
		q.letPass++
	}
}

// letStrangerPass reports whether other strangers may go first, now that one has released the
// lock. The front asks if none of them is heard of for a moment. shard.mu is held.
func (q *waitQueue) letStrangerPass() bool {
	if q.letPass == 0 {
		return false
	}
	q.letPass--
	q.passed++
	heard := q.passed
	time.AfterFunc(strangerPause, func() {
		q.shard.mu.Lock()
		quiet := q.passed == heard // all may have left meanwhile
		q.shard.mu.Unlock()
		if quiet {
			q.signal()
		}
	})
	return true
}
