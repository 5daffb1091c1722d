package acquire

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
)

// Acquirer is a lock of one key, or of several members.
type Acquirer interface {
	Name() string
	Acquire(ctx context.Context, verb string, waits bool, settings []request.Setting) (*hold.Handle, error)
}

// Do implements Do for every lock.
func Do(ctx context.Context, lock Acquirer, fn func(context.Context) error, settings []request.Setting) error {
	if fn == nil {
		return fault.Op("do", lock.Name(), fault.ErrNoFunction)
	}
	h, err := lock.Acquire(ctx, "lock", true, settings)
	if err != nil {
		return err
	}
	return h.During(ctx, fn)
}
