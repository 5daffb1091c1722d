package latchkey

import (
	"cmp"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/primitive/lock"
)

// NewSpinLock returns a [Client.NewLock] whose waiters subscribe to nothing: they try again after
// growing pauses, as those of Redisson's spin lock do. It suits servers where pub/sub is
// unavailable or too expensive. Its releases still wake the waiters of other locks of the same
// name. It sends nothing. If backoff is invalid, every method returns ErrInvalid.
//
// A waiter has a place among the waiters of other clients. The first of them tries at least ten
// times a second. A waiter costs commands for as long as it waits; of the waiters of one client
// only the first sends them.
func (c *Client) NewSpinLock(name string, backoff Backoff) *Lock {
	b := backoff.withDefaults()
	names := c.engine().Config.Names(name)
	names.Invalid = cmp.Or(names.Invalid, b.check())
	return &Lock{*acquire.LockOf(c.engine(), lock.Spin(lock.Backoff(b).Pause), names)}
}

// Backoff spaces the attempts of a spin lock. The first pause is Initial; each later one is
// Multiplier times as long, up to Max. Up to half of every pause is cut off at random. Zero fields
// have the defaults, which are Redisson's.
type Backoff struct {
	Initial    time.Duration // default: 1 ms, the least
	Max        time.Duration // default: 128 ms
	Multiplier float64       // from 1, with which the pause is constant, to 100; default: 2
}

func (b Backoff) withDefaults() Backoff {
	setDefault(&b.Initial, time.Millisecond)
	setDefault(&b.Max, max(128*time.Millisecond, b.Initial))
	setDefault(&b.Multiplier, 2)
	return b
}

func (b Backoff) check() error {
	if b.Initial < time.Millisecond || b.Max < b.Initial || b.Multiplier < 1 || b.Multiplier > 100 {
		return fault.Invalid("Backoff{Initial: %v, Max: %v, Multiplier: %v}, "+
			"want Initial of at least 1ms, Max of at least Initial, Multiplier from 1 to 100", b.Initial, b.Max, b.Multiplier)
	}
	return nil
}
