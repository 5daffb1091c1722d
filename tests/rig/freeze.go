package rig

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
)

// freeze suspends a child of this process, and returns when all its threads have stopped. SIGSTOP
// alone does not show when that is: on a busy machine the threads run on until each has been
// scheduled once more.
func freeze(tb testing.TB, child *os.Process) {
	tb.Helper()
	err := child.Signal(syscall.SIGSTOP)
	if err == nil {
		err = awaitStop(child.Pid)
	}
	if err != nil {
		tb.Fatalf("rig: process %d does not stop: %v", child.Pid, err)
	}
}

func awaitStop(pid int) error {
	var status syscall.WaitStatus
	err := error(syscall.EINTR)
	for errors.Is(err, syscall.EINTR) {
		_, err = syscall.Wait4(pid, &status, syscall.WUNTRACED, nil)
	}
	if err == nil && !status.Stopped() {
		err = fmt.Errorf("it has ended: %v", status)
	}
	return err
}

// thaw resumes the child.
func thaw(tb testing.TB, child *os.Process) {
	tb.Helper()
	if err := child.Signal(syscall.SIGCONT); err != nil {
		tb.Fatalf("rig: process %d does not go on: %v", child.Pid, err)
	}
}
