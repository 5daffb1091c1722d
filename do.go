package latchkey

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/base/request"
)

// do implements Do for every lock.
func do(ctx context.Context, lock member, fn func(context.Context) error, settings []request.Setting) error {
	h, err := lock.acquire(ctx, "lock", true, settings)
	if err != nil {
		return err
	}
	return h.During(ctx, fn)
}
