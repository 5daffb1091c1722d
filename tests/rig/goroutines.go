package rig

import (
	"sync"
	"testing"
	"time"
)

// Goroutines returns a group for goroutines that may fail the test. The test does not end before
// they do: one that fails a test that has ended would end the whole run.
func Goroutines(tb testing.TB) *sync.WaitGroup {
	tb.Helper()
	all := new(sync.WaitGroup)
	tb.Cleanup(func() {
		ended := make(chan struct{})
		go func() { defer close(ended); all.Wait() }()
		select {
		case <-ended:
		case <-time.After(time.Minute):
			tb.Errorf("goroutines of the test did not end within a minute")
		}
	})
	return all
}
