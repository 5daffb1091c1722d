package main

import (
	"runtime"
	"syscall"
)

// The kernel ties followIntoDeath to the thread that started the command, so
// that thread must last: main keeps the first one for itself.
func init() { runtime.LockOSThread() }

// followIntoDeath ends the command if this program is killed: nobody would renew
// its lock or permit any more.
func followIntoDeath(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGTERM }
