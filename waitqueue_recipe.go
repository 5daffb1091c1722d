package latchkey

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// Other libraries follow the recipe of [Mutex] too. They publish nothing when they release a mutex, nobody can see that
// they wait, and many acquire it again at once. So the front asks often while the mutex changes hands among them. And a
// client that takes the mutex again and again leaves it free from time to time, for long enough that one of them finds it.

const (
	// recipeFast is the pause of the front after it has found the mutex in new hands, and recipeSlow the longest one, after
	// it has found it in the same.
	recipeFast = 10 * time.Millisecond
	recipeSlow = 250 * time.Millisecond
	// recipeTurn is how long a client takes the mutex again and again before it leaves it free for recipeOpen, if it has
	// seen no other library for recipeLinger.
	recipeTurn   = time.Second
	recipeOpen   = 50 * time.Millisecond
	recipeLinger = 5 * time.Second
	// shortestTurn and longestTurn bound how long it does so if it has seen one: as long as the other had the mutex before.
	shortestTurn = 100 * time.Millisecond
	longestTurn  = 2 * time.Second
)

// recipeTurns is what a wait queue knows of other libraries that use its mutex. shard.mu guards it.
type recipeTurns struct {
	token       string        // of the one that held the mutex at the front's last attempt
	pace        time.Duration // of the front while they hold the mutex
	seenUntil   time.Time     // when they are forgotten
	theirsSince time.Time     // since when they hold the mutex, or zero
	oursSince   time.Time     // since when this client takes the mutex again and again, or zero
	turn        time.Duration // how long it may do so
	freeSince   time.Time     // when a release of this client left the mutex free, or zero
}

// recipeHolds notes that the front was refused because another library holds the mutex, and returns the pause before the
// next attempt.
func (q *waitQueue) recipeHolds(token string) time.Duration {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	now, pace, since := time.Now(), recipeFast, q.recipe.theirsSince
	if token == q.recipe.token {
		pace = min(q.recipe.pace*3/2, recipeSlow)
	}
	if since.IsZero() {
		since = now
	}
	q.openUntil = time.Time{}
	q.recipe = recipeTurns{token: token, pace: pace, seenUntil: now.Add(recipeLinger), theirsSince: since}
	return transport.Jitter(pace)
}

// openFor returns for how long the release that begins now is to leave the mutex to other libraries, or 0. Even if none
// have been seen there may be some, because they hardly ever find a mutex free that this client acquires again at once.
// taken is when the server granted it to this client. shard.mu is held.
func (q *waitQueue) openFor(taken time.Time) time.Duration {
	now := time.Now()
	wasFree := !q.recipe.freeSince.IsZero() && taken.Sub(q.recipe.freeSince) >= recipeOpen
	q.recipe.freeSince = time.Time{}
	switch {
	case q.recipe.oursSince.IsZero() || wasFree:
		q.beginOurTurn(now)
	case now.Sub(q.recipe.oursSince) >= q.recipe.turn:
		return recipeOpen
	}
	return 0
}

// beginOurTurn begins a turn of this client. shard.mu is held.
func (q *waitQueue) beginOurTurn(now time.Time) {
	had := time.Duration(0)
	if !q.recipe.theirsSince.IsZero() {
		had = now.Sub(q.recipe.theirsSince)
	}
	q.recipe.oursSince, q.recipe.theirsSince, q.recipe.turn = now, time.Time{}, recipeTurn
	if q.seesRecipe() {
		q.recipe.turn = min(max(had, shortestTurn), longestTurn)
	}
}

// leftFree notes the effect of a release: the mutex is free, or granted to another client, which continues the turn. If it
// was left to other libraries, the turn of this client is over. shard.mu is held.
func (q *waitQueue) leftFree(open time.Duration, granted bool) {
	now := time.Now()
	switch {
	case granted && open > 0:
		q.recipe.oursSince = now
	case granted:
	case open > 0:
		q.recipe.oursSince, q.openUntil = time.Time{}, now.Add(open)
	default:
		q.recipe.freeSince = now
	}
}

// seesRecipe reports whether another library has been seen. shard.mu is held.
func (q *waitQueue) seesRecipe() bool { return until(q.recipe.seenUntil) > 0 }
