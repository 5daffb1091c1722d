package rig

import "syscall"

// dieWithParent kills a child process when the test binary is killed, so that nothing stays behind.
// Only Linux supports this.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
