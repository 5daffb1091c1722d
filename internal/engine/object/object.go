// Package object has what named objects other than locks share: they have no owner and no lease.
package object

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/inspect"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/report"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
	"github.com/latchkey-go/latchkey/internal/transport"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// Object is what all named objects other than locks share: they have no owner and no lease.
type Object struct {
	Names  *keyspace.Keys
	Client *core.Parts
	Kind   keyspace.Kind
}

// RefuseWholeTag makes a name that is entirely in braces an ErrInvalid: {x} and x have the same
// hash tag, and would share the other keys of the object.
func (o *Object) RefuseWholeTag(what string) {
	if o.Names.Invalid == nil && keyspace.WholeTag(o.Names.Key) {
		o.Names.Invalid = fault.Invalid("%s cannot be named %q: it would share keys with %q",
			what, o.Names.Key, o.Names.Key[1:len(o.Names.Key)-1])
	}
}

// New returns an object with that name. channel returns the channel of its key.
func New(c *core.Parts, kind keyspace.Kind, name string, channel func(key string) string) Object {
	names := c.Config.Names(name)
	if names.Invalid == nil {
		names.Channel = channel(names.Key)
	}
	return Object{Names: names, Client: c, Kind: kind}
}

// Name returns the name as the program gave it.
func (o *Object) Name() string { return o.Names.Name }

// Inspect returns what is stored under the name, with an error if that is another kind of object.
func (o *Object) Inspect(ctx context.Context) (inspect.Object, error) {
	return o.Client.Inspector.Inspect(ctx, o.Names, keyspace.Noun(o.Kind))
}

// Begin is Begin of the client. If it returns nil, the caller must call Done of the client.
func (o *Object) Begin(ctx context.Context) error {
	if o.Names.Invalid != nil {
		return o.Names.Invalid
	}
	return o.Client.Begin(ctx)
}

// NotBegun returns the error of a call that Begin has refused. Only a context that has ended is
// worth an event.
func (o *Object) NotBegun(ctx context.Context, verb string, count int, err error) error {
	err = fault.Op(verb, o.Names.Name, err)
	if fault.IsContextEnd(err) {
		o.ObserveCall(o.Client.Reporter.Parent(ctx), report.GaveUp, count, time.Now(), err)
	}
	return err
}

// Send sends a call that changes nothing, or that may run twice. Its error is not explained.
func (o *Object) Send(ctx context.Context, c script.Call) (transport.Answer, error) {
	if err := o.Begin(ctx); err != nil {
		return transport.Answer{}, err
	}
	defer o.Client.Done()
	return o.Client.Send(ctx, c)
}

// Query is Send with an error for the program. It changes nothing, so its outcome is never unknown.
func (o *Object) Query(ctx context.Context, verb string, c script.Call) (transport.Answer, error) {
	a, err := o.Send(ctx, c)
	if err != nil {
		return a, fault.Op(verb, o.Names.Name, o.Explain(ctx, transport.Answer{}, err)...)
	}
	return a, nil
}

// SendOrRepeat sends an operation that counts once. If its outcome stays unknown, the background
// repeats it.
func (o *Object) SendOrRepeat(
	ctx context.Context, verb string, build func(*undo.Operation) script.Call,
) (transport.Answer, error) {
	return o.Perform(ctx, nil, verb, build, build, false)
}

// SendUntilDone is SendOrRepeat for an operation that gives back or adds: its callers cannot wait
// for the end of an outage, and it can be late. So the background repeats it even if it never
// reached the server.
func (o *Object) SendUntilDone(
	ctx context.Context, verb string, build func(*undo.Operation) script.Call,
) (transport.Answer, error) {
	return o.Perform(ctx, nil, verb, build, build, true)
}

// MayStillRun reports whether an operation that was not sent, because of err, may be executed if it
// is repeated.
func MayStillRun(err error) bool {
	return outcome.Classify(err) != outcome.Refused && !errors.Is(err, outcome.ErrClientClosed) &&
		!errors.Is(err, fault.ErrClosed) && !errors.Is(err, script.ErrReply)
}

// SendLater leaves an operation that counts once to the background.
func (o *Object) SendLater(build func(*undo.Operation) script.Call) {
	op := o.Client.Sessions.Begin(o.Names.Key)
	op.FollowUp = build(op)
	op.SettleLater()
}

// SendOrVoid sends an operation that takes effect once, and not late: if its outcome stays unknown,
// the background voids it.
func (o *Object) SendOrVoid(
	ctx context.Context, verb string, build func(*undo.Operation) script.Call,
) (transport.Answer, error) {
	return o.Perform(ctx, nil, verb, build, func(op *undo.Operation) script.Call {
		return script.NewCall(script.OpVoid, []string{op.Record}, op.Number)
	}, false)
}

// Perform sends an operation until stop is closed. If its outcome is unknown, the background sends
// the call that settle builds. With always it does so too if the operation never reached the
// server, and the outcome counts as unknown.
func (o *Object) Perform(
	ctx context.Context, stop <-chan struct{}, verb string,
	build, settle func(*undo.Operation) script.Call, always bool,
) (transport.Answer, error) {
	if err := o.Begin(ctx); err != nil {
		return transport.Answer{}, fault.Op(verb, o.Names.Name, err)
	}
	defer o.Client.Done()
	op := o.Client.Sessions.Begin(o.Names.Key)
	c := build(op)
	op.FollowUp = settle(op)
	always = always && ctx.Err() == nil
	a, err := o.Client.Sender.Call(ctx, stop, c)
	switch {
	case err == nil:
		op.Done()
		return a, nil
	case a.Doubt, always && MayStillRun(err):
		a.Doubt = true
		op.SettleLater()
	default:
		op.Done()
	}
	return a, fault.Op(verb, o.Names.Name, o.Explain(ctx, a, err)...)
}

// Explain puts the sentinel error for err in front of it.
func (o *Object) Explain(ctx context.Context, a transport.Answer, err error) []error {
	switch {
	case a.Doubt:
		return []error{fault.ErrUnknownOutcome, err}
	case outcome.HasCode(err, "LATCHKEY_UNSET"):
		return []error{fault.ErrNoPermits}
	case outcome.HasCode(err, "LATCHKEY_RANGE"):
		_, sum, _ := strings.Cut(err.Error(), "LATCHKEY_RANGE ")
		const form = "there would be %s permits, want at least 0 and at most %d"
		return []error{fault.Invalid(form, sum, request.MaxCount)}
	case outcome.HasCode(err, "WRONGTYPE"):
		return []error{o.Client.Inspector.WrongKind(ctx, o.Names, o.Kind, err)}
	}
	return []error{err}
}

// Wait is what the calls share that wait for a change of an object. They embed it.
type Wait struct{ Of *Object }

// What implements [line.Attempter].
func (w Wait) What() (keyspace.Kind, string) { return w.Of.Kind, w.Of.Names.Name }

// Recipient implements [line.Attempter]: a client holds nothing that such a call could receive.
func (Wait) Recipient() line.Recipient { return nil }

// Pause implements [line.Attempter]. The call relies on the channel of the object.
func (w Wait) Pause(q *line.Line, _ int, left time.Duration) time.Duration {
	q.Subscribe(w.Of.Client.Notifier, w.Of.Names.Channel)
	return line.PauseUntil(left, w.Of.Client.PollPause())
}

// TimeToLive returns the TTL among the settings of a call that sets something, as text in ms.
func TimeToLive(settings []request.Setting) (ms string, err error) {
	for _, each := range settings {
		if each.Kind != request.TTL {
			return "", request.ErrNoOption
		}
		if ms, err = TTLText("the TTL", each.D); err != nil {
			return "", err
		}
	}
	return ms, nil
}

// TTLText returns a TTL as it is sent: "" for none. An error calls it what.
func TTLText(what string, d time.Duration) (string, error) {
	if d == lease.NoExpiry {
		return "", nil
	}
	return script.MillisText(d), lease.Check(what, d)
}

// ObserveCall reports the outcome of a call on an object that has no ownership: it succeeded or
// gave up.
func (o *Object) ObserveCall(parent *context.Context, got report.EventType, count int, began time.Time, err error) {
	e := report.Event{Type: got, Kind: o.Kind, Name: o.Names.Name, Count: count, Wait: time.Since(began), Err: err}
	if err != nil {
		e.Type = report.GaveUp
	}
	o.Client.Reporter.Observe(parent, e)
}

// ObserveAttempt reports one attempt to acquire count permits.
func (o *Object) ObserveAttempt(parent *context.Context, count int, err error) {
	if parent != nil {
		o.Client.Reporter.Observe(parent, report.Event{
			Type: report.Attempt, Kind: o.Kind, Name: o.Names.Name, Count: count, Err: script.Returned(err),
		})
	}
}
