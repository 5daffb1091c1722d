package latchkey

import (
	"context"
	"errors"

	"github.com/latchkey-go/latchkey/internal/base/fault"
)

// Run leads again and again. It campaigns as Campaign does, with the same options, and calls fn
// when it leads. If the leadership is lost before Run has resigned, Run drops the result of fn and
// campaigns again. The context of fn ends when the leadership is lost (its cause then matches
// ErrLost) or ctx ends. fn must return then: Run waits for it, so that this process does not lead
// twice.
//
// If fn returns or panics while it leads, Run resigns, even if ctx has ended. Run then returns the
// error of fn, which may be nil: to lead again, call Run again.
//
// The error of Run is that of fn or of Campaign. If ctx ends during a campaign, the error matches
// that of ctx. ErrClosed means that the client was closed. If the resignation is not confirmed, the
// error matches ErrUnknownOutcome but not ErrUnavailable, in addition to the error of fn; the next
// leader may have to wait until the lease ends.
func (e *Election) Run(ctx context.Context, value string, fn func(ctx context.Context, l *Leadership) error, options ...LockOption) error {
	for {
		l, err := e.Campaign(ctx, value, options...)
		if err != nil {
			return err
		}
		if again, err := l.during(ctx, fn); !again {
			return err
		}
	}
}

// during calls fn under the leadership, and resigns. It reports whether the leadership was lost
// before that.
func (l *Leadership) during(ctx context.Context, fn func(context.Context, *Leadership) error) (lost bool, err error) {
	defer func() {
		resigned := l.Resign(ctx)
		switch {
		case errors.Is(resigned, fault.ErrLost) || errors.Is(resigned, fault.ErrClosed):
			lost, err = true, nil
		case resigned != nil && !errors.Is(resigned, fault.ErrNotHeld): // ErrNotHeld: fn has resigned
			err = errors.Join(err, fault.Unreleased(resigned))
		}
	}()
	return false, fn(l.Context(ctx), l)
}
