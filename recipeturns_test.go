package latchkey

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// afterTurn returns a wait queue of a client that has taken its mutex again and again for as long.
func afterTurn(lasted time.Duration) *waitQueue {
	q := newWaitQueues().use(lineKey{key: "job"})
	q.openFor(time.Now())
	q.recipe.oursSince = q.recipe.oursSince.Add(-lasted)
	return q
}

// A client that takes a mutex again and again leaves it free now and then, although it has seen nobody else.
func TestRecipeTurns_of_libraries_that_are_not_seen(t *testing.T) {
	require.Zero(t, afterTurn(recipeTurn/2).openFor(time.Now()))
	q := afterTurn(recipeTurn)
	require.Equal(t, recipeOpen, q.openFor(time.Now()))
	q.leftFree(recipeOpen, false)
	assert.Positive(t, q.openLeft())
	assert.Zero(t, q.openFor(time.Now()), "a turn has begun")
}

// A mutex that was free for that long need not be left free.
func TestRecipeTurns_of_a_mutex_that_is_free_at_times(t *testing.T) {
	q := afterTurn(recipeTurn)
	q.leftFree(0, false)
	require.Zero(t, q.openFor(time.Now().Add(recipeOpen)))
	assert.WithinDuration(t, time.Now(), q.recipe.oursSince, recipeTurn/2, "a turn has begun")
}

// If the server gave the mutex to another client of this library, because it is not this client's turn to leave it free,
// a new turn begins.
func TestRecipeTurns_of_a_mutex_that_is_handed_over(t *testing.T) {
	q := afterTurn(recipeTurn)
	q.leftFree(recipeOpen, true)
	assert.Zero(t, q.openLeft())
	assert.Zero(t, q.openFor(time.Now()))
}

// The front asks often while the mutex changes hands, and seldom while the same library keeps it. The client then leaves
// the mutex free more often.
func TestRecipeTurns_beside_a_library_that_is_seen(t *testing.T) {
	q := afterTurn(recipeTurn)
	q.leftFree(recipeOpen, false)
	assert.Less(t, q.recipeHolds("a token"), 2*recipeFast)
	assert.Zero(t, q.openLeft(), "another library has found it")
	for range 10 {
		q.recipeHolds("a token")
	}
	assert.Greater(t, q.recipeHolds("a token"), recipeSlow/2)
	assert.Less(t, q.recipeHolds("another token"), 2*recipeFast)
	q.recipe.theirsSince = q.recipe.theirsSince.Add(-time.Second)
	assert.Zero(t, q.openFor(time.Now()))
	assert.InDelta(t, time.Second, q.recipe.turn, float64(recipeTurn/10), "as long as they had it")
	q.recipe.oursSince = q.recipe.oursSince.Add(-2 * time.Second)
	assert.Equal(t, recipeOpen, q.openFor(time.Now()))
}
