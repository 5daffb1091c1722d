package semaphore

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/owners"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/engine/renewal"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/engine/waiters"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// lua/permit/queue.lua describes how Redis stores permits with ids and their waiters. Each waiter
// of a fair semaphore has a place in the queue. The goroutines of a client that wait for the
// permits of a semaphore that is not fair stand in line, and the one in front has a place.

// Queues holds the queues of the semaphores of a client whose permits have ids.
type Queues struct {
	Waiters *waiters.List
	lines   *line.FIFOs // for a semaphore that is not fair
	fair    *acquire.Spec
	inLine  *acquire.Spec
}

// QueuesOf returns the queues of the semaphores of a client.
func QueuesOf(c *core.Parts) *Queues {
	return core.KindState(c, keyspace.KindPermit, func() (*Queues, func()) { return newQueues(c) })
}

func newQueues(c *core.Parts) (q *Queues, atClose func()) {
	q = &Queues{lines: line.NewFIFOs()}
	q.Waiters = waiters.New(c, q, true)
	q.fair = &acquire.Spec{
		Spec: &ownership.Spec{
			Kind: keyspace.KindFairPermit, Family: keyspace.KindPermit, Stored: keyspace.KindSemaphore,
			Protocol: Protocol{},
			Renew:    script.PermitRenew, Renewals: renewal.MostInBatch,
			Line:      line.Exclusive, // whose front does not wait for a hold of this client to end
			Channel:   Channel,
			Permit:    true,
			GrantMark: "p",
		},
		Attempts: Attempts{},
		Fresh:    freshPermits,
		Wait:     q.Waiters.Wait,
	}
	q.inLine = q.fair.Copy()
	q.inLine.Kind, q.inLine.Wait = keyspace.KindPermit, q.waitInLine
	inUse := func(key, id string) bool { return permitsInUse(owners.Of(c), key, id) }
	owners.RegisterGrants(c, q.fair.Spec, inUse)
	return q, q.Waiters.Close
}

// waitInLine waits in line, and then in the queue on the server. Calls that also wait for somebody
// to set the permits have a line of their own.
func (q *Queues) waitInLine(ctx context.Context, a *acquire.Acquisition) error {
	key := a.Lock.Names.Key
	if a.AwaitSet {
		key += " to be set"
	}
	l := q.lines.Use(key)
	defer q.lines.Done(key)
	var mark line.Mark
	defer mark.End()
	if err := l.Enter(ctx, func() { a.WasInLine = true; mark.BeginFor(a.Lock.Client.Waiting.Counts, a) }); err != nil {
		return l.WaitError(err)
	}
	return q.Waiters.WaitFor(ctx, a, l, &mark)
}

// Refresh implements [waiters.Queue].
func (*Queues) Refresh() transport.Command { return script.PermitRefresh }

// Keys implements [waiters.Queue].
func (*Queues) Keys(p *ownership.Lock) []string { return p.Names.FairPermitKeys() }

// Channel implements [waiters.Queue].
func (*Queues) Channel(p *ownership.Lock) string { return p.Names.Channel }

// Entry implements [waiters.Queue].
func (*Queues) Entry(o *ownership.Ownership) string { return EntryOf(o) }

// AttemptsOf implements [waiters.Queue].
func (*Queues) AttemptsOf(w *waiters.Waiter) acquire.Attempts { return Attempts{w} }

// EntryOf is the entry of an ownership in the queue. Permits that are requested together have
// one entry, named after the first of them.
func EntryOf(o *ownership.Ownership) string { return o.Client.ID + ":" + o.Wire }
