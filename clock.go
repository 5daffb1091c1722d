package latchkey

import "time"

// stamp is an instant on both clocks of the machine. The monotonic clock cannot
// be set, but stands still while the machine sleeps; the wall clock goes on.
type stamp struct{ mono, wall time.Duration }

// clockZero is where the monotonic readings of this process start.
var clockZero = time.Now()

func systemClock() stamp {
	now := time.Now()
	return stamp{mono: now.Sub(clockZero), wall: time.Duration(now.UnixNano())}
}

// since says how much time has passed, and believes whichever clock says more:
// a lease that may have run out has run out.
func (s stamp) since(earlier stamp) time.Duration {
	return max(s.mono-earlier.mono, s.wall-earlier.wall)
}

// before is the instant that was so long ago.
func (s stamp) before(d time.Duration) stamp { return stamp{s.mono - d, s.wall - d} }

// timerLateness is how late a busy machine may run what is due.
const timerLateness = 50 * time.Millisecond

// driftMargin is how much earlier than the server the client lets a lease end: one
// per cent and two milliseconds for clocks that drift, the allowance of the Redlock
// specification, and no less than a timer may be late; but at most a tenth of a
// short lease.
func driftMargin(lease time.Duration) time.Duration {
	return min(max(lease/100+2*time.Millisecond, timerLateness), lease/10)
}
