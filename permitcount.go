package latchkey

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// permitCount is the number of permits of a semaphore of either kind. Both kinds set it, add to it, limit its
// time and delete it in the same way, with scripts of their own.
type permitCount struct {
	synchronizer

	secondKey string // the key of the total of a Semaphore, or of the ids of a PermitSemaphore
	numeral   string // its kind, as number_kind.lua names it
	script    func(c *permitCount, o *operation, how permitChange, n int, ttl string) call
}

// permitChange is a way to change the number of permits, as permit_set.lua names it.
type permitChange string

const (
	changeTrySet permitChange = "try" // if nobody has set the number
	changeSet    permitChange = "set" // the total number
	changeAdd    permitChange = "add"
)

func semaphoreChannel(key string) string { return "redisson_sc:" + transport.HashTag(key) }

// kindKey returns the key that says of which kind the number is.
func (c *permitCount) kindKey() string { return numberKindKey(c.key) }

// trySet is TrySetPermits.
func (c *permitCount) trySet(ctx context.Context, n int, options []SetOption) (bool, error) {
	ttl, err := timeToLive(options)
	return c.change(ctx, "try set permits", changeTrySet, n, ttl, errors.Join(err, checkTotal(n)))
}

// set is SetPermits.
func (c *permitCount) set(ctx context.Context, n int) error {
	_, err := c.change(ctx, "set permits", changeSet, n, "", checkTotal(n))
	return err
}

// add is AddPermits.
func (c *permitCount) add(ctx context.Context, n int) error {
	_, err := c.change(ctx, "add permits", changeAdd, n, "", checkAdded(n))
	return err
}

// change changes the number, unless the arguments are bad, and reports whether it did.
func (c *permitCount) change(ctx context.Context, verb string, how permitChange, n int, ttl string, bad error) (bool, error) {
	if bad != nil {
		return false, fail(verb, c.name, bad)
	}
	defer c.endTurns()
	send := c.sendOrRepeat
	if how == changeAdd {
		send = c.sendUntilDone
	}
	return boolOf(send(ctx, verb, func(o *operation) call { return c.script(c, o, how, n, ttl) }))
}

// setTTL is SetTTL.
func (c *permitCount) setTTL(ctx context.Context, d time.Duration) (bool, error) {
	ms, err := ttlText(d)
	if err != nil {
		return false, fail("set ttl", c.name, err)
	}
	defer c.endTurns()
	return boolOf(c.sendOrVoid(ctx, "set ttl", func(o *operation) call {
		return call{semExpire, []string{c.key, o.record, c.kindKey(), c.secondKey}, []string{o.number, ms, c.numeral}}
	}))
}

// delete is Delete.
func (c *permitCount) delete(ctx context.Context) (bool, error) {
	defer c.endTurns()
	return boolOf(c.sendOrVoid(ctx, "delete", func(o *operation) call {
		return call{semDelete, append([]string{c.key, o.record, c.kindKey(), c.secondKey}, c.semQueueKeys()...),
			[]string{o.number, c.client.publish, c.channel, c.numeral}}
	}))
}

func checkCount(n int) error {
	if n < 1 || n > maxCount {
		return invalid("%d permits, want at least 1 and at most %d", n, maxCount)
	}
	return nil
}

func checkTotal(n int) error {
	if n < 0 || n > maxCount {
		return invalid("%d permits, want at least 0 and at most %d", n, maxCount)
	}
	return nil
}

func checkAdded(n int) error {
	if n == 0 || n < -maxCount || n > maxCount {
		return invalid("%d permits to add, want a number other than 0 from %d to %d", n, -maxCount, maxCount)
	}
	return nil
}

// readPermitRefusal reads a reply that refuses permits: after what time to try again, and how many permits are free
// and how many there are in all, which the error says. more is what else the reply says.
func readPermitRefusal(a transport.Answer, wanted int) (left time.Duration, more []int64, err error) {
	n, err := a.Message.AsIntSlice()
	if err != nil || len(n) != 3 && len(n) != 5 && len(n) != 6 {
		return 0, nil, errors.Join(errReply, err)
	}
	if len(n) > 3 {
		more = n[3:]
	}
	return fromMillis(n[0]), more, &permitsError{wanted: wanted, free: int(n[1]), total: int(n[2])}
}
