package line

import "time"

// This file is what a line learns of clients that know nothing of it. shard.mu guards it.

// TakeTurns notes that the lock takes turns with strangers. For other kinds of objects the same
// message has another meaning.
func (q *Line) TakeTurns() {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.strangers.takesTurns = true
}

// noteStrangers notes that other clients received the message that this client has left the lock free. They go first.
// shard.mu is held.
func (q *Line) noteStrangers() {
	now := time.Now()
	q.contended = true
	if !q.strangers.theyReceive(now) {
		return
	}
	if line, open := q.exclusive(), now.Add(strangerPause); open.After(line.openUntil) {
		line.openUntil = open
	}
}

// openLeft returns for how long the front leaves the lock to others.
func (q *Line) openLeft() time.Duration {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	if q.openUntil.IsZero() { // as most often: the clock need not be read
		return 0
	}
	return max(0, time.Until(q.openUntil))
}

// StrangerHolds notes that the front was refused because a stranger holds the lock: see strangerTurns.theyHold.
func (q *Line) StrangerHolds(first bool) {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.strangers.theyHold(first, len(q.exclusive().line), time.Now())
}

// RecipeHolds notes that the front was refused because another library holds the mutex: see recipeTurns.theyHold.
func (q *Line) RecipeHolds(token string) time.Duration {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.openUntil = time.Time{}
	return q.recipe.theyHold(token, time.Now())
}

// leftFree notes the effect of a release of a mutex: see recipeTurns.leftFree. shard.mu is held.
func (q *Line) leftFree(open time.Duration, granted bool) {
	now := time.Now()
	if q.recipe.leftFree(open, granted, now) {
		q.openUntil = now.Add(open)
	}
}

// StrangersMayLeaveLast reports whether the last holder to leave the lock may be a stranger.
func (q *Line) StrangersMayLeaveLast() bool {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	return q.main != nil && q.main.strangers.mayShare(time.Now())
}

// endlessPasses is how many times a hold may be passed on if nobody else wants it.
const endlessPasses = 1 << 30

// passesOfTurn returns how many times a hold that begins now may be passed on. shard.mu is held.
func (q *Line) passesOfTurn() int {
	if now := time.Now(); q.Whole().strangers.known(now) || q.recipe.seen(now) {
		return len(q.line)
	}
	return endlessPasses
}

// strangersFirst is the message of a release, published before that of the lock itself, after which
// strangers may acquire the lock first.
const strangersFirst = "2"

// letStrangersFirst ignores the messages of a release. The front tries if no other message comes
// within strangerPause. shard.mu is held.
func (q *Line) letStrangersFirst() {
	messages := 1
	if q.lines.Load() != nil {
		messages++ // the release of such a lock publishes two messages
	}
	if q.echoes == 0 {
		messages++
	}
	q.strangers.areAnnounced(messages, len(q.exclusive().line))
	q.letStrangerGoFirst()
}

// letStrangerGoFirst reports whether other strangers may go first, now that one has released the
// lock. The front tries if no message of theirs comes within strangerPause. shard.mu is held.
func (q *Line) letStrangerGoFirst() bool {
	if !q.strangers.goesFirst() {
		return false
	}
	heard := q.strangers.releasesHeard
	time.AfterFunc(strangerPause, func() {
		q.shard.mu.Lock()
		quiet := q.strangers.releasesHeard == heard // they may all have left
		q.shard.mu.Unlock()
		if quiet {
			q.Signal()
		}
	})
	return true
}

// Standing returns how this client stands to strangers. A nil queue knows of none.
func (q *Line) Standing() Standing {
	if q == nil {
		return Alone
	}
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	return q.share.stands(time.Now())
}

// HadPermits counts an acquisition of this client.
func (q *Line) HadPermits() {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.share.count(1, 0)
}

// leaveNextToStrangers makes this client ignore the next message.
func (q *Line) leaveNextToStrangers() {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.share.forStrangers++
}

// SharesWith notes how many strangers there are. A nil queue does not.
func (q *Line) SharesWith(strangers int) {
	if q == nil || strangers <= 0 {
		return
	}
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.share.with(strangers, time.Now())
}
