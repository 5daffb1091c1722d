package main

import (
	"runtime"
	"syscall"
)

// The kernel sends the signal of followIntoDeath when the thread that started the
// command ends, so main keeps the first thread for itself.
func init() { runtime.LockOSThread() }

// followIntoDeath ends the command if this program is killed, because then nothing
// renews its lock or permit.
func followIntoDeath(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGTERM }
