package transport

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// errUnsent means that a command waited for a connection and was not sent.
var errUnsent = errors.New("latchkey: not sent: there is no connection")

// delivery is the context of a command that is sent on behalf of a caller who may leave.
// It does not end while the command is under way, because a borrowed client may be set up
// to overlook the end of a context, or to close its shared connection at a deadline. But
// rueidis looks at a context once more when it has a connection, just before it sends: a
// command whose caller has left by then is withheld.
type delivery struct {
	context.Context // without an end

	state atomic.Int32
}

const (
	underWay int32 = iota // to the connection
	passed                // it is sent, or about to be
	deserted              // the caller has left
)

func newDelivery(ctx context.Context) *delivery {
	if ctx.Done() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	return &delivery{Context: ctx}
}

// Err is part of [context.Context].
func (d *delivery) Err() error {
	d.state.CompareAndSwap(underWay, passed)
	if d.state.Load() == deserted {
		return errUnsent
	}
	return nil
}

// desert has the command withheld, and reports whether it was in time for that.
func (d *delivery) desert() bool { return d.state.Swap(deserted) == underWay }

// stuck reports whether the command did not come as far as a connection.
func (d *delivery) stuck() bool { return d.state.Load() == underWay }

// errand is how a caller and the goroutine that sends on its behalf hear of each other. It
// can be used again when the caller has got the result: the goroutine has let go of it then.
type errand struct {
	done    chan rueidis.RedisResult // taken by the caller, or by nobody
	left    chan int64               // the number of the departure
	silence *time.Timer
}

// errand returns one whose silence begins at end.
func (s *Sender) errand(end time.Time) *errand {
	if e, again := s.errands.Get().(*errand); again {
		e.silence.Reset(time.Until(end))
		return e
	}
	return &errand{make(chan rueidis.RedisResult), make(chan int64, 1), time.NewTimer(time.Until(end))}
}

// sendDetached runs a call in a goroutine of its own, so that the caller can leave. The slot of
// a caller that leaves is abandoned until the answer comes.
func (s *Sender) sendDetached(
	ctx context.Context, n *Node, lane *inflight, slot ticket, end time.Time, send func(context.Context) rueidis.RedisResult,
) rueidis.RedisResult {
	e := s.errand(end)
	d := newDelivery(ctx)
	s.Background(func() {
		sentIn, _ := n.connections.look()
		result := send(d)
		if errors.Is(result.NonRedisError(), errUnsent) {
			slot = slot.unheard()
		}
		s.heard(n, sentIn, result)
		select {
		case e.done <- result:
			lane.finish(slot)
		case number := <-e.left:
			lane.answeredLate(slot, number)
		}
	})
	err := ErrSilent
	select {
	case result := <-e.done:
		e.silence.Stop() // before somebody else sets it
		s.errands.Put(e)
		if failure := result.NonRedisError(); failure != nil && s.CancelsPromptly && d.stuck() {
			return rueidis.NewErrorResult(fmt.Errorf("%w: %w", errUnsent, failure))
		}
		return result
	case <-ctx.Done():
		err = ctx.Err()
	case <-e.silence.C:
	}
	e.silence.Stop()
	if d.desert() && s.CancelsPromptly {
		err = errUnsent
	}
	e.left <- lane.abandon()
	return rueidis.NewErrorResult(err)
}

// Background runs a function in a goroutine of its own, and Finish waits for it unless
// Finish has begun.
func (s *Sender) Background(run func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending {
		go run()
		return
	}
	s.sending.Go(run)
}

// Finish waits for the goroutines of calls whose callers may have left. What is sent later is
// not waited for.
func (s *Sender) Finish() {
	s.mu.Lock()
	s.ending = true
	s.mu.Unlock()
	s.sending.Wait()
}

// sharedDeadline makes contexts that end when the time of a call is over, or a little
// later: those which begin together share one, so that it costs the single call nothing.
type sharedDeadline struct{ latest atomic.Pointer[endingContext] }

type endingContext struct {
	context.Context

	at  time.Time
	end context.CancelFunc
}

// context returns a context that ends at a time, or later by a sixteenth of the patience
// at most.
func (s *sharedDeadline) context(at time.Time, patience time.Duration) context.Context {
	if c := s.latest.Load(); c != nil && !c.at.Before(at) {
		return c
	}
	c := &endingContext{at: at.Add(patience / 16)}
	c.Context, c.end = context.WithDeadline(context.Background(), c.at)
	s.latest.Store(c)
	return c
}
