package rig

import (
	"sync/atomic"
	"testing"
	"time"
)

// Lateness watches how late this process gets a processor: who is told something in time
// needs one to hear it.
type Lateness struct{ worst atomic.Int64 }

// latenessTick is how often it looks.
const latenessTick = 5 * time.Millisecond

// WatchLateness watches until the end of the test.
func WatchLateness(tb testing.TB) *Lateness {
	tb.Helper()
	l, done, stopped := &Lateness{}, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		l.watch(done)
	}()
	tb.Cleanup(func() { close(done); <-stopped })
	return l
}

func (l *Lateness) watch(done <-chan struct{}) {
	for due := time.Now().Add(latenessTick); ; due = time.Now().Add(latenessTick) {
		select {
		case <-done:
			return
		case <-time.After(latenessTick):
			l.worst.Store(max(l.worst.Load(), int64(time.Since(due))))
		}
	}
}

// Worst is how late the process was at most since it was last asked.
func (l *Lateness) Worst() time.Duration { return time.Duration(l.worst.Swap(0)) }
