package line

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// afterTurn returns what a client knows that has taken its mutex again and again for as long, until
// now.
func afterTurn(lasted time.Duration, now time.Time) *recipeTurns {
	r := &recipeTurns{}
	r.openFor(now, now)
	r.oursSince = now.Add(-lasted)
	return r
}

// A client that takes a mutex again and again leaves it free now and then, although it has seen
// nobody else.
func TestRecipeTurns_of_libraries_that_are_not_seen(t *testing.T) {
	now := time.Now()
	require.Zero(t, afterTurn(recipeTurn-1, now).openFor(now, now))
	r := afterTurn(recipeTurn, now)
	require.Equal(t, recipeOpen, r.openFor(now, now))
	assert.True(t, r.leftFree(recipeOpen, false, now), "to others")
	assert.Zero(t, r.openFor(now, now), "a turn has begun")
}

// A mutex that was free for that long need not be left free.
func TestRecipeTurns_of_a_mutex_that_is_free_at_times(t *testing.T) {
	now := time.Now()
	r := afterTurn(recipeTurn, now)
	require.False(t, r.leftFree(0, false, now))
	require.Zero(t, r.openFor(now.Add(recipeOpen), now))
	assert.Equal(t, now, r.oursSince, "a turn has begun")
}

// If the server gave the mutex to another client of this library, because it is not this client's
// turn to leave it free, a new turn begins.
func TestRecipeTurns_of_a_mutex_that_is_handed_over(t *testing.T) {
	now := time.Now()
	r := afterTurn(recipeTurn, now)
	assert.False(t, r.leftFree(recipeOpen, true, now))
	assert.Zero(t, r.openFor(now, now))
}

// The front asks often while the mutex changes hands, and seldom while the same library keeps it.
// The client then leaves the mutex free more often.
func TestRecipeTurns_beside_a_library_that_is_seen(t *testing.T) {
	now := time.Now()
	r := afterTurn(recipeTurn, now)
	r.leftFree(recipeOpen, false, now)
	assert.Less(t, r.theyHold("a token", now), 2*recipeFast)
	for range 10 {
		r.theyHold("a token", now)
	}
	assert.Greater(t, r.theyHold("a token", now), RecipeSlow/2)
	assert.Less(t, r.theyHold("another token", now), 2*recipeFast)
	now = now.Add(time.Second)
	assert.Zero(t, r.openFor(now, now))
	assert.Equal(t, time.Second, r.turn, "as long as they had it")
	now = now.Add(2 * time.Second)
	assert.Equal(t, recipeOpen, r.openFor(now, now))
}

// The front does not pause while a mutex is left to other libraries, if one of them is found to
// hold it.
func TestWaitQueue_leaves_a_mutex_to_other_libraries(t *testing.T) {
	all := NewTable()
	q, h := all.Use(Key{Key: "job"}), newFakeHold(all, "job")
	h.links.HoldBegins()
	h.links.LeftFree(recipeOpen, true)
	assert.Zero(t, q.openLeft(), "the server gave it to a client of this library")
	h.links.LeftFree(recipeOpen, false)
	assert.Positive(t, q.openLeft())
	q.RecipeHolds("a token")
	assert.Zero(t, q.openLeft(), "another library has found it")
}
