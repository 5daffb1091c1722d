package latchkey

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// Pauses between the attempts at one command, doubled each time.
const (
	firstPause = 5 * time.Millisecond
	longPause  = 250 * time.Millisecond
)

// errSilent means that a command got no answer in the time it was given.
var errSilent = errors.New("latchkey: no answer from the server")

// caller sends commands and repeats them while the server is in trouble. It may,
// because each of them is safe to send twice.
type caller struct {
	client rueidis.Client
	// prompt says that the rueidis client returns as soon as a context ends, which
	// only one that this package opened is known to do.
	prompt   bool
	patience time.Duration // for one command, and for its repetitions together
	clock    func() stamp
	slots    *slots
	reserved *slots // for renewals, releases and undo
	dialing  *dialing
	// closed says that the last command found the rueidis client closed.
	closed atomic.Bool

	mu      sync.Mutex
	sending sync.WaitGroup
	ending  bool // whatever is sent from now on is not waited for
}

// answer is what came of a call.
type answer struct {
	message rueidis.RedisMessage
	null    bool  // the reply was nil
	asked   stamp // just before the first attempt
	sent    stamp // just before the last attempt
	count   int   // what a release has left of the count, set by tenure.settle
	bare    bool  // of a plain command, which tells less than a script
	// doubt says that an attempt was sent whose outcome is unknown. Even after a
	// later answer it may yet be executed, late.
	doubt   bool
	doubtAt stamp // just before the last such attempt
}

// call sends a command until there is a definite answer, the server refuses for
// good, ctx ends, stop closes, or the patience of the client is over. An error
// together with doubt means that the command may have been executed.
func (c *caller) call(ctx context.Context, stop <-chan struct{}, cmd command, keys, args []string) (answer, error) {
	a := answer{asked: c.clock()}
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		if ctx.Err() != nil {
			return a, contextError(ctx)
		}
		a.sent = c.clock()
		message, err := c.once(ctx, cmd, keys, args).ToMessage()
		if ctx.Err() == nil && isContextError(err) {
			err = fmt.Errorf("%w: %v", errSilent, err) //nolint:errorlint // not the context of the caller
		}
		switch judge(err) {
		case answered:
			a.message, a.null = message, err != nil
			return a, nil
		case refused:
			return a, err
		case uncertain:
			a.doubt, a.doubtAt = true, a.sent
		}
		if ctx.Err() != nil {
			return a, errors.Join(contextError(ctx), dropContext(err))
		}
		if errors.Is(err, errGone) || c.clock().since(a.asked)+pause > c.patience {
			return a, err
		}
		if stopped := rest(ctx, stop, jitter(pause)); stopped != nil {
			return a, errors.Join(stopped, err)
		}
	}
}

// once sends a command one time and returns when it is answered or ctx ends.
func (c *caller) once(ctx context.Context, cmd command, keys, args []string) rueidis.RedisResult {
	if cmd.acks != nil {
		return c.onceConfirmed(ctx, cmd, slices.Clone(keys), slices.Clone(args))
	}
	lane := c.lane(cmd)
	probe, err := lane.take(ctx, c.patience)
	if err != nil {
		return rueidis.NewErrorResult(err)
	}
	era, steady := c.dialing.look()
	if probe || !c.prompt || !steady {
		keys, args := slices.Clone(keys), slices.Clone(args)
		return c.aside(ctx, lane, probe, c.patience, func(ctx context.Context) rueidis.RedisResult {
			return c.deliver(ctx, cmd, keys, args)
		})
	}
	sent := time.Now()
	result := cmd.send(ctx, c.client, keys, args)
	if ctx.Err() != nil && isContextError(result.Error()) {
		lane.abandon()
		return result
	}
	lane.give(sent)
	c.heard(era, result)
	return result
}

// onceConfirmed is once for a command that replicas have to confirm.
func (c *caller) onceConfirmed(ctx context.Context, cmd command, keys, args []string) rueidis.RedisResult {
	give, err := cmd.acks.place(ctx, c.patience)
	if err != nil {
		return rueidis.NewErrorResult(err)
	}
	lane := c.lane(cmd)
	probe, err := lane.take(ctx, c.patience)
	if err != nil {
		give()
		return rueidis.NewErrorResult(err)
	}
	return c.aside(ctx, lane, probe, max(c.patience, cmd.acks.patience()), func(ctx context.Context) rueidis.RedisResult {
		defer give()
		return c.deliver(ctx, cmd, keys, args)
	})
}

// deliver sends a command, unless a question that changes nothing finds the rueidis
// client closed. Of a command for which that came out on the way nobody knows how far
// it got; one that is held back here was never sent.
func (c *caller) deliver(ctx context.Context, cmd command, keys, args []string) rueidis.RedisResult {
	if c.closed.Load() {
		err := c.client.Do(ctx, c.client.B().Ping().Build()).Error()
		if errors.Is(err, rueidis.ErrClosing) {
			return rueidis.NewErrorResult(errGone)
		}
	}
	if cmd.acks != nil {
		return cmd.acks.send(ctx, c, cmd, keys, args)
	}
	return cmd.send(ctx, c.client, keys, args)
}

// lane keeps those who want a hold from standing in the way of those who have one.
func (c *caller) lane(cmd command) *slots {
	if cmd.tidies {
		return c.reserved
	}
	return c.slots
}

// heard notes whether the server is there, by the result of a command that was sent
// in an era of dialing.
func (c *caller) heard(era int64, result rueidis.RedisResult) {
	err := result.NonRedisError()
	if err != nil && !errors.Is(err, ErrNotReplicated) {
		c.dialing.broke()
	} else {
		c.dialing.answered(era)
	}
	if closed := errors.Is(err, rueidis.ErrClosing); c.closed.Load() != closed {
		c.closed.Store(closed)
	}
}

// detached returns a context for clean-up, which the end of ctx does not touch.
func (c *caller) detached(ctx context.Context) context.Context {
	if c.prompt {
		return context.Background() // our own client has no use for values
	}
	return context.WithoutCancel(ctx)
}

// send makes any other call under the same bounds.
func (c *caller) send(ctx context.Context, call func(context.Context) rueidis.RedisResult) rueidis.RedisResult {
	probe, err := c.slots.take(ctx, c.patience)
	if err != nil {
		return rueidis.NewErrorResult(err)
	}
	return c.aside(ctx, c.slots, probe, c.patience, call)
}

// aside runs a call in a goroutine of its own, so that the caller can leave: a
// borrowed client may be set up to overlook the end of a context, or to close its
// shared connection at a deadline. The slot of a caller that leaves is abandoned
// until the answer comes.
func (c *caller) aside(
	ctx context.Context, lane *slots, probe bool, patience time.Duration, send func(context.Context) rueidis.RedisResult,
) rueidis.RedisResult {
	done := make(chan rueidis.RedisResult) // taken by the caller, or by nobody
	left := make(chan int64, 1)            // the number of the departure
	c.background(func() {
		sent := time.Now()
		era, _ := c.dialing.look()
		result := send(context.WithoutCancel(ctx))
		c.heard(era, result)
		select {
		case done <- result:
			lane.give(sent)
		case number := <-left:
			lane.settle(number, sent)
		}
		if probe {
			lane.probed()
		}
	})
	silence := time.NewTimer(patience)
	defer silence.Stop()
	var err error
	select {
	case result := <-done:
		return result
	case <-ctx.Done():
		err = ctx.Err()
	case <-silence.C:
		err = errSilent
	}
	left <- lane.abandon()
	return rueidis.NewErrorResult(err)
}

// background runs a goroutine that finish waits for, unless that has begun.
func (c *caller) background(run func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending {
		go run()
		return
	}
	c.sending.Go(run)
}

// finish waits for the goroutines of calls whose callers may have left.
func (c *caller) finish() {
	c.mu.Lock()
	c.ending = true
	c.mu.Unlock()
	c.sending.Wait()
}

// rest waits, and tells why if it was cut short.
func rest(ctx context.Context, stop <-chan struct{}, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-stop:
		return ErrClosed
	case <-ctx.Done():
		return contextError(ctx)
	}
}

// jitter spreads d over its second half, so that clients that failed together do
// not return together.
func jitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d/2+1)
}

// contextError is the error of a context that ended, with its cause.
func contextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(err, cause) {
		cause = nil
	}
	return &endedContextError{err, cause}
}

// endedContextError is the end of the caller's context. Its cause may be any error, one of
// this package or of the server included, and is no answer to what was asked.
type endedContextError struct{ err, cause error }

func (e *endedContextError) Error() string {
	if e.cause == nil {
		return e.err.Error()
	}
	return e.err.Error() + "\n" + e.cause.Error()
}

// Unwrap lets the caller match both.
func (e *endedContextError) Unwrap() []error {
	if e.cause == nil {
		return []error{e.err}
	}
	return []error{e.err, e.cause}
}

// ofContext reports whether the caller's context ended.
func ofContext(err error) bool {
	var failure *endedContextError
	return errors.As(err, &failure)
}

func isContextError(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// dropContext removes what the context's own error already says.
func dropContext(err error) error {
	if isContextError(err) {
		return nil
	}
	return err
}
