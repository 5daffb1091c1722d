package line

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/engine/turns"
)

// This file is what a line learns of clients that know nothing of it. shard.mu guards it.

// TakeTurns makes the lock take turns with strangers. For other kinds of objects the same
// message has another meaning.
func (q *Line) TakeTurns() {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.whole().strangers.TakesTurns = true
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

// StrangerHolds notes that the front was refused because a stranger holds the lock: see
// turns.Strangers.TheyHold.
func (q *Line) StrangerHolds(first bool) {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	whole := q.whole()
	whole.strangers.TheyHold(first, len(whole.exclusive().waiters), time.Now())
}

// RecipeHolds notes that the front was refused because another library holds the mutex: see
// turns.Recipe.TheyHold.
func (q *Line) RecipeHolds(token string) time.Duration {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.openUntil = time.Time{}
	return q.recipe.TheyHold(token, time.Now())
}

// endlessPasses is how many times a hold may be passed on if nobody else wants it.
const endlessPasses = 1 << 30

// passesOfTurn returns how many times a hold that begins now may be passed on. shard.mu is held.
func (q *Line) passesOfTurn() int {
	if now := time.Now(); q.whole().strangers.Known(now) || q.recipe.Seen(now) {
		return len(q.waiters)
	}
	return endlessPasses
}

// strangersFirst is the message of a release, published before that of the lock itself, after which
// strangers may acquire the lock first.
const strangersFirst = "2"

// letStrangersFirst ignores the messages of a release. The front tries if no other message comes
// within turns.StrangerPause. shard.mu is held.
func (q *Line) letStrangersFirst() {
	messages := 1
	if q.sides != nil {
		messages++ // the release of such a lock publishes two messages
	}
	if q.echoes == 0 {
		messages++
	}
	q.strangers.AreAnnounced(messages, len(q.exclusive().waiters))
	q.letStrangerGoFirst()
}

// letStrangerGoFirst reports whether other strangers may go first, now that one has released the
// lock. The front tries if no message of theirs comes within turns.StrangerPause. shard.mu is held.
func (q *Line) letStrangerGoFirst() bool {
	if !q.strangers.GoesFirst() {
		return false
	}
	heard := q.strangers.ReleasesHeard
	time.AfterFunc(turns.StrangerPause, func() {
		q.shard.mu.Lock()
		quiet := q.strangers.ReleasesHeard == heard // they may all have left
		q.shard.mu.Unlock()
		if quiet {
			q.Signal()
		}
	})
	return true
}

// Standing returns how this client stands to strangers. A nil line knows of none.
func (q *Line) Standing() turns.Standing {
	if q == nil {
		return turns.Alone
	}
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	return q.share.Stands(time.Now())
}

// HadPermits counts an acquisition of this client.
func (q *Line) HadPermits() {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.share.Count(1, 0)
}

// forStrangers leaves the next message to strangers.
func (q *Line) forStrangers() {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.share.ForStrangers++
}

// SharesWith notes how many strangers there are. A nil line does not.
func (q *Line) SharesWith(strangers int) {
	if q == nil || strangers <= 0 {
		return
	}
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.share.With(strangers, time.Now())
}
