package latchkey

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// Replicas says how many replicas must have a hold for it to count. Redis replicates
// after it has answered, so that a failover may forget a lock that somebody holds; what
// a replica has confirmed is there if that replica becomes the master.
//
// With it, an acquisition costs one more round trip, and what it waits for the replicas;
// renewals wait for them too, and a hold whose renewals they do not confirm is lost at
// the end of its lease, as if the master were silent. Releases do not wait. It is no
// consensus: a replica that has not confirmed may be the one that is promoted. Ask for as
// many as there are to rule that out, and for the price that the loss of one of them
// means no more locks.
type Replicas struct {
	// Min is how many replicas have to confirm. Default: 0, nothing is waited for and
	// WAIT is not needed.
	Min int
	// Timeout is how long they may take. It must be shorter than Options.RetryBudget.
	// Default: DefaultReplicaTimeout, or half the RetryBudget if that is less. The server looks at
	// its clock ten times a second, so that it may be 100 ms longer.
	Timeout time.Duration
}

// DefaultReplicaTimeout is the default of [Replicas].
const DefaultReplicaTimeout = time.Second

// maxWaits is how many commands of a client wait for replicas at the same time. Each
// has a connection to itself meanwhile.
const maxWaits = 16

// acks has commands confirmed by replicas.
type acks struct {
	Replicas

	waits chan struct{} // a place for each that waits
	id    string
}

// newAcks returns nil if nothing is to be confirmed.
func newAcks(r Replicas, id string) *acks {
	if r.Min == 0 {
		return nil
	}
	return &acks{r, make(chan struct{}, maxWaits), id}
}

// check finds out whether the server knows WAIT, before the first lock does. The name
// of some key leads to a master, which is the one to ask.
func (r *acks) check(c *caller) error {
	if r == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.patience)
	defer cancel()
	err := c.send(ctx, func(ctx context.Context) rueidis.RedisResult {
		conn, release := c.client.Dedicate()
		defer release()
		b := conn.B()
		return conn.DoMulti(ctx,
			b.Exists().Key(opKey(r.id, r.id, "ack")).Build(),
			b.Wait().Numreplicas(0).Timeout(1).Build())[1]
	}).Error()
	if err != nil {
		return fmt.Errorf("the command WAIT, which Options.Replicas needs, fails: %w", err)
	}
	return nil
}

// confirmed is the command as it is sent if replicas have to confirm it.
func (c command) confirmed(r *acks) command {
	c.acks = r
	return c
}

// send executes a script, and returns its reply if enough replicas have it.
//
// WAIT counts the replicas that have what its own connection has written. So there is
// one for the three commands: the script, which may find that everything is as it should
// be and write nothing; a write, which it cannot do without; and WAIT. A redirection
// would tear them apart, which is why rueidis is asked for a connection that follows none.
func (r *acks) send(ctx context.Context, client rueidis.Client, script command, keys, args []string) rueidis.RedisResult {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout+silenceTimeout)
	defer cancel()
	select {
	case r.waits <- struct{}{}:
		defer func() { <-r.waits }()
	case <-ctx.Done():
		return rueidis.NewErrorResult(errSlots)
	}
	conn, release := client.Dedicate()
	defer release()
	result := r.sendOver(ctx, conn, "EVALSHA", script.digest, keys, args)
	if hasCode(result.Error(), "NOSCRIPT") {
		result = r.sendOver(ctx, conn, "EVAL", script.text, keys, args)
	}
	if err := result.Error(); hasCode(err, "MOVED ") || hasCode(err, "ASK ") {
		return rueidis.NewErrorResult(fmt.Errorf("%w: %v", errElsewhere, err)) //nolint:errorlint // no refusal
	}
	return result
}

// errElsewhere means that another node of the cluster has the key.
var errElsewhere = errors.New("latchkey: the slot is on another node")

func (r *acks) sendOver(ctx context.Context, conn rueidis.DedicatedClient, eval, script string, keys, args []string) rueidis.RedisResult {
	b := conn.B()
	results := conn.DoMulti(ctx,
		b.Arbitrary(eval, script, strconv.Itoa(len(keys))).Keys(keys...).Args(args...).Build(),
		b.Set().Key(opKey(keys[0], r.id, "ack")).Value("").Px(r.Timeout).Build(),
		b.Wait().Numreplicas(int64(r.Min)).Timeout(r.Timeout.Milliseconds()).Build())
	if err := results[0].Error(); err != nil && !rueidis.IsRedisNil(err) {
		return results[0]
	}
	n, err := results[2].AsInt64()
	err = errors.Join(results[1].Error(), err)
	switch {
	case judge(err) == uncertain, judge(err) == notNow:
		return rueidis.NewErrorResult(err)
	case err != nil || n < int64(r.Min):
		return rueidis.NewErrorResult(&tooFewError{n, r.Min, err})
	}
	return results[0]
}

// tooFewError is an ErrNotReplicated with what the server said.
type tooFewError struct {
	confirmed int64
	wanted    int
	cause     error // of WAIT, or nil
}

func (e *tooFewError) Error() string {
	if e.cause != nil {
		return ErrNotReplicated.Error() + ": " + e.cause.Error()
	}
	return fmt.Sprintf("%v: %d of %d confirmed in time", ErrNotReplicated, e.confirmed, e.wanted)
}

// Unwrap lets the caller match both.
func (e *tooFewError) Unwrap() []error {
	if e.cause == nil {
		return []error{ErrNotReplicated}
	}
	return []error{ErrNotReplicated, e.cause}
}

// confirm has an acquisition that was granted confirmed: it is sent once more, which
// changes nothing unless a failover has forgotten it meanwhile. Whatever comes of it,
// the first one was granted; an error leaves that in doubt.
func (c *Client) confirm(ctx context.Context, first answer, again call) (answer, error) {
	a, err := c.caller.call(ctx, c.closing, again.cmd.confirmed(c.acks), again.keys, again.args)
	if err != nil {
		a.doubt, a.doubtAt = true, a.sent
	}
	a.sent = first.sent
	return a, err
}

// granted reports whether the answer to an acquisition says yes.
func (a answer) granted() bool {
	return !a.message.IsInt64() && !a.message.IsArray() && !(a.bare && a.null)
}
