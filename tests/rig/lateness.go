package rig

import (
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
	for before := range punctualTries {
		worst := WatchLateness()
		err = try(before)
		late := worst()
		if err == nil || late < tooLate {
			return err
		}
		tb.Logf("%v, on a machine that was %v late: again", err, late)
	}
	return err
}

// WatchLateness watches how late this process gets a processor, until it is asked how
// late that was at most.
func WatchLateness() (worst func() time.Duration) {
	done, result := make(chan struct{}), make(chan time.Duration)
	go func() {
		var late time.Duration
		for due := time.Now().Add(latenessTick); ; due = time.Now().Add(latenessTick) {
			select {
			case <-done:
				result <- late
				return
			case <-time.After(latenessTick):
				late = max(late, time.Since(due))
			}
		}
	}()
	return func() time.Duration { close(done); return <-result }
}
