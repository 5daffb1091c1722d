package lease

import "time"

// TimerLateness is how late a timer may fire on a busy machine.
const TimerLateness = 50 * time.Millisecond

// Margin is how much earlier than the server the client lets a lease end. It is one
// per cent plus two milliseconds for clock drift, the allowance of the Redlock
// specification, but at least TimerLateness, and at most a tenth of the lease.
func Margin(lease time.Duration) time.Duration {
	return min(max(lease/100+2*time.Millisecond, TimerLateness), lease/10)
}
