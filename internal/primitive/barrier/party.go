package barrier

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/object"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/engine/renewal"
	"github.com/latchkey-go/latchkey/internal/engine/report"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
	"github.com/latchkey-go/latchkey/internal/transport"
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
		Ownership: b.Client.Registry.Fresh(b.waitingSet), Sent: b.Client.Sessions.Begin(b.Names.Key),
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

// arrivingParty is a party that the server has not counted yet. The end of a generation that is busy is announced.
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
	if err = p.noteArrival(); err == nil && (p.View.How == Waiting || p.GoesOn()) {
		p.Ownership.Special = Protocol{p.Barrier}
		p.Ownership.Begin(p.Request, answer, p.Client.Clock())
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
	return fault.Invalid("the barrier has %s parties, not %d; to change the number, reset the barrier", number, p.Parties)
}

// noteArrival reads the place in the generation from the reply.
func (p *Party) noteArrival() error {
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

// incomplete is the error of a party whose wait is over: so many had arrived, "" if that is unknown.
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

// end has the party leave unless it knows that its generation is over, and returns the outcome. err
// is why it stopped waiting.
func (p *Party) end(ctx context.Context, err error) error {
	if err != nil || !p.GoesOn() {
		if next, ended := p.Ownership.End(nil); ended { // its lease was renewed until now
			p.Ownership.Leave(next)
		}
	}
	switch {
	case err == nil:
		return p.generationOutcome()
	case !p.Known && !p.doubt:
		p.Sent.Done()
		return err
	}
	err = line.WithContextEnd(ctx, err)
	return p.leave(ctx, reasonToLeave(err), err)
}

// leave has the party leave because of err, and returns the outcome. It does not wait for a server
// that was silent.
func (p *Party) leave(ctx context.Context, why string, err error) error {
	c, on := p.Leaving(why), transport.Terms{Patience: transport.LongPause}
	if errors.Is(err, fault.ErrNotAcquired) || errors.Is(err, fault.ErrClosed) {
		on.Patience = p.Client.Sender.Patience
	}
	a, failed := p.Client.Sender.CallOn(p.Client.Sender.Detached(ctx), nil, on, c.Cmd, c.Keys, c.Args)
	v, unclear := barrierViewOf(a.Message)
	arrived := ""
	switch {
	case failed != nil || unclear != nil:
		return p.leaveLater(c, err)
	case p.Known:
		arrived = v.Index
		v.Generation, v.Index = p.View.Generation, p.View.Index
	default:
		p.Sent.Done()
	}
	p.View = v
	switch {
	case v.Who != p.Ownership.Wire || v.How != why:
		return errors.Join(p.noteArrival(), p.generationOutcome())
	case fault.IsContextEnd(err): // the server has now said that not all had arrived
		return errors.Join(p.incomplete(arrived), fault.ContextEnd(err))
	}
	return err
}

// leaveLater has the party leave in the background.
func (p *Party) leaveLater(c script.Call, err error) error {
	if p.Known {
		left := &ownership.LastRelease{Lock: p.waitingSet, Number: p.Ownership.Number, Owner: p.Ownership.Owner(), Call: c}
		p.Client.Undo.Add(left, undo.Plan{Key: p.Names.Key, Lease: p.Request.Lease})
	} else {
		p.Sent.FollowUp = c
		p.Sent.SettleLater()
	}
	return errors.Join(err, fault.ErrUnknownOutcome)
}

// generationOutcome says how a finished generation ended.
func (p *Party) generationOutcome() error {
	p.NoteOver(p.arrival.Generation)
	switch {
	case p.GoesOn():
		p.GoOn()
		return nil
	case p.View.How == Done:
		return nil
	}
	return &brokenError{p.View}
}

// reasonToLeave is the reason that the other parties see when a party leaves because of err.
func reasonToLeave(err error) string {
	switch {
	case errors.Is(err, fault.ErrClosed):
		return Closed
	case errors.Is(err, fault.ErrBroken):
		return Crashed
	case errors.Is(err, context.Canceled):
		return Left
	}
	return Timeout
}

// Arriving returns the command with which the party arrives.
func (p *Party) Arriving() script.Call {
	return script.NewCall(script.BarrierArrive, append(p.All(), p.Sent.Record),
		p.Sent.Number, p.Ownership.Wire, strconv.Itoa(p.Parties), p.Client.LeaseText(p.Request.Lease),
		p.Client.Publish, p.Names.Channel, strconv.FormatInt(p.lastOver.Load(), 10), p.Stage)
}

// Looking returns the query for the outcome of the party's generation.
func (p *Party) Looking() script.Call {
	member := p.Ownership.Wire
	if p.Counted {
		member = Returned + member
	}
	return script.NewCall(script.BarrierLook, p.All(),
		p.View.Generation, member, p.Client.Publish, p.Names.Channel)
}

// Leaving returns the command with which the party leaves.
func (p *Party) Leaving(why string) script.Call {
	if p.Known {
		return script.NewCall(script.BarrierLeave, p.All(),
			p.Ownership.Wire, p.View.Generation, "", why, p.Client.Publish, p.Names.Channel)
	}
	return script.NewCall(script.BarrierLeave, append(p.All(), p.Sent.Record),
		p.Ownership.Wire, "", p.Sent.Number, why, p.Client.Publish, p.Names.Channel)
}

// Protocol renews the name of a party among the waiting parties as if it were a hold. Await
// itself arrives and leaves.
type Protocol struct{ Of *Barrier }

// ReleaseCall implements [ownership.Protocol].
func (Protocol) ReleaseCall(*ownership.Ownership, ownership.Release, []string) script.Call {
	return script.Call{}
}

// RenewalCall implements [ownership.Protocol].
func (b Protocol) RenewalCall(o *ownership.Ownership, lease time.Duration) script.Call {
	return script.NewCall(script.BarrierRenew, []string{b.Of.Names.Key, b.Of.Waiting}, o.Wire, script.MillisText(lease))
}

// wakeParties has the parties of a client query how their generations ended, because the
// server no longer lists one of them as waiting.
func wakeParties(o *ownership.Ownership) {
	shared := line.Key{Kind: keyspace.KindBarrier, Key: o.Protocol().(Protocol).Of.Names.Key}
	if q := o.Lock.Client.Lines.Known(shared); q != nil {
		q.WakeFronts()
	}
}
