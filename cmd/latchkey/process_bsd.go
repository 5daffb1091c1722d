//go:build unix && !linux

package main

import "syscall"

// followIntoDeath can do nothing here: these systems have no such request.
func followIntoDeath(*syscall.SysProcAttr) {}
