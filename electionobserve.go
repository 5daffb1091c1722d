package latchkey

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// Observe yields the current leader, and then every change: a leader resigns, its lease ends, a new
// leader is elected, or the leader announces a new value. While nobody leads, it yields the zero
// Leader. Age and Lease are those at the time of the server's answer.
//
// If several changes follow each other quickly, Observe may yield only the last one, which always
// arrives: a message wakes the observer, and it also queries the server when the leader's lease
// ends, when its subscription begins or ends, and every Options.PollCeiling. Terms never go back
// while the server keeps its data. Observe queries the server again only after the loop body is
// done.
//
// If the server cannot be reached for Options.RetryBudget, Observe yields an error that matches
// ErrUnavailable, once. Another leader may have been elected since. It keeps trying, and yields the
// leader when the server answers, even if that is the same as before. Any other error ends the
// sequence: ErrClosed, ErrWrongKind if the key is another kind of object, ErrInvalid if the name is
// unusable, or a *rueidis.RedisError if the server refuses. When ctx ends, the sequence ends
// without an error. You may range over it again; it then starts from the beginning.
func (e *Election) Observe(ctx context.Context) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		if e.names.Invalid != nil {
			yield(Leader{}, fault.Op("observe", e.names.Name, e.names.Invalid))
			return
		}
		o := &observer{Election: e, objectWait: objectWait{&e.synchronizer}, key: e.seen[1] + " " + strconv.FormatUint(e.client.Number(), 10)}
		q := e.client.Lines.Use(line.Key{Kind: keyspace.KindElection, Key: o.key}) // so that the subscription lasts from step to step
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
}

// observer is one loop over the sequence of Observe. It waits alone in a line of its own, because
// each observer has last seen a different state.
type observer struct {
	*Election
	objectWait

	key    string // of the line, not of anything on the server
	known  bool   // leader is the last answer of the server
	leader Leader
	fault  error // or why the server does not answer; yielded once
}

// next waits for a change. After an error without a fault there are no more changes.
func (o *observer) next(ctx context.Context) error {
	if err := o.begin(ctx); err != nil {
		o.fault = nil
		return fault.Op("observe", o.names.Name, err)
	}
	defer o.client.Done()
	err := o.client.Waiting.Wait(ctx, line.Key{Kind: keyspace.KindElection, Key: o.key}, line.Only, o, nil)
	if err != nil {
		o.fault = nil
	} else {
		err = o.fault
	}
	if err != nil {
		o.leader = Leader{}
		return fault.Op("observe", o.names.Name, o.explain(ctx, transport.Answer{}, err)...)
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
	case now.IsZero():
		return -1, fault.ErrNotAcquired
	}
	return now.Lease, fault.ErrNotAcquired
}

// What implements [line.Attempter]. A loop that observes is not a waiting call.
func (o *observer) What() (keyspace.Kind, string) { return keyspace.KindNone, o.names.Name }
