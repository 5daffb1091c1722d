package rig

import (
	"sync/atomic"
	"testing"
	"time"
)

const (
	latenessTick  = 5 * time.Millisecond  // how often it is looked
	tooLate       = 20 * time.Millisecond // from then on the process counts as late
	punctualTries = 5
)

// InTime checks something about time on a machine that has time for this process: the
// library allows for timers that are 50 ms late, and nobody can be told of anything while
// he does not run. What fails while the process was late is tried again, a few times; try
// is told how often it has been.
func InTime(tb testing.TB, try func(before int) error) (err error) {
	tb.Helper()
	late := watchLateness(tb)
	for before := range punctualTries {
		late.Worst()
		err = try(before)
		worst := late.Worst()
		if err == nil || worst < tooLate {
			return err
		}
		tb.Logf("%v, on a machine that was %v late: again", err, worst)
	}
	return err
}

// lateness watches how late this process gets a processor.
type lateness struct{ worst atomic.Int64 }

// watchLateness watches until the end of the test.
func watchLateness(tb testing.TB) *lateness {
	tb.Helper()
	l, done, stopped := &lateness{}, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		l.watch(done)
	}()
	tb.Cleanup(func() { close(done); <-stopped })
	return l
}

func (l *lateness) watch(done <-chan struct{}) {
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
func (l *lateness) Worst() time.Duration { return time.Duration(l.worst.Swap(0)) }
