package lease

import "time"

// Stamp is an instant on both clocks of the machine. The monotonic clock cannot be set, but stops
// while the machine sleeps; the wall clock does not stop.
type Stamp struct{ Mono, Wall time.Duration }

// clockZero is where the monotonic readings of this process start.
var clockZero = time.Now()

// SystemClock reads both clocks of the machine.
func SystemClock() Stamp { return StampOf(time.Now()) }

// StampOf returns the stamp of a time that [time.Now] returned.
func StampOf(now time.Time) Stamp {
	return Stamp{Mono: now.Sub(clockZero), Wall: time.Duration(now.UnixNano())}
}

// Since returns the time since an earlier stamp, by the clock that shows more: a lease that may
// have ended has ended.
func (s Stamp) Since(earlier Stamp) time.Duration {
	return max(s.Mono-earlier.Mono, s.Wall-earlier.Wall)
}

// Before returns the instant d earlier, on both clocks.
func (s Stamp) Before(d time.Duration) Stamp { return Stamp{s.Mono - d, s.Wall - d} }
