// Package retry says when to try again: how long loops rest between two attempts.
package retry

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
)

// FirstPause is the pause after the first attempt to send a command. Each further pause is twice as
// long, up to LongPause.
const (
	FirstPause = 5 * time.Millisecond
	LongPause  = 250 * time.Millisecond
)

// Bounds of every pause in a wait loop. Loops need much less than the longest; the bounds
// protect against mistakes.
const (
	minPause = time.Millisecond / 2
	maxPause = 4 * time.Hour
)

// Delay rests in a wait loop until d is over or there is a hint. All pauses of all wait loops use
// it, so that none can spin: it lasts at least half a millisecond, and at most four hours. An error
// says why it was cut short: ErrClosed if stop is closed, or that of ctx.
func Delay(ctx context.Context, stop, hint <-chan struct{}, d time.Duration) error {
	timer := time.NewTimer(min(max(d, minPause), maxPause))
	defer timer.Stop()
	select {
	case <-hint:
		return nil
	case <-timer.C:
		return nil
	case <-stop:
		return fault.ErrClosed
	case <-ctx.Done():
		return fault.ContextError(ctx)
	}
}

// Rest waits until d is over, with the same bounds and errors as Delay.
func Rest(ctx context.Context, stop <-chan struct{}, d time.Duration) error {
	return Delay(ctx, stop, nil, d)
}

// Jitter returns a random duration between half of d and d, so that clients that failed
// together do not return together.
func Jitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d/2+1)
}
