package latch

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// The states of a latch or a round that lua/latch/look.lua reports.
const (
	Closed     = "closed"
	Open       = "open"
	Gone       = "gone"
	Expired    = "expired"
	latchUnset = "unset"
)

// View is a latch as the server sees it.
type View struct {
	What  string
	Round string
	Left  int
	Ends  time.Duration // until the round expires, or negative
}

// Look queries the state of the latch, of the given round, or of the round that follows it.
func (l *Latch) Look(ctx context.Context, round string, following bool) (View, transport.Answer, error) {
	args := []string{round, ""}
	if following {
		args[1] = "1"
	}
	keys := []string{l.Names.Key, l.State, l.Done, keyspace.NumberKindKey(l.Names.Key)}
	a, err := l.Send(ctx, script.NewCall(script.LatchLook, keys, args...))
	if err != nil {
		return View{}, a, err
	}
	v, err := viewOf(a)
	return v, a, err
}

// viewOf reads the reply of lua/latch/look.lua.
func viewOf(a transport.Answer) (View, error) {
	words, err := a.Message.AsStrSlice()
	if err != nil || len(words) != 4 {
		return View{}, errors.Join(script.ErrReply, err)
	}
	left, err := strconv.Atoi(words[2])
	ms, err2 := strconv.ParseInt(words[3], 10, 64)
	if err = errors.Join(err, err2); err != nil {
		return View{}, errors.Join(script.ErrReply, err)
	}
	return View{What: words[0], Round: words[1], Left: left, Ends: script.FromMillis(ms)}, nil
}

// now is Look for operations that do not wait. It changes nothing, so its outcome is never unknown.
func (l *Latch) now(ctx context.Context, verb string) (View, error) {
	v, _, err := l.Look(ctx, "", false)
	if err != nil {
		return v, fault.Op(verb, l.Names.Name, l.Explain(ctx, transport.Answer{}, err)...)
	}
	return v, nil
}

// roundError is the error of an operation that needs a latch to be set.
func (l *Latch) roundError(verb string, v View) error {
	switch v.What {
	case latchUnset:
		return fault.Op(verb, l.Names.Name, fault.ErrNoCount)
	case Expired:
		return fault.Op(verb, l.Names.Name, fault.ErrGone)
	}
	return nil
}

// changeKeys are the keys of every script that changes a latch.
func (l *Latch) changeKeys(o *undo.Operation) []string {
	return []string{l.Names.Key, l.State, l.Done, o.Record, keyspace.NumberKindKey(l.Names.Key)}
}
