package transport

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/transport/nodes"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// waitSlack is how late the answer to WAIT may be: the server checks its clock ten times a second.
const waitSlack = 250 * time.Millisecond

// Replication makes replicas confirm commands.
type Replication struct {
	Min     int           // how many replicas have to confirm a command
	Timeout time.Duration // how long to wait for them
	ID      string        // of the client
	Touch   Command       // writes to those keys that exist, and returns how many do
	Waits   int           // how many commands may wait for the replicas of one node
}

// Check tries WAIT on the server before the first lock does, and returns what its error means. A
// nil Replication means no replication, and needs no check.
func (r *Replication) Check(s *Sender) error {
	if r == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.Patience)
	defer cancel()
	key := keyspace.ClientKey(r.ID, r.ID, "ack")
	return waitRefused(s.QueryNodeOf(ctx, key, func(ctx context.Context, client rueidis.Client) rueidis.RedisResult {
		if !s.Topology.Cluster {
			return client.Do(ctx, tryWait(client))
		}
		return s.tryWaitAt(ctx, key)
	}).Error())
}

// CheckWait is Check for the connections of a client that is being made.
func CheckWait(ctx context.Context, client rueidis.Client) error {
	return waitRefused(client.Do(ctx, tryWait(client)).Error())
}

// waitRefused wraps an error of WAIT with its meaning. It returns nil for nil.
func waitRefused(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the command WAIT, which Options.Replicas needs, fails: %w", err)
}

// tryWait is a WAIT that waits for no replica.
func tryWait(client rueidis.Client) rueidis.Completed {
	return client.B().Wait().Numreplicas(0).Timeout(1).Build()
}

// tryWaitAt sends tryWait to the master of a cluster that serves the key.
func (s *Sender) tryWaitAt(ctx context.Context, key string) rueidis.RedisResult {
	commands := func() []rueidis.Completed {
		return []rueidis.Completed{s.Client.B().Exists().Key(key).Build(), tryWait(s.Client)}
	}
	results := s.senderTo(key)(ctx, commands()...)
	if other := s.elsewhere(ctx, key, results[0].Error()); other != nil {
		results = other(ctx, commands()...)
	}
	return results[1]
}

// Patience returns how long one command with its confirmation may take.
func (r *Replication) Patience() time.Duration { return r.Timeout + waitSlack }

// reserve waits for a slot among those that wait for the replicas of a node. It comes before
// anything is sent, so that no command of a caller that leaves in the meantime is executed late.
func (r *Replication) reserve(ctx context.Context, n *nodes.Node, until time.Time) (free func(), err error) {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	slots := nodes.BacklogOf[struct{}](n, r, r.Waits, 1).Slots
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	case <-ctx.Done():
		return nil, outcome.ErrTooManyInFlight
	case <-timer.C:
		return nil, &tooFewError{cause: outcome.ErrTooManyInFlight}
	}
}

// send executes a script, and returns its reply if enough replicas have it.
//
// WAIT counts the replicas that have received what its own connection has written. So three
// commands use one connection: the script, which may find nothing to change and write nothing; a
// write, because WAIT needs one; and WAIT. If the server does not know the script, finding that
// out takes as long as the replicas do.
func (r *Replication) send(ctx context.Context, s *Sender, script Command, keys, args []string) rueidis.RedisResult {
	keys = script.keysFor(s.Client, keys)
	send := s.senderTo(keys[0])
	result := r.sendOver(ctx, send, s.Client.B(), script, keys, args)
	if other := s.elsewhere(ctx, keys[0], result.Error()); other != nil {
		send = other
		result = r.sendOver(ctx, send, s.Client.B(), script.inFull(), keys, args)
	}
	if outcome.HasCode(result.Error(), "NOSCRIPT") {
		result = r.sendOver(ctx, send, s.Client.B(), script.inFull(), keys, args)
	}
	if !outcome.Classify(result.Error()).Heard() && s.Topology.Cluster {
		s.keepKnown(true) // another node may be the master now
	}
	if err := result.Error(); redirected(err) {
		return rueidis.NewErrorResult(fmt.Errorf("%w: %v", outcome.ErrElsewhere, err)) //nolint:errorlint // no refusal
	}
	return result
}

// sendOver does not repeat a script that the server does not know if the replicas do not even
// confirm the write.
func (r *Replication) sendOver(
	ctx context.Context, send connSender, b rueidis.Builder, script Command, keys, args []string,
) rueidis.RedisResult {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout+nodes.SilenceTimeout)
	defer cancel()
	results := send(ctx,
		script.eval(b, keys, args),
		b.Set().Key(keyspace.ClientKey(keys[0], r.ID, "ack")).Value("").Px(r.Timeout).Build(),
		r.wait(b))
	if err := results[0].Error(); err != nil && !rueidis.IsRedisNil(err) && !outcome.HasCode(err, "NOSCRIPT") {
		return results[0]
	}
	err := r.shortage(results[1].Error(), results[2])
	if outcome.HasCode(err, "OOM") || outcome.HasCode(err, "ASK") {
		err = r.touchKeys(ctx, send, b, keys)
	}
	switch few := (*tooFewError)(nil); {
	case err == nil:
		return results[0]
	case errors.As(err, &few):
		few.reply, _ = results[0].ToMessage()
	case !outcome.HasCode(results[0].Error(), "NOSCRIPT"):
		err = outcome.Executed(err)
	}
	return rueidis.NewErrorResult(err)
}

// touchKeys makes the write on a server that has no memory for a new key, or that accepts none
// because it is moving the slot.
func (r *Replication) touchKeys(ctx context.Context, send connSender, b rueidis.Builder, keys []string) error {
	results := send(ctx, r.Touch.inFull().eval(b, keys, nil), r.wait(b))
	touched, err := results[0].AsInt64()
	if err == nil && touched == 0 {
		return &tooFewError{wanted: r.Min}
	}
	return r.shortage(err, results[1])
}

func (r *Replication) wait(b rueidis.Builder) rueidis.Completed {
	return b.Wait().Numreplicas(int64(r.Min)).Timeout(r.Timeout.Milliseconds()).Build()
}

// shortage returns why a write is not confirmed, or nil.
func (r *Replication) shortage(written error, waited rueidis.RedisResult) error {
	n, err := waited.AsInt64()
	if err == nil && n < int64(r.Min) {
		return &tooFewError{confirmed: n, wanted: r.Min}
	}
	err = errors.Join(written, err)
	if outcome.Classify(err) == outcome.Refused {
		return &tooFewError{confirmed: n, wanted: r.Min, cause: err}
	}
	return err
}

// tooFewError is an ErrNotReplicated with what the server said.
type tooFewError struct {
	confirmed int64
	wanted    int
	cause     error                // of WAIT, or nil
	reply     rueidis.RedisMessage // of the script
}

func (e *tooFewError) Error() string {
	if e.cause != nil {
		return fault.ErrNotReplicated.Error() + ": " + e.cause.Error()
	}
	return fmt.Sprintf("%v: %d of %d confirmed in time", fault.ErrNotReplicated, e.confirmed, e.wanted)
}

// Unwrap lets the caller match ErrNotReplicated and the cause.
func (e *tooFewError) Unwrap() []error {
	if e.cause == nil {
		return []error{fault.ErrNotReplicated}
	}
	return []error{fault.ErrNotReplicated, e.cause}
}

// Unconfirmed returns the reply of a script that was executed but that too few replicas have
// confirmed. found is false for any other error.
func Unconfirmed(err error) (reply rueidis.RedisMessage, found bool) {
	var few *tooFewError
	if !errors.As(err, &few) {
		return reply, false
	}
	return few.reply, true
}
