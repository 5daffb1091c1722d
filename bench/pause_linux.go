package main

import (
	"syscall"
	"time"
)

// pause sleeps more exactly than time.Sleep, which wakes an idle program up to a millisecond late:
// half of the delay of a usual link.
func pause(d time.Duration) {
	if d <= 0 {
		return
	}
	left := syscall.NsecToTimespec(d.Nanoseconds())
	for syscall.Nanosleep(&left, &left) == syscall.EINTR {
	}
}
