package turns

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/transport/retry"
)

// Other libraries follow the recipe of a mutex too: redsync, redislock, redis-py and others. They
// publish nothing when they release a mutex, nobody can see that they wait, and many acquire it
// again at once. So the front asks often while the mutex changes hands among them. And a client
// that takes the mutex again and again leaves it free from time to time, for long enough that one
// of them finds it.

// How the front and the client behave beside other libraries.
const (
	// recipeFast is the pause of the front after it has found the mutex in new hands, and
	// RecipeSlow the longest one, after it has found it in the same.
	recipeFast = 10 * time.Millisecond
	RecipeSlow = 250 * time.Millisecond
	// recipeTurn is how long a client takes the mutex again and again before it leaves it free for
	// recipeOpen, if it has seen no other library for recipeLinger.
	recipeTurn   = time.Second
	recipeOpen   = 50 * time.Millisecond
	recipeLinger = 5 * time.Second
	// shortestTurn and longestTurn bound how long it does so if it has seen one: as long as the
	// other had the mutex before.
	shortestTurn = 100 * time.Millisecond
	longestTurn  = 2 * time.Second
)

// Recipe is what a client knows of other libraries that use its mutex.
type Recipe struct {
	token       string        // of the one that held the mutex at the front's last attempt
	pace        time.Duration // of the front while they hold the mutex
	seenUntil   time.Time     // when they are forgotten
	theirsSince time.Time     // since when they hold the mutex, or zero
	oursSince   time.Time     // since when this client takes the mutex again and again, or zero
	turn        time.Duration // how long it may do so
	freeSince   time.Time     // when a release of this client left the mutex free, or zero
}

// TheyHold notes that the front was refused because another library holds the mutex, and returns
// the pause before the next attempt.
func (r *Recipe) TheyHold(token string, now time.Time) time.Duration {
	pace, since := recipeFast, r.theirsSince
	if token == r.token {
		pace = min(r.pace*3/2, RecipeSlow)
	}
	if since.IsZero() {
		since = now
	}
	*r = Recipe{token: token, pace: pace, seenUntil: now.Add(recipeLinger), theirsSince: since}
	return retry.Jitter(pace)
}

// OpenFor returns for how long the release that begins now is to leave the mutex to other
// libraries, or 0. Even if none have been seen there may be some, because they hardly ever find a
// mutex free that this client acquires again at once. taken is when the server granted it to this
// client.
func (r *Recipe) OpenFor(taken, now time.Time) time.Duration {
	wasFree := !r.freeSince.IsZero() && taken.Sub(r.freeSince) >= recipeOpen
	r.freeSince = time.Time{}
	switch {
	case r.oursSince.IsZero() || wasFree:
		r.beginOurs(now)
	case now.Sub(r.oursSince) >= r.turn:
		return recipeOpen
	}
	return 0
}

// beginOurs begins a turn of this client.
func (r *Recipe) beginOurs(now time.Time) {
	had := time.Duration(0)
	if !r.theirsSince.IsZero() {
		had = now.Sub(r.theirsSince)
	}
	r.oursSince, r.theirsSince, r.turn = now, time.Time{}, recipeTurn
	if r.Seen(now) {
		r.turn = min(max(had, shortestTurn), longestTurn)
	}
}

// LeftFree notes the effect of a release: the mutex is free, or granted to another client, which
// continues the turn. If it was left to other libraries, which open says, the turn of this client
// is over, and LeftFree returns true.
func (r *Recipe) LeftFree(open time.Duration, granted bool, now time.Time) (toOthers bool) {
	switch {
	case granted && open > 0:
		r.oursSince = now
	case granted:
	case open > 0:
		r.oursSince = time.Time{}
		return true
	default:
		r.freeSince = now
	}
	return false
}

// Seen reports whether another library has been seen.
func (r *Recipe) Seen(now time.Time) bool { return now.Before(r.seenUntil) }
