package latchkey

import "time"

// stamp is an instant on both clocks of the machine. The monotonic clock cannot
// be set, but stands still while the machine sleeps; the wall clock goes on.
type stamp struct{ mono, wall time.Duration }

// clockZero is where the monotonic readings of this process start.
var clockZero = time.Now()

// systemClock reads both clocks of the machine.
func systemClock() stamp {
	now := time.Now()
	return stamp{mono: now.Sub(clockZero), wall: time.Duration(now.UnixNano())}
}

// since returns how much time has passed since an earlier stamp, by whichever clock says
// more: a lease that may have run out has run out.
func (s stamp) since(earlier stamp) time.Duration {
	return max(s.mono-earlier.mono, s.wall-earlier.wall)
}

// before returns the instant that was d earlier, on both clocks.
func (s stamp) before(d time.Duration) stamp { return stamp{s.mono - d, s.wall - d} }
