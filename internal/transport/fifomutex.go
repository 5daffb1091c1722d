package transport

import (
	"context"
	"slices"
	"sync"
)

// FIFOMutex is a mutex that can be waited for with a context, first come first
// served. It costs nothing while nobody has to wait. The zero value is free.
type FIFOMutex struct {
	mu    sync.Mutex
	taken bool
	queue []chan struct{}
	// renewal is the place in the queue of the renewal, of which there is one at a time.
	renewal chan struct{}
}

// TryLock locks the mutex if it is free, and reports whether it did.
func (m *FIFOMutex) TryLock() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.taken {
		return false
	}
	m.taken = true
	return true
}

// Lock waits behind all who came before. A nil error means that the caller holds the mutex and
// has to unlock it; any other is that of ctx, which has ended.
func (m *FIFOMutex) Lock(ctx context.Context) error {
	return m.wait(ctx, false)
}

// LockToRenew is Lock, but whoever holds the mutex may lend it to the caller. There is one such
// caller at a time.
func (m *FIFOMutex) LockToRenew(ctx context.Context) error {
	return m.wait(ctx, true)
}

func (m *FIFOMutex) wait(ctx context.Context, renews bool) error {
	granted := m.enqueue(renews)
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

// enqueue joins the queue, or locks the mutex and returns nil if it has become free.
func (m *FIFOMutex) enqueue(renews bool) chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.taken {
		m.taken = true
		return nil
	}
	granted := make(chan struct{})
	m.queue = append(m.queue, granted)
	if renews {
		m.renewal = granted
	}
	return granted
}

// cancel leaves the queue. If the mutex was granted in the meantime, it is passed on.
func (m *FIFOMutex) cancel(granted chan struct{}) {
	m.mu.Lock()
	i := slices.Index(m.queue, granted)
	if i >= 0 {
		m.queue = slices.Delete(m.queue, i, i+1)
	}
	m.mu.Unlock()
	if i < 0 {
		m.Unlock()
	}
}

// Unlock passes the mutex to the first in the queue, or frees it. The caller holds it.
func (m *FIFOMutex) Unlock() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.queue) == 0 {
		m.taken = false
		return
	}
	close(m.queue[0])
	m.queue = m.queue[1:]
}

// Lend lets a renewal that waits for the mutex hold it first, and returns when the renewal has
// unlocked it: at once if none waits. What else waits goes on waiting. The caller holds the
// mutex before and after.
func (m *FIFOMutex) Lend() {
	m.mu.Lock()
	i := slices.Index(m.queue, m.renewal)
	if i < 0 {
		m.mu.Unlock()
		return
	}
	back := make(chan struct{})
	m.queue = slices.Insert(slices.Delete(m.queue, i, i+1), 0, back)
	close(m.renewal)
	m.mu.Unlock()
	<-back
}
