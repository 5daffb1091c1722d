package rate

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/report"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
	"github.com/latchkey-go/latchkey/internal/transport/retry"
)

// longestWait is the longest time for which requests are reserved in advance.
const longestWait = 10 * 365 * 24 * time.Hour

// Grant says when requests may go.
type Grant struct {
	N     int
	Due   time.Time // by the clock of this client; not earlier than on the server
	At    int64     // by the clock of the server, in µs
	Place int64     // of the last of them in the order of all
}

// Allow lets n requests go now, or refuses them.
func (l *Limiter) Allow(ctx context.Context, n int) (bool, error) {
	t, err := l.begin(ctx, "allow", n)
	if err != nil {
		return false, err
	}
	defer l.Client.Done()
	_, err = t.send(ctx, 0)
	allowed := err == nil
	if !allowed && !errors.Is(err, fault.ErrNotAcquired) {
		return false, t.failed(ctx, err)
	}
	l.ObserveCall(t.parent, report.Opened, n, t.began, err)
	return allowed, nil
}

// Reserve reserves n requests.
func (l *Limiter) Reserve(ctx context.Context, n int) (*Reservation, error) {
	t, err := l.begin(ctx, "reserve", n)
	if err != nil {
		return nil, err
	}
	defer l.Client.Done()
	g, err := t.send(ctx, longestWait)
	if err != nil {
		return nil, t.failed(ctx, err)
	}
	l.ObserveCall(t.parent, report.Opened, n, t.began, nil)
	return l.Reserved(g), nil
}

// Wait reserves n requests, and returns when they may go.
func (l *Limiter) Wait(ctx context.Context, n int) error {
	t, err := l.begin(ctx, "wait", n)
	if err != nil {
		return err
	}
	defer l.Client.Done()
	t.waits = true
	g, err := t.reserve(ctx)
	if err == nil {
		err = t.rest(ctx, g)
	}
	if err != nil {
		return t.failed(ctx, err)
	}
	l.ObserveCall(t.parent, report.Opened, n, t.began, nil)
	return nil
}

// taking is one call.
type taking struct {
	*Limiter

	verb   string
	n      int
	began  time.Time
	parent *context.Context
	waits  bool // it repeats attempts until ctx ends
	doubt  bool // an attempt was sent and may have counted
}

// begin begins a call. Unless it fails, the caller ends the call with Done of the client.
func (l *Limiter) begin(ctx context.Context, verb string, n int) (taking, error) {
	err := errors.Join(l.Names.Invalid, request.CheckNumber("%d requests", n, 1))
	if err == nil && n > l.burst {
		err = fault.Invalid("%d requests are more than the burst of %d", n, l.burst)
	}
	if err == nil {
		err = l.Begin(ctx)
	}
	if err != nil {
		return taking{}, l.NotBegun(ctx, verb, n, err)
	}
	return taking{Limiter: l, verb: verb, n: n, began: time.Now(), parent: l.Client.Reporter.Parent(ctx)}, nil
}

// reserve reserves the requests if they may go before the deadline of ctx. While the server is in
// trouble, it tries again.
func (t *taking) reserve(ctx context.Context) (Grant, error) {
	for {
		longest := longestWait
		if end, limited := ctx.Deadline(); limited {
			longest = min(max(time.Until(end), 0), longest)
		}
		g, err := t.send(ctx, longest)
		if err == nil || errors.Is(err, fault.ErrNotAcquired) || !line.WorthWaiting(ctx, err) {
			return g, err
		}
		if ended := retry.Rest(ctx, t.Client.Closing, retry.Jitter(retry.LongPause)); ended != nil {
			return g, errors.Join(err, ended)
		}
	}
}

// rest waits until the requests may go, or gives them back.
func (t *taking) rest(ctx context.Context, g Grant) error {
	var mark line.Mark
	defer mark.End()
	for wait := time.Until(g.Due); wait > 0; wait = time.Until(g.Due) {
		mark.Begin(t.Client.Waiting.Counts, t.Kind)
		if err := retry.Rest(ctx, t.Client.Closing, wait); err != nil {
			t.giveBack(g)
			if errors.Is(err, fault.ErrClosed) {
				return err
			}
			return errors.Join(tooMany(time.Until(g.Due)), err)
		}
	}
	return nil
}

// send asks once for the requests. It returns when they may go, or ErrNotAcquired if they would
// have to wait for longer than they may.
func (t *taking) send(ctx context.Context, longest time.Duration) (Grant, error) {
	c, sender := t.TakingCall(t.n, longest), t.Client.Sender
	terms := transport.Terms{Patience: sender.Patience, Waits: t.waits}
	a, err := sender.CallOn(ctx, t.Client.Closing, terms, c)
	t.doubt = t.doubt || a.Doubt
	if err != nil {
		return Grant{}, err
	}
	return readGrant(a, t.n, time.Now())
}

// readGrant reads the reply of lua/rate/take.lua for n requests, which came at that time.
func readGrant(a transport.Answer, n int, now time.Time) (Grant, error) {
	if wait, err := a.Message.AsInt64(); a.Message.IsInt64() && err == nil {
		return Grant{}, tooMany(time.Duration(wait) * time.Microsecond)
	}
	words, err := a.Message.AsIntSlice()
	if err != nil || len(words) != 3 {
		return Grant{}, errors.Join(script.ErrReply, err)
	}
	return Grant{n, now.Add(time.Duration(words[0]) * time.Microsecond), words[1], words[2]}, nil
}

// tooMany is the refusal of requests that would have to wait so long.
func tooMany(wait time.Duration) error {
	wait = (wait + time.Millisecond - 1).Truncate(time.Millisecond)
	return fault.NotYet("too many requests: its turn is in %s", fault.DurationText(wait))
}

// failed returns the error of the call, and reports it.
func (t *taking) failed(ctx context.Context, err error) error {
	err = fault.Op(t.verb, t.Names.Name, t.explain(ctx, t.n, t.doubt, err)...)
	t.ObserveCall(t.parent, report.GaveUp, t.n, t.began, err)
	return err
}
