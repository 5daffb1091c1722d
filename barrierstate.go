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

// arrival is a place in a generation that has become complete.
type arrival struct {
	Generation int64
	Index      int // how many parties had arrived before
	Parties    int
}

// generationState is the state of a barrier at one moment, with its last generation.
type generationState struct {
	Generation int64 // 0 if none is known
	Parties    int   // 0 if undecided
	Waiting    int
	Who        []partyState
}

// partyState is a party that waits, or that runs the function of its Do.
type partyState struct {
	Owner   identity.Owner
	Label   string
	Lease   time.Duration
	Running bool
}

// shownParties is how many parties a state lists.
const shownParties = 1000

// state returns the parties of the generation. It changes nothing.
func (b *barrier) state(ctx context.Context) (generationState, error) {
	const verb = "state"
	a, err := b.Send(ctx, script.NewCall(script.BarrierInspect, []string{b.Names.Key, b.waiting}, strconv.Itoa(shownParties)))
	if err != nil {
		return generationState{}, fault.Op(verb, b.Names.Name, b.Explain(ctx, transport.Answer{}, err)...)
	}
	s, err := readGeneration(a.Message)
	if err != nil {
		return s, fault.Op(verb, b.Names.Name, err)
	}
	labels.DescribeEach(ctx, b.Client.Labels, 0, [][]partyState{s.Who}, func(p partyState) identity.Owner { return p.Owner },
		func(p *partyState, d labels.Description) { p.Label = d.Label })
	return s, nil
}

// readGeneration reads the reply of lua/barrier/inspect.lua.
func readGeneration(reply rueidis.RedisMessage) (s generationState, err error) {
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
	s = generationState{Generation: number(words[0]), Parties: int(number(words[1])), Waiting: int(number(words[2]))}
	for p := range slices.Chunk(words[3:], 3) {
		s.Who = append(s.Who, partyState{Owner: identity.Of(p[0]), Lease: script.FromMillis(number(p[1])), Running: p[2] == "1"})
	}
	return s, err
}

// reset breaks the generation if one is in progress.
func (b *barrier) reset(ctx context.Context) error {
	const verb = "reset"
	for {
		s, err := b.state(ctx)
		if err != nil {
			return err
		}
		a, err := b.Send(ctx, script.NewCall(script.BarrierReset, b.all(), strconv.FormatInt(s.Generation, 10), b.Client.Publish, b.Names.Channel))
		if err != nil {
			return fault.Op(verb, b.Names.Name, b.Explain(ctx, a, err)...)
		}
		n, err := script.Int(a)
		switch {
		case err != nil:
			return fault.Op(verb, b.Names.Name, err)
		case n == 1 || a.Doubt: // an earlier attempt got no answer and may have reset it: that generation is over
			return nil
		}
	}
}
