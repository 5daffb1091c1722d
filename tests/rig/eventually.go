package rig

import (
	"testing"
	"time"
)

// pollEvery is how often a condition is looked at.
const pollEvery = 5 * time.Millisecond

// Eventually waits until check returns nil. When that takes longer than within,
// it fails the test with what was awaited and the last complaint of check.
func Eventually(tb testing.TB, within time.Duration, what string, check func() error) {
	tb.Helper()
	deadline := time.After(within)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		complaint := check()
		if complaint == nil {
			return
		}
		select {
		case <-deadline:
			tb.Fatalf("not within %v: %s; last seen: %v", within, what, complaint)
		case <-tick.C:
		}
	}
}

// Await waits until the channel delivers or closes, and fails the test when that
// takes longer than within.
func Await[T any](tb testing.TB, within time.Duration, what string, c <-chan T) T {
	tb.Helper()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case v := <-c:
		return v
	case <-timer.C:
		tb.Fatalf("not within %v: %s", within, what)
		panic("unreachable")
	}
}

// Throughout checks again and again for a while that a condition holds, and fails
// the test at the first time that it does not. A look that began later, on a machine that was busy, does not count.
func Throughout(tb testing.TB, during time.Duration, what string, check func() error) {
	tb.Helper()
	start, end := time.Now(), time.After(during)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		began := time.Since(start)
		if complaint := check(); complaint != nil && began < during {
			tb.Fatalf("not throughout %v: %s; seen: %v", during, what, complaint)
		}
		select {
		case <-end:
			return
		case <-tick.C:
		}
	}
}
