package latchkey

import "time"

// timerLateness is how late a busy machine may run what is due.
const timerLateness = 50 * time.Millisecond

// driftMargin is how much earlier than the server the client lets a lease end: one
// per cent and two milliseconds for clocks that drift, the allowance of the Redlock
// specification, and no less than a timer may be late; but at most a tenth of a
// short lease.
func driftMargin(lease time.Duration) time.Duration {
	return min(max(lease/100+2*time.Millisecond, timerLateness), lease/10)
}
