package transport

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// Pauses between the attempts at one command, doubled each time.
const (
	FirstPause = 5 * time.Millisecond
	LongPause  = 250 * time.Millisecond
)

// ErrSilent means that a command got no answer in the time it was given.
var ErrSilent = errors.New("latchkey: no answer from the server")

// Sender sends commands and repeats them while the server is in trouble. It may,
// because each of them is safe to send twice.
type Sender struct {
	Client rueidis.Client // to which it sends
	// CancelsPromptly says that the rueidis client returns as soon as a context ends, and sends
	// nothing for one that has ended, which only one that this package opened is known
	// to do.
	CancelsPromptly bool
	Patience        time.Duration // for one command, and for its repetitions together
	Clock           func() Stamp  // by which it counts time, or nil for [SystemClock]
	Topology        *Topology     // to what it sends
	ends            sharedDeadline
	detachedCalls   sync.Pool // each a *detachedCall
	// closed says that the last command found the rueidis client closed.
	closed atomic.Bool

	mu      sync.Mutex
	sending sync.WaitGroup
	ending  bool // whatever is sent from now on is not waited for
}

// Answer is what came of a call.
type Answer struct {
	Message rueidis.RedisMessage // the reply
	Null    bool                 // the reply was nil
	Asked   Stamp                // just before the first attempt
	Sent    Stamp                // just before the last attempt
	Plain   bool                 // of a plain command, which tells less than a script
	// Spared is why keys that may be left out were, or nil: see [Command.Sparing].
	Spared error
	// Doubt says that an attempt was sent whose outcome is unknown. Even after a
	// later answer it may yet be executed, late.
	Doubt   bool
	DoubtAt Stamp // just before the last such attempt
	// DoubtGeneration is the generation in which all such attempts were sent, or NoGeneration.
	DoubtGeneration Generation
}

// limit is when the time of a call is over, which counts from its beginning: for a slot
// among the commands in flight, the answer, and the repetitions.
type limit struct {
	at time.Time
	// loose says that the caller waits on anyway. On a connection that is up it may then
	// be exceeded by as long as it takes to notice that the server is silent.
	loose bool
}

// Call sends a command until there is a definite answer, the server refuses for
// good, ctx ends, stop closes, or the patience of the client is over. The error is the
// refusal, ErrClosed, or an ErrUnavailable. An error together with doubt means that the
// command may have been executed.
func (s *Sender) Call(ctx context.Context, stop <-chan struct{}, cmd Command, keys, args []string) (Answer, error) {
	return s.CallOn(ctx, stop, Terms{Patience: s.Patience}, cmd, keys, args)
}

// Terms say for how long a call goes on, besides its context.
type Terms struct {
	Patience time.Duration // for the command and its repetitions together
	Waits    bool          // the caller goes on when the patience is over
}

// CallOn sends a command for as long as its terms say, and ends like a call on the terms of
// the client.
func (s *Sender) CallOn(ctx context.Context, stop <-chan struct{}, on Terms, cmd Command, keys, args []string) (Answer, error) {
	asked, now := s.now()
	a := Answer{Asked: asked, Sent: asked}
	end := limit{now.Add(on.Patience), on.Waits}
	var said error // by the server, which tells more than that a later attempt was not sent
	for pause := FirstPause; ; pause = min(2*pause, LongPause) {
		if ctx.Err() != nil {
			return a, Unavailable(ContextError(ctx))
		}
		if pause > FirstPause {
			a.Sent, _ = s.now()
		}
		message, sentIn, err := s.try(ctx, end, cmd, keys, args)
		err = silentOr(ctx, err)
		if fewer := cmd.spared(keys, err); fewer != nil && a.Spared == nil {
			keys, a.Spared = fewer, err
			continue
		}
		switch Classify(err) {
		case Answered:
			a.Message, a.Null, a.Plain = message, err != nil, cmd.Text == ""
			return a, nil
		case Refused:
			return a, err
		case TryLater:
			said = err
		case NotSent:
			if said != nil && !errors.Is(err, ErrClientClosed) {
				err = said
			}
		case Uncertain:
			a.noteDoubt(sentIn)
		}
		failed, _ := s.now()
		left := on.Patience - failed.Since(a.Asked)
		if err = restBeforeRetry(ctx, stop, pause, left, explained(err)); err != nil {
			return a, err
		}
	}
}

// now returns the time by which the sender counts, and that of the machine, for timers.
func (s *Sender) now() (Stamp, time.Time) {
	now := time.Now()
	if s.Clock == nil {
		return stampOf(now), now
	}
	return s.Clock(), now
}

// silentOr returns err, or ErrSilent if it is the end of a context but not that of the caller.
func silentOr(ctx context.Context, err error) error {
	if ctx.Err() == nil && isContextError(err) {
		return fmt.Errorf("%w: %v", ErrSilent, err) //nolint:errorlint // not the context of the caller
	}
	return err
}

// noteDoubt notes that the outcome of the last attempt is unknown.
func (a *Answer) noteDoubt(sentIn Generation) {
	if a.Doubt {
		sentIn = a.DoubtGeneration.Common(sentIn)
	}
	a.Doubt, a.DoubtAt, a.DoubtGeneration = true, a.Sent, sentIn
}

// restBeforeRetry rests after an attempt that failed with err. It returns the error of the
// call if there is no further attempt: because ctx ends, stop closes, the rueidis client is
// closed, or the pause is longer than the time that is left.
func restBeforeRetry(ctx context.Context, stop <-chan struct{}, pause, left time.Duration, err error) error {
	if ctx.Err() != nil {
		if isContextError(err) {
			err = ErrSilent
		}
		return Unavailable(errors.Join(err, ContextError(ctx)))
	}
	if errors.Is(err, ErrClientClosed) || pause > left {
		return Unavailable(err)
	}
	if stopped := Rest(ctx, stop, Jitter(pause)); stopped != nil {
		return StoppedAfter(err, stopped)
	}
	return nil
}

// SendOnce sends a command one time, and returns what came of that when it is answered or ctx
// ends. ctx must have a deadline.
func (s *Sender) SendOnce(ctx context.Context, cmd Command, keys, args []string) rueidis.RedisResult {
	deadline, _ := ctx.Deadline()
	result, _ := s.attempt(ctx, s.node(keys[0]), limit{at: deadline}, cmd, keys, args)
	return result
}

// attempt sends a command one time and returns when it is answered, ctx ends, or the
// time is over. sentIn is NoGeneration if more may be sent for it afterwards, or over another
// connection.
func (s *Sender) attempt(ctx context.Context, n *Node, end limit, cmd Command, keys, args []string) (result rueidis.RedisResult, sentIn Generation) {
	cmd = n.firstAsText(cmd)
	if cmd.replication != nil {
		return s.confirmed(ctx, n, end.at, cmd, slices.Clone(keys), slices.Clone(args)), NoGeneration
	}
	slots := n.slotsFor(cmd)
	slot, err := slots.reserve(ctx, end.at)
	if err != nil {
		return rueidis.NewErrorResult(err), NoGeneration
	}
	sentIn, steady := n.steady()
	within := s.direct(ctx, end)
	if slot.probe || !steady || within == nil {
		keys, args := slices.Clone(keys), slices.Clone(args)
		return s.sendDetached(ctx, n, slots, slot, end.at, func(ctx context.Context) rueidis.RedisResult {
			return s.deliver(ctx, cmd, keys, args)
		}), NoGeneration
	}
	result = cmd.Send(within, s.Client, keys, args)
	if within.Err() != nil && isContextError(result.Error()) {
		slots.abandon()
		return result, sentIn
	}
	slots.finish(slot)
	s.heard(n, sentIn, result)
	return result, sentIn
}

// direct returns the context with which a command is sent on a connection that is up, so
// that rueidis returns in time; or nil if that does not do it.
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

// confirmed is attempt for a command that replicas have to confirm. Once it has a place
// they have the time that they were given, since it would be in doubt otherwise.
func (s *Sender) confirmed(ctx context.Context, n *Node, end time.Time, cmd Command, keys, args []string) rueidis.RedisResult {
	free, err := cmd.replication.reserve(ctx, n, end)
	if err != nil {
		return rueidis.NewErrorResult(err)
	}
	slots := n.slotsFor(cmd)
	slot, err := slots.reserve(ctx, end)
	if err != nil {
		free()
		return rueidis.NewErrorResult(err)
	}
	slot = slot.unheard() // it has a connection of its own
	if least := time.Now().Add(cmd.replication.Patience()); end.Before(least) {
		end = least
	}
	return s.sendDetached(ctx, n, slots, slot, end, func(ctx context.Context) rueidis.RedisResult {
		defer free()
		return s.deliver(ctx, cmd, keys, args)
	})
}

// deliver sends a command, unless a question that changes nothing finds the rueidis
// client closed. Of a command for which that came out on the way nobody knows how far
// it got; one that is held back here was never sent.
func (s *Sender) deliver(ctx context.Context, cmd Command, keys, args []string) rueidis.RedisResult {
	if s.closed.Load() {
		err := s.Client.Do(context.WithoutCancel(ctx), s.Client.B().Exists().Key(keys[0]).Build()).Error()
		if errors.Is(err, rueidis.ErrClosing) {
			return rueidis.NewErrorResult(ErrClientClosed)
		}
	}
	if cmd.replication == nil {
		return cmd.Send(ctx, s.Client, keys, args)
	}
	if ctx.Err() != nil { // it passes: rueidis is given contexts that are made of this one
		return rueidis.NewErrorResult(ctx.Err())
	}
	return cmd.replication.send(ctx, s, cmd, keys, args)
}

// node returns the node that serves a key, as far as is known.
func (s *Sender) node(key string) *Node {
	if !s.Topology.Cluster {
		return s.Topology.common
	}
	n := s.Topology.Serving(KeySlot(key))
	_, steady := n.steady()
	s.keepKnown(!steady)
	return n
}

// heard notes whether a node is there, by the result of a command that was sent in a
// generation of the connection.
func (s *Sender) heard(n *Node, sentIn Generation, result rueidis.RedisResult) {
	err := result.NonRedisError()
	switch {
	case errors.Is(err, errUnsent): // which says nothing new
		return
	case err != nil && !errors.Is(err, ErrNotReplicated):
		n.connections.broke()
	default:
		n.connections.answered(sentIn)
	}
	if closed := errors.Is(err, rueidis.ErrClosing); s.closed.Load() != closed {
		s.closed.Store(closed)
	}
}

// Detached returns a context for clean-up, which does not end with ctx, and has its values if
// the rueidis client may want them.
func (s *Sender) Detached(ctx context.Context) context.Context {
	if s.CancelsPromptly {
		return context.Background() // our own client has no use for values
	}
	return context.WithoutCancel(ctx)
}

// send makes any other call to a node under the same bounds.
func (s *Sender) send(ctx context.Context, n *Node, call func(context.Context) rueidis.RedisResult) rueidis.RedisResult {
	end := time.Now().Add(s.Patience)
	slot, err := n.ordinary.reserve(ctx, end)
	if err != nil {
		return rueidis.NewErrorResult(err)
	}
	return s.sendDetached(ctx, n, n.ordinary, slot, end, call)
}
