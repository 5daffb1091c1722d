package barrier

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
	Waiting  = "waiting"
	Done     = "done"
	Crashed  = "crashed"
	Left     = "left"
	Timeout  = "timeout"
	Closed   = "closed"
	WasReset = "reset"
	Busy     = "busy" // for those that are not in it

	barrierUnrenewed = "unrenewed" // so its party is no longer in it, as far as its client knows
)

// The stages of a Do, and the prefix of a party that has arrived in the second: see
// lua/barrier/state.lua.
const (
	Enter    = "enter"
	Run      = "run"
	Returned = "returned "
)

// View is a generation as the server sees it.
type View struct {
	How        string
	Who        string // the party that broke it, or the second generation of a Do, or ""
	Generation string
	Index      string        // of the arrival, or "" if the script does not return it
	ends       time.Duration // until the first lease of a waiting party ends, or negative
}

// barrierViewOf reads the reply of a script about an arrival.
func barrierViewOf(reply rueidis.RedisMessage) (View, error) {
	words, err := reply.AsStrSlice()
	if err != nil || len(words) != 5 {
		return View{}, errors.Join(script.ErrReply, err)
	}
	ms, err := strconv.ParseInt(words[4], 10, 64)
	if err != nil {
		return View{}, errors.Join(script.ErrReply, err)
	}
	return View{How: words[0], Who: words[1], Generation: words[2], Index: words[3], ends: script.FromMillis(ms)}, nil
}

// brokenError is ErrBroken with the details that are known.
type brokenError struct{ View }

func (e *brokenError) Error() string {
	text := map[string]string{
		Crashed:          "the lease of party %s ran out",
		Left:             "party %s has given up",
		Timeout:          "party %s has waited for too long",
		Closed:           "the client of party %s was closed",
		WasReset:         "it was reset",
		barrierUnrenewed: "the lease of this party, %s, could not be renewed",
	}[e.How]
	switch {
	case text == "":
		text = "the server lost the generation, or no longer remembers how it ended"
	case e.Who != "":
		text = fmt.Sprintf(text, e.Who)
	}
	return fmt.Sprintf("%s: generation %s: %s", fault.ErrBroken.Error(), e.Generation, text)
}

func (e *brokenError) Unwrap() error { return fault.ErrBroken }

// Arrival is a place in a generation that has become complete.
type Arrival struct {
	Generation int64
	Index      int // how many parties had arrived before
	Parties    int
}

// GenerationState is the state of a barrier at one moment, with its last generation.
type GenerationState struct {
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

// State returns the parties of the generation. It changes nothing.
func (b *Barrier) State(ctx context.Context) (GenerationState, error) {
	const verb = "state"
	keys := []string{b.Names.Key, b.Waiting}
	a, err := b.Send(ctx, script.NewCall(script.BarrierInspect, keys, strconv.Itoa(shownParties)))
	if err != nil {
		return GenerationState{}, fault.Op(verb, b.Names.Name, b.Explain(ctx, transport.Answer{}, err)...)
	}
	s, err := readGeneration(a.Message)
	if err != nil {
		return s, fault.Op(verb, b.Names.Name, err)
	}
	labels.DescribeEach(ctx, b.Client.Labels, 0, [][]partyState{s.Who},
		func(p partyState) identity.Owner { return p.Owner },
		func(p *partyState, d labels.Description) { p.Label = d.Label })
	return s, nil
}

// readGeneration reads the reply of lua/barrier/inspect.lua.
func readGeneration(reply rueidis.RedisMessage) (s GenerationState, err error) {
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
	s = GenerationState{Generation: number(words[0]), Parties: int(number(words[1])), Waiting: int(number(words[2]))}
	for p := range slices.Chunk(words[3:], 3) {
		s.Who = append(s.Who, partyState{
			Owner: identity.Of(p[0]), Lease: script.FromMillis(number(p[1])), Running: p[2] == "1",
		})
	}
	return s, err
}

// Reset breaks the generation if one is in progress.
func (b *Barrier) Reset(ctx context.Context) error {
	const verb = "reset"
	for {
		s, err := b.State(ctx)
		if err != nil {
			return err
		}
		a, err := b.Send(ctx, script.NewCall(script.BarrierReset, b.All(),
			strconv.FormatInt(s.Generation, 10), b.Client.Publish, b.Names.Channel))
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
