package latchkey

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// permitCount is the number of permits of a semaphore of any kind. All kinds set it, add to it, limit its time and
// delete it in the same way, with scripts of their own.
type permitCount struct {
	synchronizer

	secondKey string // the key of the total of a Semaphore, or of the ids of permits
	numeral   string // its kind, as lua/shared/number_kind.lua names it
	script    func(c *permitCount, o *undo.Operation, how permitChange, n int, ttl string) script.Call
}

// permitChange is a way to change the number of permits, as lua/semaphore/set.lua and lua/permit/set.lua name it.
type permitChange string

const (
	changeTrySet permitChange = "try" // if nobody has set the number
	changeSet    permitChange = "set" // the total number
	changeAdd    permitChange = "add"
)

func semaphoreChannel(key string) string { return "redisson_sc:" + keyspace.Tag(key) }

// kindKey returns the key that says of which kind the number is.
func (c *permitCount) kindKey() string { return keyspace.NumberKindKey(c.names.Key) }

// TrySetPermits sets the total number of permits of a semaphore that does not exist yet, wakes callers that
// wait for that, and reports whether it did. An existing semaphore does not change. With [TTL] the semaphore
// ends when the time is over, with the permits that have ids, whose holders know that. n is 0 or more.
//
// ErrUnknownOutcome means that the request was sent and not answered: the client repeats it in the
// background, so do not repeat it. After ErrUnavailable without ErrUnknownOutcome, and after
// ErrClosed, ErrWrongKind, ErrInvalid for a bad name or n, or a *rueidis.RedisError, nothing was
// changed, and you may repeat the call. ctx bounds it.
func (c *permitCount) TrySetPermits(ctx context.Context, n int, options ...SetOption) (bool, error) {
	ttl, err := timeToLive(options)
	return c.change(ctx, "try set permits", changeTrySet, n, ttl, errors.Join(err, request.CheckNumber("%d permits", n, 0)))
}

// SetPermits changes the total number of permits, acquired ones included. Setting the same number twice
// changes nothing. If the semaphore does not exist, SetPermits creates it. With a smaller total, nobody loses
// a permit, and the number available may be negative until enough are released. n is 0 or more.
//
// The total of a [Semaphore] counts what this library has set and added. It is unknown for one that
// Redisson made: SetPermits then returns ErrNotSet and changes nothing. It is wrong for one that
// Redisson has changed: use AddPermits. If permits have ids, the total is always known.
//
// The other errors are those of TrySetPermits. ctx bounds the call.
func (c *permitCount) SetPermits(ctx context.Context, n int) error {
	_, err := c.change(ctx, "set permits", changeSet, n, "", request.CheckNumber("%d permits", n, 0))
	return err
}

// AddPermits adds n permits and wakes waiters. If n is negative it removes permits: the number
// available may then be negative until enough are released. The total cannot become negative: that is
// ErrInvalid, and nothing is removed. If the semaphore does not exist, AddPermits creates it with n
// permits, if n is positive. The total of a [Semaphore] that Redisson made is unknown: its number may
// become negative, as in Redisson.
//
// The errors are those of [Semaphore.Release]. n is from -2,147,483,647 to 2,147,483,647 and not 0.
// ctx bounds the call; if ctx has ended before it, nothing is added.
func (c *permitCount) AddPermits(ctx context.Context, n int) error {
	_, err := c.change(ctx, "add permits", changeAdd, n, "", checkAdded(n))
	return err
}

// change changes the number, unless the arguments are bad, and reports whether it did.
func (c *permitCount) change(ctx context.Context, verb string, how permitChange, n int, ttl string, bad error) (bool, error) {
	if bad != nil {
		return false, fault.Op(verb, c.names.Name, bad)
	}
	defer c.endTurns()
	send := c.sendOrRepeat
	if how == changeAdd {
		send = c.sendUntilDone
	}
	return script.Bool(send(ctx, verb, func(o *undo.Operation) script.Call { return c.script(c, o, how, n, ttl) }))
}

// SetTTL makes the semaphore end in d, or never with NoExpiry, and reports whether it exists. d is
// from MinLease to MaxLease. When the time is over the semaphore is deleted, and its waiters get
// ErrNotSet, or wait on with [AwaitSet]. ctx bounds the call.
//
// Permits with ids end with the semaphore; until then their leases stay as they are. Their holders learn of
// that at their next renewal, a third of the lease later at most, and those of permits that are not renewed do
// not: let d be longer.
//
// ErrUnknownOutcome means that the request was sent and not answered: it has taken effect, or never
// will, and you may repeat it. After any other error nothing was changed: ErrUnavailable,
// ErrClosed, ErrWrongKind, ErrInvalid for a bad name or d, or a *rueidis.RedisError if the server
// refuses.
func (c *permitCount) SetTTL(ctx context.Context, d time.Duration) (bool, error) {
	ms, err := ttlText(d)
	if err != nil {
		return false, fault.Op("set ttl", c.names.Name, err)
	}
	defer c.endTurns()
	return script.Bool(c.sendOrVoid(ctx, "set ttl", func(o *undo.Operation) script.Call {
		return script.NewCall(script.SemExpire, []string{c.names.Key, o.Record, c.kindKey(), c.secondKey}, o.Number, ms, c.numeral)
	}))
}

// Delete removes the semaphore and reports whether it existed. Its waiters get ErrNotSet, or wait on with
// [AwaitSet]. Permits with ids are lost; their holders learn of it at the next renewal. The errors are those of
// SetTTL.
func (c *permitCount) Delete(ctx context.Context) (bool, error) {
	defer c.endTurns()
	return script.Bool(c.sendOrVoid(ctx, "delete", func(o *undo.Operation) script.Call {
		return script.NewCall(script.SemExpire, append([]string{c.names.Key, o.Record, c.kindKey(), c.secondKey}, c.names.SemQueueKeys()...),
			o.Number, "0", c.numeral, c.client.Publish, c.names.Channel)
	}))
}

func checkAdded(n int) error {
	if n == 0 || n < -request.MaxCount || n > request.MaxCount {
		return fault.Invalid("%d permits to add, want a number other than 0 from %d to %d", n, -request.MaxCount, request.MaxCount)
	}
	return nil
}

// readPermitRefusal reads a reply that refuses permits: after what time to try again, and how many permits are free
// and how many there are in all, which the error says. more is what else the reply says.
func readPermitRefusal(a transport.Answer, wanted int) (left time.Duration, more []int64, err error) {
	n, err := a.Message.AsIntSlice()
	if err != nil || len(n) != 3 && len(n) != 5 && len(n) != 6 {
		return 0, nil, errors.Join(script.ErrReply, err)
	}
	if len(n) > 3 {
		more = n[3:]
	}
	return script.FromMillis(n[0]), more, &fault.PermitsError{Wanted: wanted, Free: int(n[1]), Total: int(n[2])}
}
