package election

import (
	"context"
	"errors"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/request"
)

// Run leads again and again, until fn returns while it leads.
func (e *Election) Run(
	ctx context.Context, value string, fn func(context.Context, *Leadership) error, settings []request.Setting,
) error {
	if fn == nil {
		return fault.Op("run", e.Name(), fault.ErrNoFunction)
	}
	for {
		l, err := e.Campaign(ctx, "campaign", true, value, settings)
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
	return false, fn(l.Held().Context(ctx), l)
}
