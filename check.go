package latchkey

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/primitive/admin"
)

// Check tests on the server what the client depends on: acquiring, renewing and releasing a lock
// with a name of its own ("latchkey:check:" and the client's id), publishing and subscribing, and
// that the server does not evict keys when memory runs short (unless INFO is denied). It returns
// nil, or all errors that it found, joined. Call it at start-up to learn of a missing permission
// before the first lock does. It leaves nothing behind.
func (c *Client) Check(ctx context.Context) error { return admin.Check(ctx, c.engine()) }
