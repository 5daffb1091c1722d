package acquire

import (
	"context"
	"errors"
	"reflect"
	"slices"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/owners"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/engine/report"
)

// A call that runs under a hold and requests the same lock with the context of the caller, instead
// of that of the hold, waits for itself. Without a deadline and without the option Wait that never
// ends. The client does not know which goroutine has a hold, so it cannot refuse the call. The
// error of a bounded wait tells the mistake, and so does a line in the log if the front of a line
// waits without a limit.
//
// The same mistake of a reader costs a pause: a waiting writer of another client keeps new readers
// out, and waits for the hold under which the call runs. That is worth a line sooner, and with a
// deadline too.

// setQuiet decides that nothing is logged of a wait that may be long: it has a deadline, or it is
// not for one hold to end, or the candidates of an election wait, which is their purpose.
func (a *Acquisition) setQuiet(ctx context.Context) {
	_, limited := ctx.Deadline()
	a.quiet = limited || !a.Lock.Spec.IsLock() || a.Lock.Spec.Kind == keyspace.KindElection
}

// ReportOwnWait logs a line, once, if the server has refused the call for longer than a lease while
// one and the same ownership of its client lasted.
func (a *Acquisition) ReportOwnWait() {
	if a.quiet {
		return
	}
	c := a.Lock.Client
	own, now := owners.NewestOn(c, a.Lock.Names.Key), c.Clock().Mono
	switch {
	case own == nil || own != a.behind:
		a.behind, a.behindSince = own, now
	case now-a.behindSince >= c.Config.Lease:
		a.quiet = true
		c.Reporter.Log(report.NoticeOwnWait, a.Lock.Name())
	}
}

// reportBehindOwnReader logs a line if a call that wants to read has waited for a fifth of
// StaleWaiterTimeout behind a writer that waits for a reader of this client. If the call runs under
// that hold, it delays itself.
func (a *Acquisition) reportBehindOwnReader() {
	c := a.Lock.Client
	if !a.BehindOwnReader || c.Clock().Since(a.Began) < c.Config.StaleWaiterTimeout/5 {
		return
	}
	c.Reporter.Log(report.NoticeOwnReader, a.Lock.Name())
}

// WithOwnHold completes the error of a wait that ended while a call of this client held the key:
// with what is left of that hold, and its note. Nobody else knows such an error yet.
func WithOwnHold(c *core.Parts, key string, err error) error {
	if err == nil {
		return nil
	}
	var busy *fault.BusyError
	if !errors.As(err, &busy) || !busy.Bare {
		return err
	}
	busy.Bare, busy.Label = false, c.Config.Label
	if o := owners.NewestOn(c, key); o != nil {
		busy.Note, busy.Reads = c.Record.NoteOf(o.Owner()), o.Spec.Side == keyspace.KindRead
		busy.Left = max(o.Left(), -1)
	}
	return err
}

// errUnderHold advises a call that seems to run under the hold for which it has waited.
var errUnderHold = errors.New("if this call runs under that hold, use the context of the hold")

// adviceFor returns advice for a call with that context that found the lock busy, or nil. The call
// seems to run under a hold of its client if the program has made a context for the work under that
// hold from the same context, or if its context carries a hold of the lock, under an owner other
// than that of the call.
func adviceFor(ctx context.Context, p *Lock, err error) error {
	if !errors.Is(err, fault.ErrNotAcquired) {
		return nil
	}
	var busy *fault.BusyError
	if !errors.As(err, &busy) || !busy.Here && !busy.Inside {
		return nil
	}
	if p.HandleFrom(ctx).Err() == nil || hasWorkUnder(ctx, p) {
		return errUnderHold
	}
	return nil
}

// mostAsked is how many ownerships of a key hasWorkUnder asks.
const mostAsked = 64

// hasWorkUnder reports whether a hold of the key has a context that ends with ctx.
func hasWorkUnder(ctx context.Context, p *Lock) bool {
	root := hold.RootOf(ctx)
	if root.Done() == nil || !reflect.ValueOf(root).Comparable() {
		return false // it is the root of everything
	}
	var held []*ownership.Ownership
	p.Client.Lines.Find(p.Names.Key, func(h line.Held) bool {
		held = append(held, h.(*ownership.Ownership))
		return len(held) == mostAsked
	})
	return slices.ContainsFunc(held, func(o *ownership.Ownership) bool { return o.HasWorkUnder(root) })
}
