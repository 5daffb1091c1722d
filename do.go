package latchkey

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
)

// acquirer is a lock of one key, or of several members.
type acquirer interface {
	acquire(ctx context.Context, verb string, waits bool, settings []request.Setting) (*hold.Handle, error)
}

// do implements Do for every lock.
func do(ctx context.Context, lock acquirer, fn func(context.Context) error, settings []request.Setting) error {
	h, err := lock.acquire(ctx, "lock", true, settings)
	if err != nil {
		return err
	}
	return h.During(ctx, fn)
}
