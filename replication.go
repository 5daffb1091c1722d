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

// waitSlack is how much later than asked for the answer to WAIT may come: the server
// looks at its clock ten times a second.
const waitSlack = 250 * time.Millisecond

// replication has commands confirmed by replicas.
type replication struct {
	min     int           // how many replicas have to confirm a command
	timeout time.Duration // for how long they are waited for
	id      string        // of the client
	touch   command       // writes something to keys that exist, and returns how many do
	waits   int           // commands that may wait for the replicas of one node

	sent sync.Map // the digests of the scripts that were sent as text
}

// check asks the server whether it knows WAIT, before the first lock does, and returns its
// error. Nil stands for no replication, and needs nothing.
func (r *replication) check(c *sender) error {
	if r == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.patience)
	defer cancel()
	key := opKey(r.id, r.id, "ack")
	return c.askNodeOf(ctx, key, func(ctx context.Context, client rueidis.Client) rueidis.RedisResult {
		return tryWait(ctx, client, key)
	}).Error()
}

// tryWait sends a WAIT that waits for nobody, and returns its result. In a cluster the name of
// some key leads to a master, which is the one to ask.
func tryWait(ctx context.Context, client rueidis.Client, key string) rueidis.RedisResult {
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

// patience returns how long one command and its confirmation may take.
func (r *replication) patience() time.Duration { return r.timeout + waitSlack }

// reserve waits for a place among those who wait for the replicas of a node. It is waited
// for before anything is sent, so that who leaves meanwhile has left nothing to be
// executed late.
func (r *replication) reserve(ctx context.Context, n *node, until time.Time) (free func(), err error) {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	known, found := n.waits.Load(r)
	if !found {
		known, _ = n.waits.LoadOrStore(r, make(chan struct{}, r.waits))
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

// send executes a script, and returns its reply if enough replicas have it.
//
// WAIT counts the replicas that have what its own connection has written. So there is
// one for the three commands: the script, which may find that everything is as it should
// be and write nothing; a write, which it cannot do without; and WAIT. The first time the
// script goes as text: to find out that the server does not know it takes as long as the
// replicas do.
func (r *replication) send(ctx context.Context, c *sender, script command, keys, args []string) rueidis.RedisResult {
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

// sendOver gives up a script that the server does not know if the replicas do not even
// confirm the write.
func (r *replication) sendOver(ctx context.Context, send connSender, b rueidis.Builder, eval, script string, keys, args []string) rueidis.RedisResult {
	ctx, cancel := context.WithTimeout(ctx, r.timeout+silenceTimeout)
	defer cancel()
	results := send(ctx,
		b.Arbitrary(eval, script, strconv.Itoa(len(keys))).Keys(keys...).Args(args...).Build(),
		b.Set().Key(opKey(keys[0], r.id, "ack")).Value("").Px(r.timeout).Build(),
		r.wait(b))
	if err := results[0].Error(); err != nil && !rueidis.IsRedisNil(err) && !hasCode(err, "NOSCRIPT") {
		return results[0]
	}
	err := r.shortage(results[1].Error(), results[2])
	if hasCode(err, "OOM ") || hasCode(err, "ASK ") {
		err = r.touchKeys(ctx, send, b, keys)
	}
	if err == nil {
		return results[0]
	}
	if few := (*tooFewError)(nil); errors.As(err, &few) {
		few.reply, _ = results[0].ToMessage()
	}
	return rueidis.NewErrorResult(err)
}

// touch is the write on a server that has no memory for a new key, or that is about to
// hand its slot over and has no place for one.
func (r *replication) touchKeys(ctx context.Context, send connSender, b rueidis.Builder, keys []string) error {
	results := send(ctx, b.Arbitrary("EVAL", r.touch.text, strconv.Itoa(len(keys))).Keys(keys...).Build(), r.wait(b))
	touched, err := results[0].AsInt64()
	if err == nil && touched == 0 {
		return &tooFewError{wanted: r.min}
	}
	return r.shortage(err, results[1])
}

func (r *replication) wait(b rueidis.Builder) rueidis.Completed {
	return b.Wait().Numreplicas(int64(r.min)).Timeout(r.timeout.Milliseconds()).Build()
}

// shortage is why a write is not confirmed, or nil.
func (r *replication) shortage(written error, waited rueidis.RedisResult) error {
	n, err := waited.AsInt64()
	if err == nil && n < int64(r.min) {
		return &tooFewError{confirmed: n, wanted: r.min}
	}
	err = errors.Join(written, err)
	if v := classify(err); v == refused && !redirected(err) {
		return &tooFewError{confirmed: n, wanted: r.min, cause: err}
	}
	return err
}
