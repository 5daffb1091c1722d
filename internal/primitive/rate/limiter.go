// Package rate has the rate limiter: so many requests in a period, for all clients together.
package rate

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/object"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// Limiter is a rate limiter. The scripts in lua/rate say how it works.
type Limiter struct {
	object.Object

	own   string // its rate, as it is sent
	burst int
}

// New returns the limiter with that name, for callers with that rate.
func New(c *core.Parts, name string, r keyspace.Rate) Limiter {
	o := object.New(c, keyspace.KindRate, name, func(string) string { return "" })
	r, err := r.Complete()
	o.Names.Invalid = errors.Join(o.Names.Invalid, err)
	return Limiter{Object: o, own: r.Text(), burst: r.Burst}
}

// SetRate sets the rate for all callers. After the zero Rate, that of each caller counts again.
func (l *Limiter) SetRate(ctx context.Context, r keyspace.Rate) error {
	const verb = "set rate"
	wanted, err := "", l.Names.Invalid
	if r != (keyspace.Rate{}) {
		var bad error
		r, bad = r.Complete()
		wanted, err = r.Text(), errors.Join(err, bad)
	}
	if err != nil {
		return fault.Op(verb, l.Names.Name, err)
	}
	_, err = l.SendOrRepeat(ctx, verb, func(o *undo.Operation) script.Call { return l.settingCall(o, wanted) })
	return err
}

// The commands.

// TakingCall returns the command that lets n requests go, within the longest time that they may
// wait.
func (l *Limiter) TakingCall(n int, longest time.Duration) script.Call {
	return script.NewCall(script.RateTake, l.Names.Alone(),
		l.own, strconv.Itoa(n), strconv.FormatInt(longest.Microseconds(), 10))
}

// cancelCall returns the command that gives requests back.
func (l *Limiter) cancelCall(o *undo.Operation, g Grant) script.Call {
	return script.NewCall(script.RateCancel, []string{l.Names.Key, o.Record},
		o.Number, l.own, strconv.Itoa(g.N), strconv.FormatInt(g.At, 10), strconv.FormatInt(g.Place, 10))
}

func (l *Limiter) settingCall(o *undo.Operation, wanted string) script.Call {
	return script.NewCall(script.RateSet, []string{l.Names.Key, o.Record}, o.Number, l.own, wanted)
}

// explain puts the sentinel error for err in front of it. doubt says that an attempt was not
// answered, which does not matter if the server refuses every such request.
func (l *Limiter) explain(ctx context.Context, n int, doubt bool, err error) []error {
	switch refused := script.IsFinal(err) && !errors.Is(err, fault.ErrClosed); {
	case outcome.HasCode(err, "LATCHKEY_BURST"):
		_, burst, _ := strings.Cut(err.Error(), "LATCHKEY_BURST ")
		burst, _, _ = strings.Cut(burst, " ")
		return []error{fault.Invalid("%d requests are more than the burst of %s that is set", n, burst)}
	case doubt && !refused:
		return append([]error{fault.ErrUnknownOutcome}, script.Explain(err)...)
	}
	return script.Explain(l.Client.Inspector.WrongKind(ctx, l.Names, l.Kind, err))
}
