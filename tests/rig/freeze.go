package rig

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// freeze takes the processor away from a child of this process, and returns when all
// its threads stand still. SIGSTOP alone does not say when that is: on a busy machine
// they run on until each has been scheduled once more.
func freeze(child *os.Process) error {
	if err := child.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	var status syscall.WaitStatus
	_, err := syscall.Wait4(child.Pid, &status, syscall.WUNTRACED, nil)
	for errors.Is(err, syscall.EINTR) {
		_, err = syscall.Wait4(child.Pid, &status, syscall.WUNTRACED, nil)
	}
	if err == nil && !status.Stopped() {
		err = fmt.Errorf("it has ended: %v", status)
	}
	return err
}
