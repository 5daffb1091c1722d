package latchkey

import "time"

// timerLateness is how late a timer may fire on a busy machine.
const timerLateness = 50 * time.Millisecond

// driftMargin is how much earlier than the server the client lets a lease end. It is one
// per cent plus two milliseconds for clock drift, the allowance of the Redlock
// specification, but at least timerLateness, and at most a tenth of the lease.
func driftMargin(lease time.Duration) time.Duration {
	return min(max(lease/100+2*time.Millisecond, timerLateness), lease/10)
}
