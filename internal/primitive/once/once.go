// Package once has the Once: work that succeeds once for each name. One owner runs it under a
// fenced hold, and the others wait for its result.
package once

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/engine/object"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// MaxResult is the maximum length, in bytes, of a result.
const MaxResult = 64 << 10

// Once is the inside of a Once.
type Once struct {
	object.Object

	runs *acquire.Lock // its holds are runs
	ttl  string        // of a result, in ms; "" forever
}

// New returns the Once with that name, whose results are remembered for ttl.
func New(c *core.Parts, name string, ttl time.Duration) Once {
	o := object.New(c, keyspace.KindOnce, name, Channel)
	text, err := object.TTLText("how long a success is remembered,", ttl)
	if o.Names.Invalid == nil {
		o.Names.Invalid = err
	}
	return Once{Object: o, runs: acquire.LockOf(c, Spec, o.Names), ttl: text}
}

// Channel is the channel for those that wait for a run to end.
func Channel(key string) string { return "latchkey:" + keyspace.Tag(key) + ":once" }

// Do returns the result of the success, and if there is none runs fn, unless another owner does.
func (o *Once) Do(
	ctx context.Context, fn func(context.Context) ([]byte, error), settings []request.Setting,
) (result []byte, err error) {
	const verb = "do"
	if fn == nil {
		return nil, fault.Op(verb, o.Names.Name, fault.ErrNoFunction)
	}
	h, err := o.runs.Acquire(ctx, verb, true, settings)
	var success *success
	switch {
	case errors.As(err, &success):
		return []byte(success.result), nil
	case err != nil:
		return nil, err
	}
	err = h.During(ctx, func(ctx context.Context) error {
		if result, err = fn(ctx); err != nil {
			return err
		}
		if len(result) > MaxResult {
			return fault.Op(verb, o.Names.Name, fault.Invalid("the result has %d bytes, more than %d", len(result), MaxResult))
		}
		runOf(h).succeeds(h, o.ttl, result)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return result, nil
}

// HandleFrom returns the hold of the run that ctx carries, or nil.
func (o *Once) HandleFrom(ctx context.Context) *hold.Handle { return o.runs.HandleFrom(ctx) }

// Result returns the result of the success, and reports whether there is one.
func (o *Once) Result(ctx context.Context) (result []byte, done bool, err error) {
	_, text, done, err := o.look(ctx, "result")
	if !done {
		return nil, false, err
	}
	return []byte(text), true, nil
}

// look returns the token of the run that succeeded, and its result.
func (o *Once) look(ctx context.Context, verb string) (token, result string, done bool, err error) {
	a, err := o.Query(ctx, verb, script.NewCall(script.OnceLook, o.Names.Alone()))
	if err != nil || a.Null {
		return "", "", false, err
	}
	words, err := a.Message.AsStrSlice()
	if err != nil || len(words) != 2 {
		return "", "", false, fault.Op(verb, o.Names.Name, errors.Join(script.ErrReply, err))
	}
	return words[0], words[1], true, nil
}

// Forget forgets the success that it finds.
func (o *Once) Forget(ctx context.Context) error {
	const verb = "forget"
	token, _, done, err := o.look(ctx, verb)
	if !done {
		return err
	}
	a, err := o.Send(ctx, script.NewCall(script.OnceForget, o.Names.Alone(), token))
	if err != nil {
		return fault.Op(verb, o.Names.Name, o.Explain(ctx, transport.Answer{Doubt: a.Doubt}, err)...)
	}
	return nil
}
