package latchkey

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/script"
)

// ForceUnlock takes the lock of that name from its holders, whatever its kind, gives it to a
// waiter, and reports whether it was held. It removes only the holders that it found: a hold that
// begins later is not touched.
//
// If the key is something other than a lock, ForceUnlock returns ErrWrongKind and changes nothing.
// The same goes for a string that [ParseOwner] cannot read, since data of an application may look
// like the token of another library's mutex. To remove such a token, use [Mutex.ForceUnlock].
//
// The former holders are not notified. Those of this library notice at their next renewal, at most
// a third of their lease later, and their holds end with ErrLost. Until then they continue, so two
// owners may be in the critical section. A client may also still pass such a hold on to its own
// goroutines ([Options].Turn).
//
// The other errors are those of Inspect, and ErrUnknownOutcome: a removal was sent and not
// answered. It may or may not have happened, and you may repeat it.
func (c *Client) ForceUnlock(ctx context.Context, name string) (bool, error) {
	names, err := c.engine.Config.Naming().Keys(name)
	if err != nil {
		return false, fault.Op("force unlock", name, err)
	}
	return c.engine.forceUnlock(ctx, names, nil)
}

// ForceUnlock takes the lock from its holder, with all re-entries, gives it to a waiter, and
// reports whether it was held. It removes only the owner that it found: a hold that begins later is
// not touched.
//
// The former holder is not notified. If it is a client of this library, its hold ends with ErrLost
// at its next renewal, at most a third of its lease later. A hold with a fixed lease ([Lease]) ends
// when that is over. If other goroutines of its client wait for the lock, the hold ends within
// Options.PollCeiling (except for fair locks and readers). Until then the holder continues, so two
// owners may be in the critical section.
//
// The errors are those of Inspect, and ErrUnknownOutcome: the removal was sent and not answered. It
// may or may not have happened, and you may repeat it.
func (l *baseLock) ForceUnlock(ctx context.Context) (bool, error) {
	if l.names.Invalid != nil {
		return false, fault.Op("force unlock", l.Name(), l.names.Invalid)
	}
	return l.client.forceUnlock(ctx, l.names, l.primitive.spec)
}

// forceUnlock removes the holders that it finds. A plain deletion that is repeated or late would free a lock that has
// been acquired since. want is the kind that the lock must have, or nil.
func (c *engine) forceUnlock(ctx context.Context, names *keyspace.Keys, want *spec) (bool, error) {
	held := false
	for {
		i, err := c.inspect(ctx, names, "1")
		switch {
		case err != nil:
			return held, fault.Op("force unlock", names.Name, err)
		case i.Kind == KindNone:
			return held, nil
		case want != nil && i.Kind != Kind(want.stored):
			return held, fault.Op("force unlock", names.Name, fault.WrongKind(keyspace.Noun(want.stored), i.What, nil))
		case want == nil && i.Kind == KindMutex && !identity.Owner(i.Holders[0].Owner).Reentrant():
			return held, fault.Op("force unlock", names.Name, errMutexByName)
		case !i.Locked():
			return held, fault.Op("force unlock", names.Name, fault.WrongKind(keyspace.Noun(keyspace.KindLock), i.What, nil))
		case want != nil && want.side != "" && i.heldBy() != want.side:
			return held, nil
		}
		held = true
		gone, err := c.evict(ctx, names, i)
		if err != nil || gone {
			return held, err
		}
		// The holder changed in between: inspect again.
	}
}

// errMutexByName refuses to remove a token that anybody may have made.
var errMutexByName = fault.OtherKind("a string, which may be a mutex or data of an application; ForceUnlock of a Mutex removes it", nil)

// evict removes the holders that were found, and reports whether any of them was still there.
func (c *engine) evict(ctx context.Context, names *keyspace.Keys, i Inspection) (gone bool, err error) {
	for _, each := range c.evictions(names, i) {
		a, err := c.Send(ctx, each)
		switch {
		case err != nil && a.Doubt:
			return gone, fault.Op("force unlock", names.Name, fault.ErrUnknownOutcome, err)
		case err != nil:
			return gone, fault.Op("force unlock", names.Name, c.wrongKind(ctx, names, keyspace.Kind(i.Kind), err))
		}
		gone = gone || !a.Null
	}
	return gone, nil
}

// evictions are the releases of all holders that were found.
func (c *engine) evictions(names *keyspace.Keys, i Inspection) []script.Call {
	switch i.Kind {
	case KindRWLock:
		return c.rwEvictions(names, i.Holders)
	case KindMutex:
		return []script.Call{script.NewCall(script.MutexRelease, names.Queued(),
			c.queueArgs([]string{i.Holders[0].stored(), names.Channel, c.Publish}, names.Key, "", "", 0)...)}
	default:
		// It may be a fair lock, whose waiters listen elsewhere.
		owner := i.Holders[0].stored()
		fair := []string{owner, "-1", "", c.Publish, names.Channel, "0", "0", c.StaleMS}
		lock := []string{owner, names.Channel, "-1", "", "0", c.Publish}
		return []script.Call{
			script.NewCall(script.FairRelease, names.FairKeys(), c.Inbox.ChannelArgs(fair, names.Key)...),
			script.NewCall(script.LockRelease, names.Fenced(), c.queueArgs(lock, names.Key, "", "", 0)...),
		}
	}
}
