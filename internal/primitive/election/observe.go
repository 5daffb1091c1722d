package election

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/object"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// Observe yields the leader and every change, until yield returns false or the sequence ends.
func (e *Election) Observe(ctx context.Context, yield func(Leader, error) bool) {
	if e.Names.Invalid != nil {
		yield(Leader{}, fault.Op("observe", e.Names.Name, e.Names.Invalid))
		return
	}
	number := strconv.FormatUint(e.Client.Number(), 10)
	o := &observer{Election: e, Wait: object.Wait{Of: &e.Object}, key: e.seen[1] + " " + number}
	// The subscription lasts from step to step.
	q := e.Client.Lines.Use(line.Key{Kind: keyspace.KindElection, Key: o.key})
	q.DoNotLinger()
	defer q.Done()
	for {
		err := o.next(ctx)
		if ctx.Err() != nil && !errors.Is(err, fault.ErrClosed) {
			return
		}
		if !yield(o.leader, err) || err != nil && o.fault == nil {
			return
		}
	}
}

// observer is one loop over the sequence of Observe. It waits alone in a line of its own, because
// each observer has last seen a different state.
type observer struct {
	*Election
	object.Wait

	key    string // of the line, not of anything on the server
	known  bool   // leader is the last answer of the server
	leader Leader
	fault  error // or why the server does not answer; yielded once
}

// next waits for a change. After an error without a fault there are no more changes.
func (o *observer) next(ctx context.Context) error {
	if err := o.Begin(ctx); err != nil {
		o.fault = nil
		return fault.Op("observe", o.Names.Name, err)
	}
	defer o.Client.Done()
	err := o.Client.Waiting.Wait(ctx, line.Key{Kind: keyspace.KindElection, Key: o.key}, line.Only, o, nil)
	if err != nil {
		o.fault = nil
	} else {
		err = o.fault
	}
	if err != nil {
		o.leader = Leader{}
		return fault.Op("observe", o.Names.Name, o.Explain(ctx, transport.Answer{}, err)...)
	}
	return nil
}

// Attempt implements [line.Attempter]. It succeeds when there is something to yield.
func (o *observer) Attempt(ctx context.Context, _ int) (time.Duration, error) {
	now, err := o.look(ctx)
	if err != nil {
		if o.fault != nil || !line.WorthWaiting(ctx, err) {
			return -1, err
		}
		o.known, o.fault = false, err
		return 0, nil
	}
	same := o.known && now.Term == o.leader.Term && now.Owner == o.leader.Owner && now.Value == o.leader.Value
	o.leader, o.known, o.fault = now, true, nil
	switch {
	case !same:
		return 0, nil
	case now == (Leader{}):
		return -1, fault.ErrNotAcquired
	}
	return now.Lease, fault.ErrNotAcquired
}

// What implements [line.Attempter]. A loop that observes is not a waiting call.
func (o *observer) What() (keyspace.Kind, string) { return keyspace.KindNone, o.Names.Name }
