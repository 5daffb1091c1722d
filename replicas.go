package latchkey

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
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
	// Timeout is how long they may take. It must be shorter than Options.RetryBudget, and
	// should be well under a third of the lease, so that renewals are in time.
	// Default: DefaultReplicaTimeout, or half the RetryBudget if that is less. The server looks at
	// its clock ten times a second, so that it may be 100 ms longer.
	Timeout time.Duration
}

// DefaultReplicaTimeout is the default of [Replicas].
const DefaultReplicaTimeout = time.Second

func (r Replicas) check(budget time.Duration) error {
	off := r.Min == 0
	switch {
	case r.Min < 0:
		return invalid("Options.Replicas.Min is negative")
	case off && r.Timeout >= 0: // which nobody uses
		return nil
	case r.Timeout < time.Millisecond || r.Timeout >= budget:
		return invalid("Options.Replicas.Timeout %v is not between 1ms and the retry budget %v", r.Timeout, budget)
	}
	return nil
}

// maxWaits is how many acquisitions of a client wait for the replicas of one node at the
// same time. Each has a connection to itself meanwhile.
const maxWaits = 16

// waitSlack is how much later than asked for the answer to WAIT may come: the server
// looks at its clock ten times a second.
const waitSlack = 250 * time.Millisecond

// acks has commands confirmed by replicas.
type acks struct {
	Replicas

	id     string
	most   int      // commands that wait for the replicas of one node
	places sync.Map // for each *node a chan struct{} with one for each that waits
	sent   sync.Map // the digests of the scripts that were sent as text
}

// newAcks returns nil if nothing is to be confirmed.
func newAcks(r Replicas, id string, most int) *acks {
	if r.Min == 0 {
		return nil
	}
	return &acks{Replicas: r, id: id, most: most}
}

// check finds out whether the server knows WAIT, before the first lock does.
func (r *acks) check(c *sender) error {
	if r == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.patience)
	defer cancel()
	key := opKey(r.id, r.id, "ack")
	return waitRefused(c.send(ctx, c.node(key), func(ctx context.Context) rueidis.RedisResult { return r.try(ctx, c.client, key) }).Error())
}

// waitRefused is the error of WAIT with what it means, or nil.
func waitRefused(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the command WAIT, which Options.Replicas needs, fails: %w", err)
}

// try sends WAIT. In a cluster the name of some key leads to a master, which is the one
// to ask.
func (r *acks) try(ctx context.Context, client rueidis.Client, key string) rueidis.RedisResult {
	send, release := openSender(client)
	defer release()
	b := client.B()
	commands := []rueidis.Completed{b.Wait().Numreplicas(0).Timeout(1).Build()}
	if client.Mode() == rueidis.ClientModeCluster {
		commands = slices.Insert(commands, 0, b.Exists().Key(key).Build())
	}
	results := send(ctx, commands...)
	return results[len(results)-1]
}

// confirmed is the command as it is sent if replicas have to confirm it.
func (c command) confirmed(r *acks) command {
	c.acks = r
	return c
}

// patience is how long one command and its confirmation may take.
func (r *acks) patience() time.Duration { return r.Timeout + waitSlack }

// place waits for a place among those who wait for the replicas of a node. It is waited
// for before anything is sent, so that who leaves meanwhile has left nothing to be
// executed late.
func (r *acks) place(ctx context.Context, n *node, until time.Time) (give func(), err error) {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	known, found := r.places.Load(n)
	if !found {
		known, _ = r.places.LoadOrStore(n, make(chan struct{}, r.most))
	}
	places := known.(chan struct{})
	select {
	case places <- struct{}{}:
		return func() { <-places }, nil
	case <-ctx.Done():
		return nil, errSlots
	case <-timer.C:
		return nil, &tooFewError{cause: errSlots}
	}
}

// connSender sends commands one after the other over one connection.
type connSender func(ctx context.Context, commands ...rueidis.Completed) []rueidis.RedisResult

// openSender returns a sender that follows no redirection, which would tear apart what
// belongs together. What blocks has a connection of its own anyway; only the client of a
// cluster has to be asked not to follow, and for that cleans the connection up when it
// is released, which takes a round trip.
func openSender(client rueidis.Client) (send connSender, release func()) {
	if client.Mode() != rueidis.ClientModeCluster {
		return client.DoMulti, func() {}
	}
	conn, release := client.Dedicate()
	return conn.DoMulti, release
}

// send executes a script, and returns its reply if enough replicas have it.
//
// WAIT counts the replicas that have what its own connection has written. So there is
// one for the three commands: the script, which may find that everything is as it should
// be and write nothing; a write, which it cannot do without; and WAIT. The first time the
// script goes as text: to find out that the server does not know it takes as long as the
// replicas do.
func (r *acks) send(ctx context.Context, c *sender, script command, keys, args []string) rueidis.RedisResult {
	keys = script.keysFor(c.client, keys)
	send, release := openSender(c.client)
	defer c.background(release) // nobody has to wait for it
	how, what := "EVALSHA", script.digest
	if _, sent := r.sent.LoadOrStore(script.digest, true); !sent {
		how, what = "EVAL", script.text
	}
	result := r.sendOver(ctx, send, c.client.B(), how, what, keys, args)
	if other := elsewhere(c.client, result.Error()); other != nil {
		send = other
		result = r.sendOver(ctx, send, c.client.B(), "EVAL", script.text, keys, args)
	}
	if hasCode(result.Error(), "NOSCRIPT") {
		result = r.sendOver(ctx, send, c.client.B(), "EVAL", script.text, keys, args)
	}
	if err := result.Error(); redirected(err) {
		return rueidis.NewErrorResult(fmt.Errorf("%w: %v", errElsewhere, err)) //nolint:errorlint // no refusal
	}
	return result
}

// errElsewhere means that another node of the cluster has the key.
var errElsewhere = errors.New("latchkey: the slot is on another node")

func redirected(err error) bool { return hasCode(err, "MOVED ") || hasCode(err, "ASK ") }

// elsewhere returns a sender to the node that err names as the one that has the key, or
// nil. The client itself knows of a slot that has moved after up to a second only, and of
// keys that have moved before their slot never.
func elsewhere(client rueidis.Client, err error) connSender {
	var reply *rueidis.RedisError
	if !errors.As(err, &reply) {
		return nil
	}
	moved, hasMoved := reply.IsMoved()
	asked, importing := reply.IsAsk()
	node := client.Nodes()[moved+asked]
	switch {
	case node != nil && hasMoved:
		return node.DoMulti
	case node != nil && importing:
		return asking(node)
	}
	return nil
}

// asking sends to a node that has keys of a slot that is not yet its own.
func asking(node rueidis.Client) connSender {
	return func(ctx context.Context, commands ...rueidis.Completed) (results []rueidis.RedisResult) {
		all := make([]rueidis.Completed, 0, 2*len(commands))
		for _, c := range commands {
			all = append(all, node.B().Asking().Build(), c)
		}
		for i, result := range node.DoMulti(ctx, all...) {
			if i%2 == 1 {
				results = append(results, result)
			}
		}
		return results
	}
}

// sendOver gives up a script that the server does not know if the replicas do not even
// confirm the write.
func (r *acks) sendOver(ctx context.Context, send connSender, b rueidis.Builder, eval, script string, keys, args []string) rueidis.RedisResult {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout+silenceTimeout)
	defer cancel()
	results := send(ctx,
		b.Arbitrary(eval, script, strconv.Itoa(len(keys))).Keys(keys...).Args(args...).Build(),
		b.Set().Key(opKey(keys[0], r.id, "ack")).Value("").Px(r.Timeout).Build(),
		r.wait(b))
	if err := results[0].Error(); err != nil && !rueidis.IsRedisNil(err) && !hasCode(err, "NOSCRIPT") {
		return results[0]
	}
	err := r.shortage(results[1].Error(), results[2])
	if hasCode(err, "OOM ") || hasCode(err, "ASK ") {
		err = r.touch(ctx, send, b, keys)
	}
	if err == nil {
		return results[0]
	}
	if few := (*tooFewError)(nil); errors.As(err, &few) {
		few.reply, _ = results[0].ToMessage()
	}
	return rueidis.NewErrorResult(err)
}

// denials are what a script says of several holds if replicas did not confirm it, or nil.
// That a hold is not there (0) needs no confirmation, and nothing else counts.
func denials(err error) []int64 {
	var few *tooFewError
	if !errors.As(err, &few) {
		return nil
	}
	results, _ := few.reply.AsIntSlice()
	return results
}

// denied is denials for a script that is about one hold.
func denied(err error) bool {
	var few *tooFewError
	if !errors.As(err, &few) {
		return false
	}
	n, err := few.reply.AsInt64()
	return err == nil && n == 0 || slices.Equal(denials(few), []int64{0})
}

// touch is the write on a server that has no memory for a new key, or that is about to
// hand its slot over and has no place for one.
func (r *acks) touch(ctx context.Context, send connSender, b rueidis.Builder, keys []string) error {
	results := send(ctx, b.Arbitrary("EVAL", touchScript.text, strconv.Itoa(len(keys))).Keys(keys...).Build(), r.wait(b))
	touched, err := results[0].AsInt64()
	if err == nil && touched == 0 {
		return &tooFewError{wanted: r.Min}
	}
	return r.shortage(err, results[1])
}

func (r *acks) wait(b rueidis.Builder) rueidis.Completed {
	return b.Wait().Numreplicas(int64(r.Min)).Timeout(r.Timeout.Milliseconds()).Build()
}

// shortage is why a write is not confirmed, or nil.
func (r *acks) shortage(written error, waited rueidis.RedisResult) error {
	n, err := waited.AsInt64()
	if err == nil && n < int64(r.Min) {
		return &tooFewError{confirmed: n, wanted: r.Min}
	}
	err = errors.Join(written, err)
	if v := classify(err); v == refused && !redirected(err) {
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

// granted reports whether the answer to an acquisition says yes.
func (a answer) granted() bool {
	return !a.message.IsInt64() && !a.message.IsArray() && !(a.bare && a.null)
}
