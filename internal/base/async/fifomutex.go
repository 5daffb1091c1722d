package async

import (
	"context"
	"slices"
	"sync"
)

// FIFOMutex is a mutex whose Lock takes a context and serves first come, first served. The zero
// value is free.
type FIFOMutex struct {
	mu    sync.Mutex
	taken bool
	line  *fifoLine // made for the first waiter
}

// fifoLine is the line of a FIFOMutex, whose mu guards it.
type fifoLine struct {
	queue []chan struct{}
	// renewal is the renewal's element of the queue. There is one renewal at a time.
	renewal chan struct{}
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
	if m.line == nil {
		m.line = &fifoLine{}
	}
	granted := make(chan struct{})
	m.line.queue = append(m.line.queue, granted)
	if renews {
		m.line.renewal = granted
	}
	return granted
}

// cancel leaves the queue. If the mutex was granted in the meantime, it is passed on.
func (m *FIFOMutex) cancel(granted chan struct{}) {
	m.mu.Lock()
	i := slices.Index(m.line.queue, granted)
	if i >= 0 {
		m.line.queue = slices.Delete(m.line.queue, i, i+1)
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
	if m.line == nil || len(m.line.queue) == 0 {
		m.taken = false
		return
	}
	close(m.line.queue[0])
	m.line.queue = m.line.queue[1:]
}

// Lend lets a renewal that waits for the mutex hold it first, and returns when the renewal has
// unlocked it, or at once if none waits. Other waiters wait on. The caller holds the mutex before
// and after.
func (m *FIFOMutex) Lend() {
	m.mu.Lock()
	i := -1
	if m.line != nil {
		i = slices.Index(m.line.queue, m.line.renewal)
	}
	if i < 0 {
		m.mu.Unlock()
		return
	}
	back := make(chan struct{})
	m.line.queue = slices.Insert(slices.Delete(m.line.queue, i, i+1), 0, back)
	close(m.line.renewal)
	m.mu.Unlock()
	<-back
}
