package transport

import (
	"context"
	"slices"
	"sync"
)

// FIFOMutex is a mutex that can be waited for with a context, first come first
// served. To hold it is to have the turn. It costs nothing while nobody has to wait. The
// zero value is free.
type FIFOMutex struct {
	mu    sync.Mutex
	taken bool
	queue []chan struct{}
	// renewal is the place in the queue of the renewal, of which there is one at a time.
	renewal chan struct{}
}

// TryLock takes the turn if it is free, and reports whether it did.
func (t *FIFOMutex) TryLock() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.taken {
		return false
	}
	t.taken = true
	return true
}

// Lock waits for the turn behind all who came before. A nil error means that the caller has
// it and has to unlock; any other is that of ctx, which has ended.
func (t *FIFOMutex) Lock(ctx context.Context) error {
	return t.wait(ctx, false)
}

// LockToRenew waits like any other, but whoever has the turn may lend it to the caller. There
// is one such caller at a time.
func (t *FIFOMutex) LockToRenew(ctx context.Context) error {
	return t.wait(ctx, true)
}

func (t *FIFOMutex) wait(ctx context.Context, renews bool) error {
	granted := t.enqueue(renews)
	if granted == nil {
		return nil
	}
	select {
	case <-granted:
		return nil
	case <-ctx.Done():
		t.cancel(granted)
		return ctx.Err()
	}
}

// enqueue joins the line, or takes the turn and returns nil if it has become free.
func (t *FIFOMutex) enqueue(renews bool) chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.taken {
		t.taken = true
		return nil
	}
	granted := make(chan struct{})
	t.queue = append(t.queue, granted)
	if renews {
		t.renewal = granted
	}
	return granted
}

// cancel leaves the line; a turn that was granted in the meantime is passed on.
func (t *FIFOMutex) cancel(granted chan struct{}) {
	t.mu.Lock()
	i := slices.Index(t.queue, granted)
	if i >= 0 {
		t.queue = slices.Delete(t.queue, i, i+1)
	}
	t.mu.Unlock()
	if i < 0 {
		t.Unlock()
	}
}

// Unlock passes the turn to the next in line, or frees it. The caller has it.
func (t *FIFOMutex) Unlock() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.queue) == 0 {
		t.taken = false
		return
	}
	close(t.queue[0])
	t.queue = t.queue[1:]
}

// Lend lets a renewal that waits for the turn have it first, and returns when the turn is
// back: at once if none waits. What else waits goes on waiting. The caller has the turn,
// before and after.
func (t *FIFOMutex) Lend() {
	t.mu.Lock()
	i := slices.Index(t.queue, t.renewal)
	if i < 0 {
		t.mu.Unlock()
		return
	}
	back := make(chan struct{})
	t.queue = slices.Insert(slices.Delete(t.queue, i, i+1), 0, back)
	close(t.renewal)
	t.mu.Unlock()
	<-back
}
