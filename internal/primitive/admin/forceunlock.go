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

// ForceUnlock removes the holders that it finds. A plain deletion that is repeated or late would free a lock that has
// been acquired since. want is the kind that the lock must have, or nil.
func ForceUnlock(ctx context.Context, c *core.Parts, names *keyspace.Keys, want *ownership.Spec) (bool, error) {
	if names.Invalid != nil {
		return false, fault.Op("force unlock", names.Name, names.Invalid)
	}
	held := false
	for {
		i, err := c.Inspector.Find(ctx, names, "1")
		switch {
		case err != nil:
			return held, fault.Op("force unlock", names.Name, err)
		case i.Kind == keyspace.KindNone:
			return held, nil
		case want != nil && i.Kind != want.Stored:
			return held, fault.Op("force unlock", names.Name, fault.WrongKind(keyspace.Noun(want.Stored), i.What, nil))
		case want == nil && i.Kind == keyspace.KindMutex && !i.Holders[0].Owner.Reentrant():
			return held, fault.Op("force unlock", names.Name, errMutexByName)
		case !i.Locked():
			return held, fault.Op("force unlock", names.Name, fault.WrongKind(keyspace.Noun(keyspace.KindLock), i.What, nil))
		case want != nil && want.Side != "" && heldBy(i.Holders) != want.Side:
			return held, nil
		}
		held = true
		gone, err := evict(ctx, c, names, i)
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
	"ForceUnlock of a Mutex removes it", nil)

// evict removes the holders that were found, and reports whether any of them was still there.
func evict(
	ctx context.Context, c *core.Parts, names *keyspace.Keys, i inspect.Inspection,
) (gone bool, err error) {
	for _, each := range Evictions(c, names, i) {
		a, err := c.Send(ctx, each)
		switch {
		case err != nil && a.Doubt:
			return gone, fault.Op("force unlock", names.Name, fault.ErrUnknownOutcome, err)
		case err != nil:
			return gone, fault.Op("force unlock", names.Name, c.Inspector.WrongKind(ctx, names, i.Kind, err))
		}
		gone = gone || !a.Null
	}
	return gone, nil
}

// Evictions are the releases of all holders that were found.
func Evictions(c *core.Parts, names *keyspace.Keys, i inspect.Inspection) []script.Call {
	switch i.Kind {
	case keyspace.KindRWLock:
		var fields []string
		for _, h := range i.Holders {
			fields = append(fields, h.Field())
		}
		return rw.Evictions(c, names, fields)
	case keyspace.KindMutex:
		return []script.Call{script.NewCall(script.MutexRelease, names.Queued(),
			c.QueueArgs([]string{i.Holders[0].Field(), names.Channel, c.Publish}, names.Key, "", "", 0)...)}
	default:
		// It may be a fair lock, whose waiters listen elsewhere.
		owner := i.Holders[0].Field()
		fair := []string{owner, "-1", "", c.Publish, names.Channel, "0", "0", c.StaleMS}
		lock := []string{owner, names.Channel, "-1", "", "0", c.Publish}
		return []script.Call{
			script.NewCall(script.FairRelease, names.FairKeys(), c.Inbox.ChannelArgs(fair, names.Key)...),
			script.NewCall(script.LockRelease, names.Fenced(), c.QueueArgs(lock, names.Key, "", "", 0)...),
		}
	}
}
