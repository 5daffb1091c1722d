package rig

import (
	"os"
	"testing"
)

// envTargets has the tests assert what they otherwise only print: shares, waits and costs
// of contended locks that the hand-over is to reach.
const envTargets = "LATCHKEY_TEST_TARGETS"

// Target fails the test unless a figure is what it is to be, if targets are asserted. They
// need a quiet machine. Otherwise it prints that the target is missed.
func Target(tb testing.TB, met bool, format string, args ...any) {
	tb.Helper()
	switch {
	case met:
	case os.Getenv(envTargets) != "":
		tb.Errorf("target missed: "+format, args...)
	default:
		tb.Logf("target missed, not asserted without "+envTargets+": "+format, args...)
	}
}
