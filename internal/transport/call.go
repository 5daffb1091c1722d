package transport

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/transport/nodes"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
	"github.com/latchkey-go/latchkey/internal/transport/retry"
)

// Answer is the outcome of a call.
type Answer struct {
	Message   rueidis.RedisMessage // the reply
	Null      bool                 // the reply was nil
	FirstSent lease.Stamp          // just before the first attempt
	Sent      lease.Stamp          // just before the last attempt
	Plain     bool                 // of a plain command, which returns less than a script
	// KeysOmitted is why optional keys were left out, or nil: see [Command.OptionalKeys].
	KeysOmitted error
	// Doubt reports whether an attempt was sent whose outcome is unknown. It may still be executed
	// late, even after a later answer.
	Doubt   bool
	DoubtAt lease.Stamp // just before the last such attempt
	// DoubtGeneration is the generation in which all such attempts were sent, or NoGeneration.
	DoubtGeneration nodes.Generation
}

// Call sends a command until there is a definite answer, the server refuses for good, ctx ends,
// stop closes, or the patience of the client is over. The error is the refusal, ErrClosed, or an
// ErrUnavailable. An error together with Doubt means that the command may have been executed.
func (s *Sender) Call(ctx context.Context, stop <-chan struct{}, c Call) (Answer, error) {
	return s.CallOn(ctx, stop, Terms{Patience: s.Patience}, c)
}

// Terms say how long a call may take, in addition to its context.
type Terms struct {
	// Patience is for a slot among the commands in flight, the answer, and the repetitions
	// together.
	Patience time.Duration
	// Waits means that the caller waits on anyway. On a working connection the patience may then be
	// exceeded by the time that it takes to notice a silent server.
	Waits bool

	end time.Time // of the patience; set when the call begins
}

// CallOn is Call for as long as its terms say.
func (s *Sender) CallOn(ctx context.Context, stop <-chan struct{}, on Terms, c Call) (Answer, error) {
	began, now := s.now()
	a := Answer{FirstSent: began, Sent: began}
	on.end = now.Add(on.Patience)
	var said error
	for pause := retry.FirstPause; ; pause = min(2*pause, retry.LongPause) {
		if ctx.Err() != nil {
			return a, outcome.Unavailable(fault.ContextError(ctx))
		}
		if pause > retry.FirstPause {
			a.Sent, _ = s.now()
		}
		message, sentIn, err := s.try(ctx, on, c)
		err = silentOr(ctx, err)
		if fewer := c.Cmd.withoutOptional(c.Keys, err); fewer != nil && a.KeysOmitted == nil {
			c.Keys, a.KeysOmitted = fewer, err
			continue
		}
		switch outcome.Classify(err) {
		case outcome.Answered:
			a.Message, a.Null, a.Plain = message, err != nil, c.Cmd.Text == ""
			return a, nil
		case outcome.Refused:
			return a, err
		}
		err, said = a.failed(err, said, sentIn)
		failed, _ := s.now()
		left := on.Patience - failed.Since(a.FirstSent)
		if err = restBeforeRetry(ctx, stop, pause, left, outcome.Explained(err)); err != nil {
			return a, err
		}
	}
}

// failed notes an attempt that may be repeated. said is what the server has said so far, or why it
// cannot be reached: that says more than that a later attempt was not sent. It returns the error of
// the call if there is no further attempt, and what is said now.
func (a *Answer) failed(err, said error, sentIn nodes.Generation) (of, saidNow error) {
	switch outcome.Classify(err) {
	case outcome.Uncertain:
		a.leaveInDoubt(err, sentIn)
		return err, said
	case outcome.NotSent:
		if errors.Is(err, outcome.ErrClientClosed) {
			return err, said
		}
		withoutReason := err == outcome.ErrUnsent //nolint:errorlint // others have one
		if said != nil && (withoutReason || outcome.Classify(said) == outcome.TryLater) {
			return said, said
		}
	}
	return err, err
}

// silentOr returns err, or ErrSilent if err is the end of a context other than the caller's.
func silentOr(ctx context.Context, err error) error {
	if ctx.Err() == nil && outcome.IsContextError(err) {
		return fmt.Errorf("%w: %v", outcome.ErrSilent, err) //nolint:errorlint // not the context of the caller
	}
	return err
}

// leaveInDoubt records that the outcome of the last attempt is unknown.
func (a *Answer) leaveInDoubt(err error, sentIn nodes.Generation) {
	switch {
	case outcome.IsReply(err): // by a proxy, behind which the command may be executed later
		sentIn = nodes.NoGeneration
	case a.Doubt:
		sentIn = a.DoubtGeneration.Common(sentIn)
	}
	a.Doubt, a.DoubtAt, a.DoubtGeneration = true, a.Sent, sentIn
}

// restBeforeRetry rests after an attempt that failed with err. It returns the error of the call if
// there is no further attempt: because ctx ends, stop closes, the rueidis client is closed, or no
// time is left for a pause and, after it, an answer.
func restBeforeRetry(ctx context.Context, stop <-chan struct{}, pause, left time.Duration, err error) error {
	if ctx.Err() != nil {
		if outcome.IsContextError(err) {
			err = outcome.ErrSilent
		}
		return outcome.Unavailable(errors.Join(err, fault.ContextError(ctx)))
	}
	if errors.Is(err, outcome.ErrClientClosed) || 2*pause > left {
		return outcome.Unavailable(err)
	}
	if stopped := retry.Rest(ctx, stop, retry.Jitter(pause)); stopped != nil {
		return outcome.StoppedAfter(err, stopped)
	}
	return nil
}

// SendOnce sends a command once, and returns the outcome when it is answered or ctx ends. ctx must
// have a deadline.
func (s *Sender) SendOnce(ctx context.Context, c Call) rueidis.RedisResult {
	deadline, _ := ctx.Deadline()
	result, _ := s.attempt(ctx, s.node(c.Keys[0]), Terms{end: deadline}, c)
	return result
}

// try sends a command once, in a group or alone.
func (s *Sender) try(
	ctx context.Context, on Terms, c Call,
) (message rueidis.RedisMessage, sentIn nodes.Generation, err error) {
	n := s.node(c.Keys[0])
	if s.mayGoTogether(&c) {
		defer s.grouping.underWay.Add(-1)
		if s.grouping.underWay.Add(1) >= groupFrom {
			if r := s.tryTogether(ctx, n, on, c); !r.alone {
				return r.message, r.sentIn, r.err
			}
		}
	}
	result, sentIn := s.attempt(ctx, n, on, c)
	message, err = result.ToMessage()
	return message, sentIn, err
}

// attempt sends a command once, alone, and returns when it is answered, ctx ends, or the time is
// over. sentIn is NoGeneration if the command may be sent after that, or over another connection.
func (s *Sender) attempt(
	ctx context.Context, n *nodes.Node, on Terms, c Call,
) (result rueidis.RedisResult, sentIn nodes.Generation) {
	cmd := c.Cmd.firstTo(n)
	if cmd.replication != nil {
		return s.confirmed(ctx, n, on.end, cmd, slices.Clone(c.Keys), slices.Clone(c.Args)), nodes.NoGeneration
	}
	slots := cmd.slots(n)
	slot, err := slots.Reserve(ctx, on.end)
	if err != nil {
		return rueidis.NewErrorResult(err), nodes.NoGeneration
	}
	sentIn, steady := n.Steady()
	within := s.direct(ctx, on)
	if slot.Probe || !steady || within == nil {
		keys, args := slices.Clone(c.Keys), slices.Clone(c.Args)
		return s.sendDetached(ctx, n, slots, slot, on.end, func(ctx context.Context) rueidis.RedisResult {
			return s.deliver(ctx, cmd, keys, args)
		}), nodes.NoGeneration
	}
	result = cmd.Send(within, s.Client, c.Keys, c.Args)
	if within.Err() != nil && outcome.IsContextError(result.Error()) {
		slots.Abandon()
		return result, sentIn
	}
	slots.Finish(slot)
	s.heard(n, sentIn, result)
	return result, sentIn
}

// direct returns the context for sending a command on a working connection, such that rueidis
// returns in time; or nil if there is none.
func (s *Sender) direct(ctx context.Context, on Terms) context.Context {
	deadline, bounded := ctx.Deadline()
	switch {
	case !s.CancelsPromptly:
		return nil
	case on.Waits, bounded && !deadline.After(on.end):
		return ctx
	case ctx.Done() == nil:
		return s.ends.context(on.end, s.Patience)
	}
	return nil
}

// confirmed is attempt for a command that replicas have to confirm. Once the command has a slot,
// the replicas get their full time, since the outcome would be in doubt otherwise.
func (s *Sender) confirmed(
	ctx context.Context, n *nodes.Node, end time.Time, cmd Command, keys, args []string,
) rueidis.RedisResult {
	free, err := cmd.replication.reserve(ctx, n, end)
	if err != nil {
		return rueidis.NewErrorResult(err)
	}
	slots := cmd.slots(n)
	slot, err := slots.Reserve(ctx, end)
	if err != nil {
		free()
		return rueidis.NewErrorResult(err)
	}
	slot = slot.Unheard() // it has its own connection
	if least := time.Now().Add(cmd.replication.Patience()); end.Before(least) {
		end = least
	}
	return s.sendDetached(ctx, n, slots, slot, end, func(ctx context.Context) rueidis.RedisResult {
		defer free()
		return s.deliver(ctx, cmd, keys, args)
	})
}

// deliver sends a command, unless a harmless query finds the rueidis client closed. If that turns
// out while a command is in flight, nobody knows whether it was executed. A command that is
// withheld here was never sent.
func (s *Sender) deliver(ctx context.Context, cmd Command, keys, args []string) rueidis.RedisResult {
	if s.closed.Load() {
		err := s.Client.Do(context.WithoutCancel(ctx), s.Client.B().Exists().Key(keys[0]).Build()).Error()
		if errors.Is(err, rueidis.ErrClosing) {
			return rueidis.NewErrorResult(outcome.ErrClientClosed)
		}
	}
	if cmd.replication == nil {
		return cmd.Send(ctx, s.Client, keys, args)
	}
	if ctx.Err() != nil { // this marks a delivery as passed: rueidis gets contexts derived from it
		return rueidis.NewErrorResult(ctx.Err())
	}
	return cmd.replication.send(ctx, s, cmd, keys, args)
}
