package transport

import (
	"context"
	"math/rand/v2"
	"time"
)

// Bounds of every pause in a wait loop. A loop asks for what it needs, which is less than
// the longest by far; they are for what it may have got wrong.
const (
	minPause = time.Millisecond / 2
	maxPause = 4 * time.Hour
)

// Delay rests in a wait loop until d is over or there is a hint. All pauses of all wait loops
// come by here, so that none can spin: it lasts half a millisecond at least, and four hours at
// most. An error tells why it was cut short: ErrClosed if stop is closed, or that of ctx.
func Delay(ctx context.Context, stop, hint <-chan struct{}, d time.Duration) error {
	timer := time.NewTimer(min(max(d, minPause), maxPause))
	defer timer.Stop()
	select {
	case <-hint:
		return nil
	case <-timer.C:
		return nil
	case <-stop:
		return ErrClosed
	case <-ctx.Done():
		return ContextError(ctx)
	}
}

// Rest waits until d is over, within the same bounds and with the same errors.
func Rest(ctx context.Context, stop <-chan struct{}, d time.Duration) error {
	return Delay(ctx, stop, nil, d)
}

// Jitter returns a random duration between half of d and d, so that clients that failed
// together do not return together.
func Jitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d/2+1)
}
