package rig

import (
	"os"
	"testing"
)

// envTargets makes the tests assert figures that they otherwise only print: the shares, waits and
// costs that the hand-over of contended locks should reach.
const envTargets = "LATCHKEY_TEST_TARGETS"

// Target fails the test unless a target is met, if targets are asserted, which needs a quiet
// machine. Otherwise it prints that the target is missed.
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
