package lock

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/transport/retry"
)

// Backoff spaces the attempts of a spin lock. Backoff of the root explains the fields.
type Backoff struct {
	Initial    time.Duration
	Max        time.Duration
	Multiplier float64
}

// Pause returns how long to rest after attempt number round, counted from 0.
func (b Backoff) Pause(round int) time.Duration {
	pause := float64(b.Initial)
	for ; round > 0 && pause < float64(b.Max); round-- {
		pause *= b.Multiplier
		if b.Multiplier == 1 {
			break
		}
	}
	return retry.Jitter(time.Duration(min(pause, float64(b.Max))))
}
