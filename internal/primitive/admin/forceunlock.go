package admin

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/inspect"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/primitive/rw"
)

// ForceUnlock removes the holders that it finds. A plain deletion that is repeated or late would
// free a lock that has been acquired since. want is the kind that the lock must have, or nil.
func ForceUnlock(ctx context.Context, c *core.Parts, names *keyspace.Keys, want *ownership.Spec) (bool, error) {
	if names.Invalid != nil {
		return false, fault.Op("force unlock", names.Name, names.Invalid)
	}
	held := false
	for {
		o, err := c.Inspector.Find(ctx, names)
		switch {
		case err != nil:
			return held, fault.Op("force unlock", names.Name, err)
		case o.Kind == keyspace.KindNone:
			return held, nil
		case want != nil && o.Kind != want.Stored:
			return held, fault.Op("force unlock", names.Name, fault.NotKind(keyspace.Noun(want.Stored), o.What))
		case want == nil && o.Kind == keyspace.KindMutex && !o.Holders[0].Owner.Reentrant():
			return held, fault.Op("force unlock", names.Name, errMutexByName)
		case !o.Locked():
			return held, fault.Op("force unlock", names.Name, fault.NotKind(keyspace.Noun(keyspace.KindLock), o.What))
		case want != nil && want.Side != "" && heldBy(o.Holders) != want.Side:
			return held, nil
		}
		held = true
		gone, err := evict(ctx, c, names, o)
		if err != nil || gone {
			return held, err
		}
		// The holder changed in between: inspect again.
	}
}

// heldBy returns the side on which a read/write lock is held.
func heldBy(holders []inspect.Holder) keyspace.Kind {
	for _, h := range holders {
		if h.Write {
			return keyspace.KindWrite
		}
	}
	return keyspace.KindRead
}

// errMutexByName refuses to remove a token that anybody may have made.
var errMutexByName = fault.OtherKind("a string, which may be a mutex or data of an application; "+
	"NewMutex(name).ForceUnlock removes it", nil)

// evict removes the holders that were found, and reports whether any of them was still there.
func evict(
	ctx context.Context, c *core.Parts, names *keyspace.Keys, o inspect.Object,
) (gone bool, err error) {
	for _, each := range Evictions(c, names, o) {
		a, err := c.Send(ctx, each)
		switch {
		case err != nil && a.Doubt:
			return gone, fault.Op("force unlock", names.Name, fault.ErrUnknownOutcome, err)
		case err != nil:
			return gone, fault.Op("force unlock", names.Name, c.Inspector.WrongKind(ctx, names, o.Kind, err))
		}
		gone = gone || !a.Null
	}
	return gone, nil
}

// Evictions are the releases of all holders that were found.
func Evictions(c *core.Parts, names *keyspace.Keys, o inspect.Object) []script.Call {
	switch o.Kind {
	case keyspace.KindRWLock:
		var fields []string
		for _, h := range o.Holders {
			fields = append(fields, h.Field())
		}
		return rw.Evictions(c, names, fields)
	case keyspace.KindMutex:
		return []script.Call{script.NewCall(script.MutexRelease, names.Queued(),
			c.QueueArgs([]string{o.Holders[0].Field(), names.Channel, c.Publish}, names.Key, "", "", 0)...)}
	default:
		// It may be a fair lock, whose waiters listen elsewhere.
		owner := o.Holders[0].Field()
		fair := []string{owner, "-1", "", c.Publish, names.Channel, "0", "0", c.StaleMS}
		lock := []string{owner, names.Channel, "-1", "", "0", c.Publish}
		return []script.Call{
			script.NewCall(script.FairRelease, names.FairKeys(), c.Inbox.ChannelArgs(fair, names.Key)...),
			script.NewCall(script.LockRelease, names.Fenced(), c.QueueArgs(lock, names.Key, "", "", 0)...),
		}
	}
}
