//go:build !linux

package rig

import "syscall"

// dieWithParent cannot be asked for here; the clean-ups of the tests still run.
func dieWithParent() *syscall.SysProcAttr { return nil }
