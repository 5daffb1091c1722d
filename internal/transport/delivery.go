package transport

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/transport/nodes"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// delivery is the context of a command that is sent for a caller that may leave. It does not end
// while the command is in flight, because a borrowed client may be configured to ignore the end of
// a context, or to close its shared connection at a deadline. But rueidis checks the context once
// more just before it sends, when it has a connection: a command whose caller has left by then is
// withheld.
type delivery struct {
	context.Context // without an end

	state atomic.Int32
}

const (
	underWay int32 = iota // it has not reached a connection yet
	passed                // it is sent, or about to be
	canceled              // the caller has left
)

func newDelivery(ctx context.Context) *delivery {
	if ctx.Done() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	return &delivery{Context: ctx}
}

// Err implements [context.Context].
func (d *delivery) Err() error {
	d.state.CompareAndSwap(underWay, passed)
	if d.state.Load() == canceled {
		return outcome.ErrUnsent
	}
	return nil
}

// cancel withholds the command, and reports whether it was in time.
func (d *delivery) cancel() bool { return d.state.Swap(canceled) == underWay }

// stuck reports whether the command did not reach a connection.
func (d *delivery) stuck() bool { return d.state.Load() == underWay }

// detachedCall connects a caller with the goroutine that sends for it.
type detachedCall struct {
	done      chan rueidis.RedisResult // received by the caller, or by nobody
	abandoned chan int64               // the number of the abandoned slot
}

// sendDetached runs a call in its own goroutine, so that the caller can leave. If the caller
// leaves, its slot is abandoned until the answer arrives.
func (s *Sender) sendDetached(
	ctx context.Context, n *nodes.Node, slots *nodes.InFlight, slot nodes.Slot, end time.Time,
	send func(context.Context) rueidis.RedisResult,
) rueidis.RedisResult {
	call, d := detachedCall{make(chan rueidis.RedisResult), make(chan int64, 1)}, newDelivery(ctx)
	silent := time.NewTimer(time.Until(end))
	defer silent.Stop()
	s.Background(func() { s.runDetached(call, d, n, slots, slot, send) })
	err := outcome.ErrSilent
	select {
	case result := <-call.done:
		if failure := result.NonRedisError(); failure != nil && s.CancelsPromptly && d.stuck() {
			return rueidis.NewErrorResult(fmt.Errorf("%w: %w", outcome.ErrUnsent, failure))
		}
		return result
	case <-ctx.Done():
		err = ctx.Err()
	case <-silent.C:
	}
	if d.cancel() && s.CancelsPromptly {
		err = outcome.ErrUnsent
	}
	call.abandoned <- slots.Abandon()
	return rueidis.NewErrorResult(err)
}

// runDetached sends the command. It passes the result to the caller, or frees the slot that the
// caller has abandoned.
func (s *Sender) runDetached(
	call detachedCall, d *delivery, n *nodes.Node, slots *nodes.InFlight, slot nodes.Slot,
	send func(context.Context) rueidis.RedisResult,
) {
	sentIn, _ := n.Steady()
	result := send(d)
	if errors.Is(result.NonRedisError(), outcome.ErrUnsent) {
		slot = slot.Unheard()
	}
	s.heard(n, sentIn, result)
	select {
	case call.done <- result:
		slots.Finish(slot)
	case number := <-call.abandoned:
		slots.AnsweredLate(slot, number)
	}
}
