package rig_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/latchkey-go/latchkey/tests/rig"
)

var (
	echo   = rig.Child("rig-echo", func(_ context.Context, args []string) error { fmt.Println("got", args); return nil })
	ticker = rig.Child("rig-ticker", tick)
	failer = rig.Child("rig-failer", func(context.Context, []string) error { return errors.New("on purpose") })
)

// tick prints forever.
func tick(context.Context, []string) error {
	fmt.Println("pid", syscall.Getpid())
	for i := 0; ; i++ {
		fmt.Println("tick", i)
		time.Sleep(time.Millisecond)
	}
}

func TestChildRunsWithItsArguments(t *testing.T) {
	child := echo.Start(t, "a b", "")
	assert.Equal(t, "[a b ]", child.Line(t, soon, "got"))
	child.Wait(t, soon)
}

func TestChildIsKilledAndReaped(t *testing.T) {
	child := ticker.Start(t)
	var pid int
	_, err := fmt.Sscan(child.Line(t, soon, "pid"), &pid)
	assert.NoError(t, err)
	child.Kill()
	assert.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, "not even a zombie is left")
}

func TestChildStopsAndContinues(t *testing.T) {
	child := ticker.Start(t)
	child.Line(t, soon, "tick")
	child.Stop(t)
	child.Continue(t)
	child.Line(t, soon, "tick")
}

// recorder is a testing.TB that records a failure instead of failing.
type recorder struct {
	testing.TB
	failed string
}

func (r *recorder) Helper()                           {}
func (r *recorder) Errorf(format string, args ...any) { r.failed += fmt.Sprintf(format, args...) }
func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	panic(r)
}

// failureOf runs f with a recorder and returns its failure.
func failureOf(t *testing.T, f func(tb testing.TB)) (failure string) {
	r := &recorder{TB: t}
	defer func() {
		if p := recover(); p != nil && p != any(r) {
			panic(p)
		}
		failure = r.failed
	}()
	f(r)
	return r.failed
}

func TestChildThatFailsIsNoticed(t *testing.T) {
	child := failer.Start(t)
	failure := failureOf(t, func(tb testing.TB) { child.Wait(tb, soon) })
	assert.Contains(t, failure, "the child failed")
}

func TestWaitingFails(t *testing.T) {
	never := func() error { return errors.New("not yet") }
	assert.Contains(t, failureOf(t, func(tb testing.TB) {
		rig.Eventually(tb, 20*time.Millisecond, "a wonder", never)
	}), "a wonder; last seen: not yet")
	assert.Contains(t, failureOf(t, func(tb testing.TB) {
		rig.Await(tb, 20*time.Millisecond, "a wonder", make(chan int))
	}), "a wonder")
	assert.Contains(t, failureOf(t, func(tb testing.TB) {
		rig.Throughout(tb, time.Minute, "peace", never)
	}), "peace; seen: not yet")
}
