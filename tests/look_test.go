package tests

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey"
)

// looked is any object.
type looked interface {
	Inspect(ctx context.Context) (latchkey.Object, error)
}

// statsOf returns what Inspect of a semaphore returns, with ErrNotSet if nobody has set the
// permits.
func statsOf(ctx context.Context, s looked) (latchkey.Object, error) {
	found, err := s.Inspect(ctx)
	if err == nil && found.Kind == latchkey.KindNone {
		err = latchkey.ErrNotSet
	}
	return found, err
}

// isLocked reports whether a lock is held, a read/write lock on any side.
func isLocked(ctx context.Context, lock looked) (bool, error) {
	found, err := lock.Inspect(ctx)
	return found.Locked(), err
}

// remainingLease returns how long a lock stays held if nobody renews it.
func remainingLease(ctx context.Context, lock looked) (time.Duration, error) {
	found, err := lock.Inspect(ctx)
	return found.TTL, err
}

// countOf returns how many holds of its client the owner of a hold has, as logs show it.
func countOf(h *latchkey.Hold) int {
	for _, each := range h.LogValue().Group() {
		if each.Key == "count" {
			return int(each.Value.Int64())
		}
	}
	return 0
}
