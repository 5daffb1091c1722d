//go:build !linux

package rig

import "syscall"

// dieWithParent does nothing on this system; the clean-ups of the tests still run.
func dieWithParent() *syscall.SysProcAttr { return nil }
