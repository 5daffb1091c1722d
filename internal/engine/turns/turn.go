package turns

import "time"

// Turn is the time in which the goroutines of a client pass a lock on among themselves, and nothing
// is sent. It bounds how long other clients wait.
type Turn struct {
	Shown  bool // the program knows the owner, and may re-enter the hold with it
	Passed bool // there were other holds than the first

	openMS int16         // how long the release leaves a mutex to other libraries, or 0
	passes int32         // how often it may still be passed on while strangers compete
	ends   time.Duration // on the monotonic clock
}

// Begin begins a turn that lasts for that time. passes is how often the lock may be passed on while
// strangers compete.
func (t *Turn) Begin(now, lasts time.Duration, passes int) {
	t.ends = now + lasts
	t.passes = int32(passes) //nolint:gosec // there are fewer goroutines
}

// Began returns when a turn of that length began.
func (t *Turn) Began(lasts time.Duration) time.Duration { return t.ends - lasts }

// Lasts reports whether others may have the lock in this turn. Once the program knows the owner,
// they may not.
func (t *Turn) Lasts(now time.Duration) bool { return now < t.ends && !t.Shown }

// MayPass reports whether the strangers that compete allow one more hold.
func (t *Turn) MayPass() bool { return t.passes > 0 }

// Pass counts a hold that follows another.
func (t *Turn) Pass() {
	t.Passed = true
	t.passes--
}

// LeaveOpen sets for how long the release leaves a mutex to other libraries.
func (t *Turn) LeaveOpen(d time.Duration) { t.openMS = int16(d / time.Millisecond) } //nolint:gosec // it is short

// Open returns for how long the release leaves a mutex to other libraries, or 0.
func (t *Turn) Open() time.Duration { return time.Duration(t.openMS) * time.Millisecond }
