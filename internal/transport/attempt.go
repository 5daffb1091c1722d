package transport

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/transport/nodes"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// SendOnce sends a command once, and returns the outcome when it is answered or ctx ends. ctx must
// have a deadline.
func (s *Sender) SendOnce(ctx context.Context, cmd Command, keys, args []string) rueidis.RedisResult {
	deadline, _ := ctx.Deadline()
	result, _ := s.attempt(ctx, s.node(keys[0]), limit{at: deadline}, cmd, keys, args)
	return result
}

// try sends a command once, in a group or alone.
func (s *Sender) try(
	ctx context.Context, end limit, cmd Command, keys, args []string,
) (message rueidis.RedisMessage, sentIn nodes.Generation, err error) {
	n := s.node(keys[0])
	if s.mayGoTogether(&cmd, args) {
		defer s.grouping.underWay.Add(-1)
		if s.grouping.underWay.Add(1) >= groupFrom {
			if r := s.tryTogether(ctx, n, end, cmd, keys, args); !r.alone {
				return r.message, r.sentIn, r.err
			}
		}
	}
	result, sentIn := s.attempt(ctx, n, end, cmd, keys, args)
	message, err = result.ToMessage()
	return message, sentIn, err
}

// attempt sends a command once, alone, and returns when it is answered, ctx ends, or the time is
// over. sentIn is NoGeneration if the command may be sent after that, or over another connection.
func (s *Sender) attempt(
	ctx context.Context, n *nodes.Node, end limit, cmd Command, keys, args []string,
) (result rueidis.RedisResult, sentIn nodes.Generation) {
	cmd = cmd.firstTo(n)
	if cmd.replication != nil {
		return s.confirmed(ctx, n, end.at, cmd, slices.Clone(keys), slices.Clone(args)), nodes.NoGeneration
	}
	slots := cmd.slots(n)
	slot, err := slots.Reserve(ctx, end.at)
	if err != nil {
		return rueidis.NewErrorResult(err), nodes.NoGeneration
	}
	sentIn, steady := n.Steady()
	within := s.direct(ctx, end)
	if slot.Probe || !steady || within == nil {
		keys, args := slices.Clone(keys), slices.Clone(args)
		return s.sendDetached(ctx, n, slots, slot, end.at, func(ctx context.Context) rueidis.RedisResult {
			return s.deliver(ctx, cmd, keys, args)
		}), nodes.NoGeneration
	}
	result = cmd.Send(within, s.Client, keys, args)
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
func (s *Sender) direct(ctx context.Context, end limit) context.Context {
	deadline, bounded := ctx.Deadline()
	switch {
	case !s.CancelsPromptly:
		return nil
	case end.loose, bounded && !deadline.After(end.at):
		return ctx
	case ctx.Done() == nil:
		return s.ends.context(end.at, s.Patience)
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
