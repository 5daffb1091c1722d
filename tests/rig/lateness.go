package rig

import (
	"testing"
	"time"

	"github.com/redis/rueidis"
)

const (
	latenessTick  = 5 * time.Millisecond  // how often lateness is checked
	tooLate       = 20 * time.Millisecond // at this lateness the process counts as late
	punctualTries = 5
)

// InTime checks a property that depends on time, on a machine that has time for this process: the
// library allows for timers that are 50 ms late, and a goroutine that does not run cannot learn
// anything. A try that fails while the process was late is repeated a few times. If all tries fail
// like that, the machine is too busy to judge the property, and InTime returns nil. The argument of
// try is the number of earlier tries.
func InTime(tb testing.TB, try func(before int) error) error {
	tb.Helper()
	for before := range punctualTries {
		worst := WatchLateness(nil)
		err := try(before)
		late := worst()
		if err == nil || late < tooLate {
			return err
		}
		tb.Logf("%v, on a machine that was %v late", err, late)
	}
	tb.Log("not judged: the machine is too busy")
	return nil
}

// WatchLateness measures how late this process is scheduled, until worst is called, which returns
// the maximum. If server is not nil, it is pinged each time, and what the answer takes is part of
// the lateness.
func WatchLateness(server rueidis.Client) (worst func() time.Duration) {
	done, result := make(chan struct{}), make(chan time.Duration)
	go func() {
		var late time.Duration
		for due := time.Now().Add(latenessTick); ; due = time.Now().Add(latenessTick) {
			select {
			case <-done:
				result <- late
				return
			case <-time.After(latenessTick):
				if server != nil {
					server.Do(background(), server.B().Ping().Build())
				}
				late = max(late, time.Since(due))
			}
		}
	}()
	return func() time.Duration { close(done); return <-result }
}
