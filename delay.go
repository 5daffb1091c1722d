package latchkey

import (
	"context"
	"math/rand/v2"
	"time"
)

// Bounds of every pause in a wait loop. A loop asks for what it needs, which is less than
// the longest by far; they are for what it may have got wrong.
const (
	shortestNap = time.Millisecond / 2
	longestNap  = 4 * time.Hour
)

// delay rests in a wait loop until d is over or there is a hint. All pauses of all wait loops
// come by here, so that none can spin. It tells why if it was cut short.
func delay(ctx context.Context, stop, hint <-chan struct{}, d time.Duration) error {
	timer := time.NewTimer(min(max(d, shortestNap), longestNap))
	defer timer.Stop()
	select {
	case <-hint:
		return nil
	case <-timer.C:
		return nil
	case <-stop:
		return ErrClosed
	case <-ctx.Done():
		return contextError(ctx)
	}
}

// rest is delay without a hint.
func rest(ctx context.Context, stop <-chan struct{}, d time.Duration) error {
	return delay(ctx, stop, nil, d)
}

// jitter spreads d over its second half, so that clients that failed together do
// not return together.
func jitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d/2+1)
}
