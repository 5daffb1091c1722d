package rate

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
)

// Reservation is a number of requests that may go at a certain time.
type Reservation struct {
	of       *Limiter
	grant    Grant
	canceled atomic.Bool
}

// Reserved returns the reservation of requests that were granted.
func (l *Limiter) Reserved(g Grant) *Reservation { return &Reservation{of: l, grant: g} }

// Delay returns the time until the requests may go.
func (r *Reservation) Delay() time.Duration { return max(time.Until(r.grant.Due), 0) }

// Cancel gives the requests back, unless they may have gone.
func (r *Reservation) Cancel(ctx context.Context) error {
	if r.Delay() == 0 || r.canceled.Swap(true) {
		return nil
	}
	_, err := r.of.SendUntilDone(r.of.Client.Sender.Detached(ctx), "cancel",
		func(o *undo.Operation) script.Call { return r.of.cancelCall(o, r.grant) })
	return err
}

// giveBack gives requests back in the background.
func (l *Limiter) giveBack(g Grant) {
	l.SendLater(func(o *undo.Operation) script.Call { return l.cancelCall(o, g) })
}
