// Package lease has how long something is held, and how long the client can rely on that. A Term is
// a lease: when it ends, and when it is renewed. A Stamp is a time on both clocks, and a Bound is
// MaxHold or AtLeast. The package only calculates.
package lease

import (
	"math"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
)

// Default is the lease of an acquisition that does not set one.
const Default = 30 * time.Second

// Shortest is the shortest lease that is accepted, Longest the longest.
const (
	Shortest = time.Millisecond
	Longest  = 10 * 365 * 24 * time.Hour
)

// NoExpiry is the duration of something that does not end. The public package documents it.
const NoExpiry = time.Duration(math.MaxInt64)

// Permanent is NoExpiry as a lease, to which a time can be added without an overflow.
const Permanent = 100 * 365 * 24 * time.Hour

// Check checks the length of a lease. All checks of leases use it.
func Check(what string, d time.Duration) error {
	if d < Shortest || d > Longest {
		return fault.Invalid("%s %v is not between %v and %v", what, d, Shortest, Longest)
	}
	return nil
}
