package transport

import (
	"context"
	"errors"
	"fmt"
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

// limit is when the time of a call is over. It counts from the beginning of the call, for a slot
// among the commands in flight, the answer, and the repetitions.
type limit struct {
	at time.Time
	// loose means that the caller waits on anyway. On a working connection the limit may then be
	// exceeded by the time that it takes to notice a silent server.
	loose bool
}

// Call sends a command until there is a definite answer, the server refuses for good, ctx ends,
// stop closes, or the patience of the client is over. The error is the refusal, ErrClosed, or an
// ErrUnavailable. An error together with Doubt means that the command may have been executed.
func (s *Sender) Call(ctx context.Context, stop <-chan struct{}, cmd Command, keys, args []string) (Answer, error) {
	return s.CallOn(ctx, stop, Terms{Patience: s.Patience}, cmd, keys, args)
}

// Terms say how long a call may take, in addition to its context.
type Terms struct {
	Patience time.Duration // for the command and its repetitions together
	Waits    bool          // the caller waits on when the patience is over
}

// CallOn is Call for as long as its terms say.
func (s *Sender) CallOn(
	ctx context.Context, stop <-chan struct{}, on Terms, cmd Command, keys, args []string,
) (Answer, error) {
	began, now := s.now()
	a := Answer{FirstSent: began, Sent: began}
	end := limit{now.Add(on.Patience), on.Waits}
	var said error
	for pause := retry.FirstPause; ; pause = min(2*pause, retry.LongPause) {
		if ctx.Err() != nil {
			return a, outcome.Unavailable(fault.ContextError(ctx))
		}
		if pause > retry.FirstPause {
			a.Sent, _ = s.now()
		}
		message, sentIn, err := s.try(ctx, end, cmd, keys, args)
		err = silentOr(ctx, err)
		if fewer := cmd.withoutOptional(keys, err); fewer != nil && a.KeysOmitted == nil {
			keys, a.KeysOmitted = fewer, err
			continue
		}
		switch outcome.Classify(err) {
		case outcome.Answered:
			a.Message, a.Null, a.Plain = message, err != nil, cmd.Text == ""
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
