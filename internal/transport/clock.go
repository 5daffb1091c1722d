package transport

import "time"

// Stamp is an instant on both clocks of the machine. The monotonic clock cannot
// be set, but stands still while the machine sleeps; the wall clock goes on.
type Stamp struct{ Mono, Wall time.Duration }

// clockZero is where the monotonic readings of this process start.
var clockZero = time.Now()

// SystemClock reads both clocks of the machine.
func SystemClock() Stamp { return stampOf(time.Now()) }

func stampOf(now time.Time) Stamp {
	return Stamp{Mono: now.Sub(clockZero), Wall: time.Duration(now.UnixNano())}
}

// Since returns how much time has passed since an earlier stamp, by whichever clock says
// more: a lease that may have run out has run out.
func (s Stamp) Since(earlier Stamp) time.Duration {
	return max(s.Mono-earlier.Mono, s.Wall-earlier.Wall)
}

// Before returns the instant that was d earlier, on both clocks.
func (s Stamp) Before(d time.Duration) Stamp { return Stamp{s.Mono - d, s.Wall - d} }
