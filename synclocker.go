package latchkey

import (
	"context"
	"sync"

	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
)

// SyncLocker makes a [sync.Locker] of a lock, for code that cannot handle errors. Its Lock waits
// until ctx ends, and panics with the error of [Locker].Lock if it does not acquire the lock. Its
// Unlock panics with the error of [Hold.Unlock] if the hold was lost or could not be released. You
// do not learn of a loss before Unlock: use it only where a hold is much shorter than its lease.
// Goroutines that share the result also exclude each other.
func SyncLocker(ctx context.Context, lock Locker, options ...LockOption) sync.Locker {
	return &syncLocker{ctx: ctx, lock: lock, settings: settingsOf(options)}
}

type syncLocker struct {
	ctx      context.Context
	lock     Locker
	settings []request.Setting
	mu       sync.Mutex // held as long as the lock is, to guard hold
	hold     *hold.Handle
}

// Lock acquires, or panics.
func (s *syncLocker) Lock() {
	s.mu.Lock()
	h, err := s.lock.acquire(s.ctx, "lock", true, s.settings)
	if err != nil {
		s.mu.Unlock()
		panic(err)
	}
	s.hold = h
}

// Unlock releases, or panics.
func (s *syncLocker) Unlock() {
	defer s.mu.Unlock()
	if err := s.hold.Unlock(s.ctx); err != nil {
		panic(err)
	}
}
