package latchkey

import (
	"context"
	"errors"
)

// Run leads again and again: it campaigns as Campaign does, with the same options, calls fn, and
// campaigns again if the leadership was lost before fn had returned. The context of fn ends when
// the leadership is lost (its cause then matches ErrLost) or ctx ends. fn must return then:
// Run waits for it before it campaigns again, so that this process does not lead twice.
//
// If fn returns while it leads, or panics, Run resigns, which does not depend on ctx. It returns the error of fn, or
// nil if that is nil: to lead again, call Run again. What fn returns after the leadership was
// lost is dropped.
//
// The error of Run is that of fn; or that of Campaign, if there was no leadership any more to
// campaign for: it matches the error of ctx if ctx ended meanwhile. ErrClosed means that the client was
// closed. If fn has returned, and its resignation was not confirmed, the error matches
// ErrUnknownOutcome and not ErrUnavailable, besides that of fn: the next leader may have to wait for
// the lease.
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

// during calls fn under the leadership, and resigns. It reports whether the leadership was lost before.
func (l *Leadership) during(ctx context.Context, fn func(context.Context, *Leadership) error) (lost bool, err error) {
	defer func() {
		resigned := l.Resign(ctx)
		switch {
		case errors.Is(resigned, ErrLost) || errors.Is(resigned, ErrClosed):
			lost, err = true, nil
		case resigned != nil && !errors.Is(resigned, ErrNotHeld): // which fn has done
			err = errors.Join(err, &unreleasedError{resigned})
		}
	}()
	return false, fn(l.Context(ctx), l)
}
