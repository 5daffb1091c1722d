//go:build unix && !linux

package main

import "syscall"

// followIntoDeath does nothing: these systems have no such setting.
func followIntoDeath(*syscall.SysProcAttr) {}
