package latchkey

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/engine/report"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// synchronizer is what all named objects other than locks share: they have no owner and no lease.
type synchronizer struct {
	names  *keyspace.Keys
	client *ownership.Engine
	kind   keyspace.Kind
}

// refuseWholeTag makes a name that is entirely in braces an ErrInvalid: {x} and x have the same hash tag, and
// would share the other keys of the object.
func (o *synchronizer) refuseWholeTag(what string) {
	if o.names.Invalid == nil && keyspace.WholeTag(o.names.Key) {
		o.names.Invalid = fault.Invalid("%s cannot be named %q: it would share keys with %q", what, o.names.Key, o.names.Key[1:len(o.names.Key)-1])
	}
}

func newSynchronizer(c *ownership.Engine, kind keyspace.Kind, name string, channel func(key string) string) synchronizer {
	names, err := c.Config.Naming().Keys(name)
	if err == nil {
		names.Channel = channel(names.Key)
	}
	return synchronizer{names: names, client: c, kind: kind}
}

// Name returns the name as the program gave it.
func (o *synchronizer) Name() string { return o.names.Name }

// begin is begin of the client. If it returns nil, the caller must call client.working.Done.
func (o *synchronizer) begin(ctx context.Context) error {
	if o.names.Invalid != nil {
		return o.names.Invalid
	}
	return o.client.Begin(ctx)
}

// notBegun returns the error of a call that begin has refused. Only a context that has ended is worth an event.
func (o *synchronizer) notBegun(ctx context.Context, verb string, count int, err error) error {
	err = fault.Op(verb, o.names.Name, err)
	if fault.IsContextEnd(err) {
		o.observeCall(o.client.Reporter.Parent(ctx), report.GaveUp, count, time.Now(), err)
	}
	return err
}

// send sends a call that changes nothing, or that may run twice. Its error is not explained.
func (o *synchronizer) send(ctx context.Context, c script.Call) (transport.Answer, error) {
	if err := o.begin(ctx); err != nil {
		return transport.Answer{}, err
	}
	defer o.client.Done()
	return o.client.Send(ctx, c)
}

// query is send with an error for the program. It changes nothing, so its outcome is never unknown.
func (o *synchronizer) query(ctx context.Context, verb string, c script.Call) (transport.Answer, error) {
	a, err := o.send(ctx, c)
	if err != nil {
		return a, fault.Op(verb, o.names.Name, o.explain(ctx, transport.Answer{}, err)...)
	}
	return a, nil
}

// sendOrRepeat sends an operation that counts once. If its outcome stays unknown, the background repeats it.
func (o *synchronizer) sendOrRepeat(ctx context.Context, verb string, build func(*undo.Operation) script.Call) (transport.Answer, error) {
	return o.perform(ctx, nil, verb, build, build, false)
}

// sendUntilDone is sendOrRepeat for an operation that gives back or adds: its callers cannot wait for the end of an
// outage, and it can be late. So the background repeats it even if it never reached the server.
func (o *synchronizer) sendUntilDone(ctx context.Context, verb string, build func(*undo.Operation) script.Call) (transport.Answer, error) {
	return o.perform(ctx, nil, verb, build, build, true)
}

// mayStillRun reports whether an operation that was not sent, because of err, may be executed if it is repeated.
func mayStillRun(err error) bool {
	return transport.Classify(err) != transport.Refused && !errors.Is(err, transport.ErrClientClosed) &&
		!errors.Is(err, fault.ErrClosed) && !errors.Is(err, script.ErrReply)
}

// sendLater leaves an operation that counts once to the background.
func (o *synchronizer) sendLater(build func(*undo.Operation) script.Call) {
	each := o.client.Sessions.Begin(o.names.Key)
	each.FollowUp = build(each)
	each.SettleLater()
}

// sendOrVoid sends an operation that takes effect once, and not late: if its outcome stays unknown, the
// background voids it.
func (o *synchronizer) sendOrVoid(ctx context.Context, verb string, build func(*undo.Operation) script.Call) (transport.Answer, error) {
	return o.perform(ctx, nil, verb, build, func(each *undo.Operation) script.Call {
		return script.NewCall(script.OpVoid, []string{each.Record}, each.Number)
	}, false)
}

// perform sends an operation until stop is closed. If its outcome is unknown, the background sends the call
// that settle builds. With always it does so too if the operation never reached the server, and the outcome
// counts as unknown.
func (o *synchronizer) perform(
	ctx context.Context, stop <-chan struct{}, verb string, build, settle func(*undo.Operation) script.Call, always bool,
) (transport.Answer, error) {
	if err := o.begin(ctx); err != nil {
		return transport.Answer{}, fault.Op(verb, o.names.Name, err)
	}
	defer o.client.Done()
	each := o.client.Sessions.Begin(o.names.Key)
	c := build(each)
	each.FollowUp = settle(each)
	always = always && ctx.Err() == nil
	a, err := o.client.Sender.Call(ctx, stop, c.Cmd, c.Keys, c.Args)
	switch {
	case err == nil:
		each.Done()
		return a, nil
	case a.Doubt, always && mayStillRun(err):
		a.Doubt = true
		each.SettleLater()
	default:
		each.Done()
	}
	return a, fault.Op(verb, o.names.Name, o.explain(ctx, a, err)...)
}

// explain puts the sentinel error for err in front of it.
func (o *synchronizer) explain(ctx context.Context, a transport.Answer, err error) []error {
	switch {
	case a.Doubt:
		return []error{fault.ErrUnknownOutcome, err}
	case transport.HasCode(err, "LATCHKEY_UNSET"):
		return []error{fault.ErrNotSet}
	case transport.HasCode(err, "LATCHKEY_RANGE"):
		_, sum, _ := strings.Cut(err.Error(), "LATCHKEY_RANGE ")
		return []error{fault.Invalid("there would be %s permits, want at least 0 and at most %d", sum, request.MaxCount)}
	case transport.HasCode(err, "WRONGTYPE"):
		return []error{o.client.Inspector.WrongKind(ctx, o.names, o.kind, err)}
	}
	return []error{err}
}

// objectWait is what the calls share that wait for a change of an object. They embed it.
type objectWait struct{ object *synchronizer }

// What implements [line.Attempter].
func (w objectWait) What() (keyspace.Kind, string) { return w.object.kind, w.object.names.Name }

// Recipient implements [line.Attempter]: a client holds nothing that such a call could receive.
func (objectWait) Recipient() line.Recipient { return nil }

// Pause implements [line.Attempter]. The call relies on the channel of the object.
func (w objectWait) Pause(q *line.Line, _ int, left time.Duration) time.Duration {
	q.Subscribe(w.object.client.Notifier, w.object.names.Channel)
	return line.PauseUntil(left, w.object.client.PollPause())
}

// timeToLive returns the TTL among the settings of a call that sets something, as text in ms.
func timeToLive(settings []request.Setting) (ms string, err error) {
	for _, each := range settings {
		if each.Kind != request.TTL {
			return "", request.ErrNoOption
		}
		if ms, err = ttlText(each.D); err != nil {
			return "", err
		}
	}
	return ms, nil
}

func ttlText(d time.Duration) (string, error) {
	if d == lease.NoExpiry {
		return "", nil
	}
	return script.MillisText(d), lease.Check("the TTL", d)
}

// observeCall reports the outcome of a call on an object that has no ownership: it succeeded or gave up.
func (o *synchronizer) observeCall(parent *context.Context, got report.EventType, count int, began time.Time, err error) {
	e := report.Event{Type: got, Kind: o.kind, Name: o.names.Name, Count: count, Wait: time.Since(began), Err: err}
	if err != nil {
		e.Type = report.GaveUp
	}
	o.client.Reporter.Observe(parent, e)
}

// observeAttempt reports one attempt to acquire count permits.
func (o *synchronizer) observeAttempt(parent *context.Context, count int, err error) {
	if parent != nil {
		o.client.Reporter.Observe(parent, report.Event{Type: report.Attempt, Kind: o.kind, Name: o.names.Name, Count: count, Err: script.Returned(err)})
	}
}
