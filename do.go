package latchkey

import (
	"context"
)

// do implements Do for every lock.
func do(ctx context.Context, lock member, fn func(context.Context) error, settings []setting) error {
	h, err := lock.acquire(ctx, "lock", true, settings)
	if err != nil {
		return err
	}
	return h.During(ctx, fn)
}
