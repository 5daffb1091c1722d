package semaphore

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/inspect"
	"github.com/latchkey-go/latchkey/internal/engine/object"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// Count is the number of permits of a semaphore of any kind. All kinds set it, add to it, limit its
// time and delete it in the same way, with scripts of their own.
type Count struct {
	object.Object

	SecondKey string // the key of the total of a Semaphore, or of the ids of permits
	numeral   string // its kind, as lua/shared/number_kind.lua names it
	script    func(c *Count, o *undo.Operation, how permitChange, n int, ttl string) script.Call
}

// permitChange is a way to change the number of permits, as lua/semaphore/set.lua and
// lua/permit/set.lua name it.
type permitChange string

const (
	changeTrySet permitChange = "try" // if nobody has set the number
	changeSet    permitChange = "set" // the total number
	changeAdd    permitChange = "add"
)

// Channel returns the channel of a semaphore.
func Channel(key string) string { return "redisson_sc:" + keyspace.Tag(key) }

// KindKey returns the key that says of which kind the number is.
func (c *Count) KindKey() string { return keyspace.NumberKindKey(c.Names.Key) }

// Inspect returns how many permits there are, with an error if the name belongs to another kind of
// object.
func (c *Count) Inspect(ctx context.Context) (inspect.Object, error) {
	return c.Client.Inspector.Inspect(ctx, c.Names, "a "+c.numeral)
}

// TrySet sets the total number of permits of a semaphore that does not exist yet, and reports
// whether it did.
func (c *Count) TrySet(ctx context.Context, n int, settings []request.Setting) (bool, error) {
	ttl, err := object.TimeToLive(settings)
	err = errors.Join(err, request.CheckNumber("%d permits", n, 0))
	return c.change(ctx, "try set permits", changeTrySet, n, ttl, err)
}

// Set changes the total number of permits, acquired ones included.
func (c *Count) Set(ctx context.Context, n int) error {
	const verb = "set permits"
	_, err := c.change(ctx, verb, changeSet, n, "", request.CheckNumber("%d permits", n, 0))
	if errors.Is(err, fault.ErrNotSet) { // an unset semaphore is created, so it is the total that is not set
		return fault.Op(verb, c.Names.Name, fault.ErrNoTotal)
	}
	return err
}

// Add adds n permits, or removes some if n is negative.
func (c *Count) Add(ctx context.Context, n int) error {
	_, err := c.change(ctx, "add permits", changeAdd, n, "", checkAdded(n))
	return err
}

// change changes the number, unless the arguments are bad, and reports whether it did.
func (c *Count) change(ctx context.Context, verb string, how permitChange, n int, ttl string, bad error) (bool, error) {
	if bad != nil {
		return false, fault.Op(verb, c.Names.Name, bad)
	}
	defer c.endTurns()
	send := c.SendOrRepeat
	if how == changeAdd {
		send = c.SendUntilDone
	}
	return script.Bool(send(ctx, verb, func(o *undo.Operation) script.Call { return c.script(c, o, how, n, ttl) }))
}

// SetTTL makes the semaphore end in d, or never with NoExpiry, and reports whether it exists.
func (c *Count) SetTTL(ctx context.Context, d time.Duration) (bool, error) {
	ms, err := object.TTLText("the TTL", d)
	if err != nil {
		return false, fault.Op("set ttl", c.Names.Name, err)
	}
	defer c.endTurns()
	return script.Bool(c.SendOrVoid(ctx, "set ttl", func(o *undo.Operation) script.Call {
		return script.NewCall(script.SemExpire, []string{c.Names.Key, o.Record, c.KindKey(), c.SecondKey},
			o.Number, ms, c.numeral)
	}))
}

// Delete removes the semaphore, and reports whether it existed.
func (c *Count) Delete(ctx context.Context) (bool, error) {
	defer c.endTurns()
	return script.Bool(c.SendOrVoid(ctx, "delete", func(o *undo.Operation) script.Call {
		keys := []string{c.Names.Key, o.Record, c.KindKey(), c.SecondKey}
		return script.NewCall(script.SemExpire, append(keys, c.Names.SemQueueKeys()...),
			o.Number, "0", c.numeral, c.Client.Publish, c.Names.Channel)
	}))
}

func checkAdded(n int) error {
	if n == 0 || n < -request.MaxCount || n > request.MaxCount {
		return fault.Invalid("%d permits to add, want a number other than 0 from %d to %d",
			n, -request.MaxCount, request.MaxCount)
	}
	return nil
}

// readPermitRefusal reads a reply that refuses permits: after what time to try again, and how many
// permits are free and how many there are in all, which the error says. more is what else the reply
// says.
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
