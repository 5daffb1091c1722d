package rig

import "syscall"

// dieWithParent ends a child process when the test binary is killed, so that
// nothing stays behind. It can be asked for on Linux only.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
