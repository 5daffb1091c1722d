package async

import (
	"context"
	"slices"
	"sync"
)

// FIFOMutex is a mutex whose Lock takes a context and serves first come, first served. The zero
// value is free.
type FIFOMutex struct {
	mu      sync.Mutex
	taken   bool
	line    []chan struct{} // of those that wait
	renewal chan struct{}   // the renewal's element of the line; there is one renewal at a time
}

// TryLock locks the mutex if it is free, and reports whether it did.
func (m *FIFOMutex) TryLock() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	free := !m.taken
	m.taken = true
	return free
}

// Lock waits behind all earlier callers. A nil error means that the caller holds the mutex and has
// to unlock it. Any other error is that of ctx, which has ended.
func (m *FIFOMutex) Lock(ctx context.Context) error {
	return m.wait(ctx, false)
}

// LockToRenew is Lock, but the holder of the mutex may lend it to the caller. There is at most one
// such caller at a time.
func (m *FIFOMutex) LockToRenew(ctx context.Context) error {
	return m.wait(ctx, true)
}

func (m *FIFOMutex) wait(ctx context.Context, renews bool) error {
	granted := m.join(renews)
	if granted == nil {
		return nil
	}
	select {
	case <-granted:
		return nil
	case <-ctx.Done():
		m.cancel(granted)
		return ctx.Err()
	}
}

// join joins the line, or locks the mutex and returns nil if it has become free.
func (m *FIFOMutex) join(renews bool) chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.taken {
		m.taken = true
		return nil
	}
	granted := make(chan struct{})
	m.line = append(m.line, granted)
	if renews {
		m.renewal = granted
	}
	return granted
}

// cancel leaves the line. If the mutex was granted in the meantime, it is passed on.
func (m *FIFOMutex) cancel(granted chan struct{}) {
	m.mu.Lock()
	i := slices.Index(m.line, granted)
	if i >= 0 {
		m.line = slices.Delete(m.line, i, i+1)
	}
	m.mu.Unlock()
	if i < 0 {
		m.Unlock()
	}
}

// Unlock passes the mutex to the first in line, or frees it. The caller holds it.
func (m *FIFOMutex) Unlock() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.line) == 0 {
		m.taken = false
		return
	}
	close(m.line[0])
	m.line = m.line[1:]
}

// Lend lets a renewal that waits for the mutex hold it first, and returns when the renewal has
// unlocked it, or at once if none waits. Other waiters wait on. The caller holds the mutex before
// and after.
func (m *FIFOMutex) Lend() {
	m.mu.Lock()
	i := slices.Index(m.line, m.renewal)
	if i < 0 {
		m.mu.Unlock()
		return
	}
	back := make(chan struct{})
	m.line = slices.Insert(slices.Delete(m.line, i, i+1), 0, back)
	close(m.renewal)
	m.mu.Unlock()
	<-back
}
