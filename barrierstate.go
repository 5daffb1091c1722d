package latchkey

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/engine/labels"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// The states of a generation in the replies of lua/barrier/state.lua, and those that only a client
// knows.
const (
	barrierWaiting  = "waiting"
	barrierDone     = "done"
	barrierCrashed  = "crashed"
	barrierLeft     = "left"
	barrierTimeout  = "timeout"
	barrierClosed   = "closed"
	barrierWasReset = "reset"
	barrierBusy     = "busy" // for those that are not in it

	barrierUnrenewed = "unrenewed" // so its party is no longer in it, as far as its client knows
)

// The stages of a Do, and the prefix of a party that has arrived in the second: see
// lua/barrier/state.lua.
const (
	barrierEnter    = "enter"
	barrierRun      = "run"
	barrierReturned = "returned "
)

// barrierView is a generation as the server sees it.
type barrierView struct {
	how        string
	who        string // the party that broke it, or the second generation of a Do, or ""
	generation string
	index      string        // of the arrival, or "" if the script does not return it
	ends       time.Duration // until the first lease of a waiting party ends, or negative
}

// barrierViewOf reads the reply of a script about an arrival.
func barrierViewOf(reply rueidis.RedisMessage) (barrierView, error) {
	words, err := reply.AsStrSlice()
	if err != nil || len(words) != 5 {
		return barrierView{}, errors.Join(script.ErrReply, err)
	}
	ms, err := strconv.ParseInt(words[4], 10, 64)
	if err != nil {
		return barrierView{}, errors.Join(script.ErrReply, err)
	}
	return barrierView{how: words[0], who: words[1], generation: words[2], index: words[3], ends: script.FromMillis(ms)}, nil
}

// brokenError is ErrBroken with the details that are known.
type brokenError struct{ barrierView }

func (e *brokenError) Error() string {
	text := map[string]string{
		barrierCrashed:   "the lease of party %s ran out",
		barrierLeft:      "party %s has given up",
		barrierTimeout:   "party %s has waited for too long",
		barrierClosed:    "the client of party %s was closed",
		barrierWasReset:  "it was reset",
		barrierUnrenewed: "the lease of this party, %s, could not be renewed",
	}[e.how]
	switch {
	case text == "":
		text = "the server lost the generation, or no longer remembers how it ended"
	case e.who != "":
		text = fmt.Sprintf(text, e.who)
	}
	return fmt.Sprintf("%s: generation %s: %s", fault.ErrBroken.Error(), e.generation, text)
}

func (e *brokenError) Unwrap() error { return fault.ErrBroken }

// BarrierState describes a barrier at one moment.
type BarrierState struct {
	// Generation is the last generation that has begun, or 0 if none is known. The server forgets a
	// barrier that nobody has used for ten minutes.
	Generation int64
	// Parties is how many parties make a generation complete. It is 0 if that is undecided because
	// nobody has awaited the barrier or it was reset.
	Parties int
	// Waiting is how many parties have arrived in the generation, or 0 if it is over.
	Waiting int
	// The parties of the generation, at most 1000, in the order in which their leases end.
	Who []BarrierParty
}

// BarrierParty is a party that waits at a barrier, or that runs the function of its Do.
type BarrierParty struct {
	Owner   Owner         // identifies one Await or Do; includes the id of its client
	Label   string        // the label of its client, or "": see [Holder]
	Lease   time.Duration // until its lease ends; 0 if it has ended, which the others will find out
	Running bool          // the party runs the function of its Do, and does not wait
}

// shownParties is how many parties a BarrierState lists.
const shownParties = 1000

// State returns the parties of the generation. It changes nothing. The answer may be out of date when it
// arrives. State does not use the number of parties of this Barrier.
//
// While the server is in trouble, State retries for Options.RetryBudget. The error matches
// ErrUnavailable if the server could not be reached, ErrClosed, ErrWrongKind, ErrInvalid, or is a
// *rueidis.RedisError if the server refuses.
func (b *Barrier) State(ctx context.Context) (BarrierState, error) {
	const verb = "state"
	a, err := b.send(ctx, script.NewCall(script.BarrierInspect, []string{b.names.Key, b.waiting}, strconv.Itoa(shownParties)))
	if err != nil {
		return BarrierState{}, fault.Op(verb, b.names.Name, b.explain(ctx, transport.Answer{}, err)...)
	}
	s, err := barrierStateOf(a.Message)
	if err != nil {
		return s, fault.Op(verb, b.names.Name, err)
	}
	labels.DescribeEach(ctx, b.client.Labels, 0, [][]BarrierParty{s.Who}, func(p BarrierParty) identity.Owner { return identity.Owner(p.Owner) },
		func(p *BarrierParty, d labels.Description) { p.Label = d.Label })
	return s, nil
}

// barrierStateOf reads the reply of lua/barrier/inspect.lua.
func barrierStateOf(reply rueidis.RedisMessage) (s BarrierState, err error) {
	words, err := reply.AsStrSlice()
	if err != nil || len(words) < 3 || len(words)%3 != 0 {
		return s, errors.Join(script.ErrReply, err)
	}
	number := func(word string) int64 {
		n, bad := strconv.ParseInt(word, 10, 64)
		if bad != nil {
			err = errors.Join(script.ErrReply, bad)
		}
		return n
	}
	s = BarrierState{Generation: number(words[0]), Parties: int(number(words[1])), Waiting: int(number(words[2]))}
	for p := range slices.Chunk(words[3:], 3) {
		s.Who = append(s.Who, BarrierParty{Owner: Owner(identity.Of(p[0])), Lease: script.FromMillis(number(p[1])), Running: p[2] == "1"})
	}
	return s, err
}

// Reset breaks the generation if one is in progress: its parties get ErrBroken. The barrier also forgets
// how many parties it has, so that the next one to arrive decides. Reset does not wait.
//
// While the server is in trouble, Reset retries for Options.RetryBudget. The error matches
// ErrUnavailable if the server could not be reached, and ErrUnknownOutcome as well if the request
// was sent and got no answer. The reset may then have broken that generation, or may still do so,
// but it breaks no later one, and you may repeat it. The error can also match ErrClosed,
// ErrWrongKind or ErrInvalid, or be a *rueidis.RedisError if the server refuses.
func (b *Barrier) Reset(ctx context.Context) error {
	const verb = "reset"
	for {
		s, err := b.State(ctx)
		if err != nil {
			return err
		}
		a, err := b.send(ctx, script.NewCall(script.BarrierReset, b.all(), strconv.FormatInt(s.Generation, 10), b.client.Publish, b.names.Channel))
		if err != nil {
			return fault.Op(verb, b.names.Name, b.explain(ctx, a, err)...)
		}
		n, err := script.Int(a)
		switch {
		case err != nil:
			return fault.Op(verb, b.names.Name, err)
		case n == 1 || a.Doubt: // an earlier attempt got no answer and may have reset it: that generation is over
			return nil
		}
	}
}

// all returns the keys of the barrier.
func (b *Barrier) all() []string { return []string{b.names.Key, b.waiting, b.past} }
