package rig

import (
	"bytes"
	"runtime"
	"testing"
)

// place is a test and the goroutine that runs it. What belongs to a test may be used in its
// subtests and in other goroutines, where FailNow of the test would end the whole process, or only
// that goroutine.
type place struct {
	testing.TB
	goroutine string
}

func here(tb testing.TB) place {
	if p, is := tb.(place); is {
		return p
	}
	return place{tb, goroutine()}
}

// Fatalf fails the test. Outside the goroutine of the test it returns, and the caller continues
// with what it has.
func (p place) Fatalf(format string, args ...any) {
	p.Helper()
	if goroutine() == p.goroutine {
		p.TB.Fatalf(format, args...)
	}
	p.Errorf(format, args...)
}

// goroutine returns the number of the calling goroutine.
func goroutine() string {
	text := make([]byte, 64)
	text = text[:runtime.Stack(text, false)] // goroutine 7 [running]:
	return string(bytes.Fields(text)[1])
}
