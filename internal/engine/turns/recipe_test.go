package turns

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// afterTurn returns what a client knows that has taken its mutex again and again for as long, until
// now.
func afterTurn(lasted time.Duration, now time.Time) *Recipe {
	r := &Recipe{}
	r.OpenFor(now, now)
	r.oursSince = now.Add(-lasted)
	return r
}

// A client that takes a mutex again and again leaves it free now and then, although it has seen
// nobody else.
func TestRecipe_of_libraries_that_are_not_seen(t *testing.T) {
	now := time.Now()
	require.Zero(t, afterTurn(recipeTurn-1, now).OpenFor(now, now))
	r := afterTurn(recipeTurn, now)
	require.Equal(t, recipeOpen, r.OpenFor(now, now))
	assert.True(t, r.LeftFree(recipeOpen, false, now), "to others")
	assert.Zero(t, r.OpenFor(now, now), "a turn has begun")
}

// A mutex that was free for that long need not be left free.
func TestRecipe_of_a_mutex_that_is_free_at_times(t *testing.T) {
	now := time.Now()
	r := afterTurn(recipeTurn, now)
	require.False(t, r.LeftFree(0, false, now))
	require.Zero(t, r.OpenFor(now.Add(recipeOpen), now))
	assert.Equal(t, now, r.oursSince, "a turn has begun")
}

// If the server gave the mutex to another client of this library, because it is not this client's
// turn to leave it free, a new turn begins.
func TestRecipe_of_a_mutex_that_is_handed_over(t *testing.T) {
	now := time.Now()
	r := afterTurn(recipeTurn, now)
	assert.False(t, r.LeftFree(recipeOpen, true, now))
	assert.Zero(t, r.OpenFor(now, now))
}

// The front asks often while the mutex changes hands, and seldom while the same library keeps it.
// The client then leaves the mutex free more often.
func TestRecipe_beside_a_library_that_is_seen(t *testing.T) {
	now := time.Now()
	r := afterTurn(recipeTurn, now)
	r.LeftFree(recipeOpen, false, now)
	assert.Less(t, r.TheyHold("a token", now), 2*recipeFast)
	for range 10 {
		r.TheyHold("a token", now)
	}
	assert.Greater(t, r.TheyHold("a token", now), RecipeSlow/2)
	assert.Less(t, r.TheyHold("another token", now), 2*recipeFast)
	now = now.Add(time.Second)
	assert.Zero(t, r.OpenFor(now, now))
	assert.Equal(t, time.Second, r.turn, "as long as they had it")
	now = now.Add(2 * time.Second)
	assert.Equal(t, recipeOpen, r.OpenFor(now, now))
}
