package latchkey

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
	latchClosed  = "closed"
	latchOpen    = "open"
	latchGone    = "gone"
	latchExpired = "expired"
	latchUnset   = "unset"
)

// latchView is a latch as the server sees it.
type latchView struct {
	what  string
	round string
	left  int
	ends  time.Duration // until the round expires, or negative
}

// look queries the state of the latch, of the given round, or of the round that follows it.
func (l *latch) look(ctx context.Context, round string, following bool) (latchView, transport.Answer, error) {
	args := []string{round, ""}
	if following {
		args[1] = "1"
	}
	a, err := l.Send(ctx, script.NewCall(script.LatchLook, []string{l.Names.Key, l.state, l.done, keyspace.NumberKindKey(l.Names.Key)}, args...))
	if err != nil {
		return latchView{}, a, err
	}
	v, err := viewOf(a)
	return v, a, err
}

// viewOf reads the reply of lua/latch/look.lua.
func viewOf(a transport.Answer) (latchView, error) {
	words, err := a.Message.AsStrSlice()
	if err != nil || len(words) != 4 {
		return latchView{}, errors.Join(script.ErrReply, err)
	}
	left, err := strconv.Atoi(words[2])
	ms, err2 := strconv.ParseInt(words[3], 10, 64)
	if err = errors.Join(err, err2); err != nil {
		return latchView{}, errors.Join(script.ErrReply, err)
	}
	return latchView{what: words[0], round: words[1], left: left, ends: script.FromMillis(ms)}, nil
}

// now is look for operations that do not wait. It changes nothing, so its outcome is never unknown.
func (l *latch) now(ctx context.Context, verb string) (latchView, error) {
	v, _, err := l.look(ctx, "", false)
	if err != nil {
		return v, fault.Op(verb, l.Names.Name, l.Explain(ctx, transport.Answer{}, err)...)
	}
	return v, nil
}

// roundError is the error of an operation that needs a latch to be set.
func (l *latch) roundError(verb string, v latchView) error {
	switch v.what {
	case latchUnset:
		return fault.Op(verb, l.Names.Name, fault.ErrNotSet)
	case latchExpired:
		return fault.Op(verb, l.Names.Name, fault.ErrGone)
	}
	return nil
}

// changeKeys are the keys of every script that changes a latch.
func (l *latch) changeKeys(o *undo.Operation) []string {
	return []string{l.Names.Key, l.state, l.done, o.Record, keyspace.NumberKindKey(l.Names.Key)}
}
