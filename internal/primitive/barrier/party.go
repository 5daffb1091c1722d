package barrier

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/object"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/engine/renewal"
	"github.com/latchkey-go/latchkey/internal/engine/report"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// Party is one party, in the one generation of an Await or in the two of a Do. It arrives
// and waits. It is over when its generation is over or when it has left.
//
//	          arrive              wait                 the generation ends
//	unknown ─────────▶ waiting ─────────────────────────────────────────▶ over
//	    │                 │                                                ▲
//	    │ time is over,   │ time is over, or closed: it leaves,            │
//	    │ or refused      │ which breaks the generation unless it is over  │
//	    └─────────────────┴────────────────────────────────────────────────┘
//
// The second generation of a Do is known from the start: see [barrierStay].
//
// While it waits, an ownership renews its lease, which is the lease of its name in the set of
// waiting parties. If the name is missing there, that is not a loss but a hint that the generation
// is over.
type Party struct {
	*Barrier
	object.Wait

	verb      string
	Stage     string // as in lua/barrier/state.lua, or ""
	Request   *request.Request
	Ownership *ownership.Ownership // named after the party
	Sent      *undo.Operation      // the arrival, or the first of a Do
	doubt     bool                 // the arrival was sent and may be executed
	Known     bool                 // the arrival was answered
	Counted   bool                 // the server has counted the arrival in the stage run
	View      View
	arrival   Arrival
	hints     line.Hints // taken before it arrived
}

var barrierSpec = &ownership.Spec{
	Kind: keyspace.KindBarrier, Family: keyspace.KindBarrier, Stored: keyspace.KindBarrier,
	Protocol: Protocol{},
	Renew:    script.BarrierRenew, Renewals: renewal.MostInBatch,
	Party: true,
	Lost:  wakeParties,
}

// NewParty returns a party that is about to arrive.
func (b *Barrier) NewParty(verb, stage string, r *request.Request) *Party {
	return &Party{
		Barrier: b, Wait: object.Wait{Of: &b.Object}, verb: verb, Stage: stage, Request: r,
		Ownership: ownership.Fresh(b.waitingSet), Sent: b.Client.Sessions.Begin(b.Names.Key),
	}
}

// meet is one generation, from the arrival a to the end, and reports its outcome.
func (p *Party) meet(ctx context.Context, a line.Attempter) error {
	began, parent := time.Now(), p.Client.Reporter.Parent(ctx)
	bounded, cancel := p.Request.Bound(ctx)
	defer cancel()
	err := p.arrive(bounded, a)
	if err == nil && p.View.How == Waiting {
		err = p.wait(bounded)
	}
	err = p.outcome(bounded, err)
	p.ObserveCall(parent, report.Opened, 0, began, err)
	return err
}

// outcome ends the generation for the party, and explains why it failed. err is why the party
// stopped waiting.
func (p *Party) outcome(ctx context.Context, err error) error {
	switch err = p.end(ctx, err); {
	case err == nil:
		return nil
	case errors.Is(err, fault.ErrBroken):
		return fault.Op(p.verb, p.Names.Name, err)
	}
	return fault.Op(p.verb, p.Names.Name, script.Explain(p.Client.Inspector.WrongKind(ctx, p.Names, p.Kind, err))...)
}

// arrive returns when the server has counted the party or refuses, or the time is over. The party
// does not queue behind others of its client, because they may be waiting for this party.
func (p *Party) arrive(ctx context.Context, a line.Attempter) error {
	p.hints = p.Client.Lines.Hints(line.Key{Kind: keyspace.KindBarrier, Key: p.Names.Key})
	_, err := a.Attempt(ctx, 0)
	if err == nil || !line.WorthWaiting(ctx, err) {
		return p.mismatch(line.WithContextEnd(ctx, err))
	}
	alone := line.Key{Kind: keyspace.KindBarrier, Key: "party " + p.Ownership.Wire}
	before := &line.Earlier{Err: err, Hints: p.hints}
	return p.mismatch(p.Client.Waiting.Wait(ctx, alone, line.Only, a, before))
}

// arrivingParty is a party that the server has not counted yet. The end of a generation that is
// busy is announced.
type arrivingParty struct{ *Party }

// Attempt implements [line.Attempter].
func (a arrivingParty) Attempt(ctx context.Context, _ int) (time.Duration, error) {
	p := a.Party
	answer, err := p.Client.Send(ctx, p.Arriving())
	p.doubt = p.doubt || answer.Doubt
	if err != nil {
		return -1, err
	}
	if p.View, err = barrierViewOf(answer.Message); err != nil {
		p.doubt = true
		return -1, err
	}
	if p.View.How == Busy {
		return p.View.ends, fault.NotYet("other parties run their functions")
	}
	p.Known = true
	p.Sent.Done()
	if err = p.readArrival(); err == nil && (p.View.How == Waiting || p.GoesOn()) {
		p.Ownership.Protocol = Protocol{p.Barrier}
		r := p.Request
		term := lease.NewTerm(answer.Sent, r.Lease, r.RenewLease, r.MaxHold)
		p.Ownership.Begin(r, term, answer.Sent, p.Client.Clock(), 0)
	}
	return 0, err
}

// mismatch explains the server's refusal when the other parties have another number of parties, or
// call another method.
func (p *Party) mismatch(err error) error {
	switch {
	case outcome.HasCode(err, "LATCHKEY_MIXED"):
		return fault.Invalid("some parties of the barrier call Do and others Await")
	case !outcome.HasCode(err, "LATCHKEY_PARTIES"):
		return err
	}
	_, number, _ := strings.Cut(err.Error(), "LATCHKEY_PARTIES ")
	number, _, _ = strings.Cut(number, " ")
	return fault.Invalid("the barrier has %s parties, not %d; to change the number, reset the barrier",
		number, p.Parties)
}

// readArrival reads the place in the generation from the reply.
func (p *Party) readArrival() error {
	generation, err1 := strconv.ParseInt(p.View.Generation, 10, 64)
	index, err2 := strconv.Atoi(p.View.Index)
	p.arrival = Arrival{Generation: generation, Index: index, Parties: p.Parties}
	if err := errors.Join(err1, err2); err != nil {
		return errors.Join(script.ErrReply, err)
	}
	return nil
}

// wait returns nil when the generation is over. The parties of this client wait in one line, and
// only the party at its front queries the server, as with awaiters of a latch.
func (p *Party) wait(ctx context.Context) error {
	shared := line.Key{Kind: keyspace.KindBarrier, Key: p.Names.Key}
	before := &line.Earlier{Err: p.incomplete(""), Hints: p.hints}
	return p.Client.Waiting.Wait(ctx, shared, line.Shared, p, before)
}

// Attempt implements [line.Attempter]. It queries whether and how the generation ended.
func (p *Party) Attempt(ctx context.Context, _ int) (time.Duration, error) {
	a, err := p.Client.Send(ctx, p.Looking())
	if err != nil {
		return -1, err
	}
	v, err := barrierViewOf(a.Message)
	if err != nil {
		return -1, err
	}
	v.Index = p.View.Index
	p.View = v
	if v.How == Waiting {
		return v.ends, p.incomplete("")
	}
	return 0, nil
}

// incomplete is the error of a party whose wait is over: so many had arrived, "" if that is
// unknown.
func (p *Party) incomplete(arrived string) error {
	done := "arrived"
	if p.Stage == Run {
		done = "are done"
	}
	if arrived == "" {
		return fault.NotYet("not all of %d parties %s", p.Parties, done)
	}
	return fault.NotYet("%s of %d parties %s", arrived, p.Parties, done)
}
