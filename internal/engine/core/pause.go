package core

import (
	"math/rand/v2"
	"time"
)

// PollPause is how long a waiter relies on messages this time: Tuning.PollCeiling less up to a
// quarter, at random, so that clients do not poll at the same time.
func (c *Parts) PollPause() time.Duration {
	ceiling := c.Config.PollCeiling
	return ceiling - rand.N(ceiling/4+1)
}
