package rig

import (
	"testing"
	"time"
)

// pollEvery is how often a condition is checked.
const pollEvery = 5 * time.Millisecond

// Eventually waits until check returns nil. If that takes longer than within, it fails the test and
// reports what and the last error of check.
func Eventually(tb testing.TB, within time.Duration, what string, check func() error) {
	tb.Helper()
	deadline := time.After(within)
	for {
		complaint := check()
		if complaint == nil {
			return
		}
		select {
		case <-deadline:
			tb.Fatalf("not within %v: %s; last seen: %v", within, what, complaint)
			return
		case <-time.After(pollEvery):
		}
	}
}

// Await waits until the channel delivers or closes, and fails the test if that takes longer than
// within.
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

// Throughout checks a condition repeatedly during a period, and fails the test at the first check
// that fails. A check that begins after the period, because the machine was busy, does not count.
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
