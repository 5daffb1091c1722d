package latchkey

import "time"

// Strangers are clients that know nothing of the queue of a lock: Redisson, above all. They receive
// the message that the lock is free, and acquire it if they are fast. A client of this library
// shares the lock with them: if there are strangers, its turn has as many holds as it has
// goroutines that want the lock, and then strangers may have as many.

const (
	// strangersLinger is how long a client takes strangers into account after it has seen them.
	strangersLinger = time.Second
	// strangersMayShare is how long a client takes strangers into account that may hold a shared
	// lock together with clients of this library. If a stranger leaves last, only subscribers learn
	// of it.
	strangersMayShare = 10 * time.Second
	// strangerPause is how long strangers have to acquire a free lock.
	strangerPause = 3 * time.Millisecond
	// unusedPauses is how many pauses in succession strangers may leave unused. Then the front pauses once in so many
	// releases: those that listen may have no wish to hold the lock.
	unusedPauses = 8
)

// strangerTurns is what a wait queue knows of strangers. shard.mu guards it.
type strangerTurns struct {
	takesTurns    bool      // its lock takes turns with strangers
	until         time.Time // until when strangers are taken into account
	ourHolds      int       // holds of this client since the strangers' last one
	ourLastTurn   int       // holds in the last turn of this client
	turnLeft      int       // releases of strangers after which another stranger may go first
	releasesHeard int       // releases of strangers that were heard in their turn
	unused        int       // releases that left the lock free, since a stranger was last found to hold it
}

// takeTurns notes that the lock takes turns with strangers. For other kinds of objects the same
// message has another meaning.
func (q *waitQueue) takeTurns() {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.strangers.takesTurns = true
}

// noteStrangers notes that other clients received the message that this client has left the lock free. They go first.
// shard.mu is held.
func (q *waitQueue) noteStrangers() {
	now := time.Now()
	q.contended = true
	q.strangers.until = now.Add(strangersLinger)
	if q.strangers.unused++; q.strangers.unused > unusedPauses && q.strangers.unused%unusedPauses != 0 {
		return
	}
	if line, open := q.exclusive(), now.Add(strangerPause); open.After(line.openUntil) {
		line.openUntil = open
	}
}

// openLeft returns for how long the front leaves the lock to others.
func (q *waitQueue) openLeft() time.Duration {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	return max(0, until(q.openUntil))
}

// strangerHolds notes that the front was refused because a stranger holds the lock. The first such
// refusal of a wait begins the turn of the strangers. It has as many holds as the turn of this
// client had, and at least one.
func (q *waitQueue) strangerHolds(first bool) {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.strangers.until, q.strangers.unused = time.Now().Add(strangersLinger), 0
	if first && q.strangers.ourHolds > 0 {
		q.beginStrangersTurn()
	}
}

// beginStrangersTurn lets strangers have as many holds as this client had in its last turn, even if
// it had none since theirs. The front may try after the last of them. shard.mu is held.
func (q *waitQueue) beginStrangersTurn() {
	if q.strangers.ourHolds == 0 && q.strangers.turnLeft > 0 {
		return // their turn continues
	}
	if q.strangers.ourHolds > 0 {
		q.strangers.ourLastTurn, q.strangers.ourHolds = q.strangers.ourHolds, 0
	}
	q.strangers.turnLeft = min(max(q.strangers.ourLastTurn-1, 0), len(q.exclusive().line))
}

// countOwnHold counts a hold of this client, in a turn of its own. shard.mu is held.
func (q *waitQueue) countOwnHold() {
	whole := q.whole()
	whole.strangers.ourHolds++
	whole.strangers.turnLeft = 0
}

// strangersKnown reports whether strangers have just been seen. shard.mu is held.
func (q *waitQueue) strangersKnown() bool { return until(q.whole().strangers.until) > 0 }

// strangersMayLeaveLast reports whether the last holder to leave the lock may be a stranger.
func (q *waitQueue) strangersMayLeaveLast() bool {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	return q.main != nil && time.Since(q.main.strangers.until) < strangersMayShare
}

// endlessPasses is how many times a hold may be passed on if nobody else wants it.
const endlessPasses = 1 << 30

// passesOfTurn returns how many times a hold that begins now may be passed on. shard.mu is held.
func (q *waitQueue) passesOfTurn() int {
	if q.strangersKnown() || q.seesRecipe() {
		return len(q.line)
	}
	return endlessPasses
}

// strangersFirst is the message of a release, published before that of the lock itself, after which
// strangers may acquire the lock first.
const strangersFirst = "2"

// letStrangersFirst ignores the messages of a release. The front tries if no other message comes
// within strangerPause. shard.mu is held.
func (q *waitQueue) letStrangersFirst() {
	q.beginStrangersTurn()
	q.strangers.turnLeft++
	q.letStrangerGoFirst()
	if q.lines.Load() != nil {
		q.strangers.turnLeft++ // the release of such a lock publishes two messages
	}
	if q.echoes == 0 {
		q.strangers.turnLeft++
	}
}

// letStrangerGoFirst reports whether other strangers may go first, now that one has released the
// lock. The front tries if no message of theirs comes within strangerPause. shard.mu is held.
func (q *waitQueue) letStrangerGoFirst() bool {
	if q.strangers.turnLeft == 0 {
		return false
	}
	q.strangers.turnLeft--
	q.strangers.releasesHeard++
	heard := q.strangers.releasesHeard
	time.AfterFunc(strangerPause, func() {
		q.shard.mu.Lock()
		quiet := q.strangers.releasesHeard == heard // they may all have left
		q.shard.mu.Unlock()
		if quiet {
			q.signal()
		}
	})
	return true
}

// until returns the time until t, and at most 0 if t is past or zero. Most times are zero; for them it does not
// read the clock.
func until(t time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return time.Until(t)
}
