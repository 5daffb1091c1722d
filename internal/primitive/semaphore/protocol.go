package semaphore

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
	"github.com/latchkey-go/latchkey/internal/engine/waiters"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// Protocol stores an id among those of a semaphore.
type Protocol struct {
	leader    string // the id of the first of the permits that were requested together
	permanent bool   // they were requested with leases that do not end
}

func permitKeys(names *keyspace.Keys, permanent bool, leader string) []string {
	keys := names.FairPermitKeys()
	if permanent {
		keys = append(keys, keyspace.PermitVoidKey(names.Key, leader))
	}
	return keys
}

// Attempts requests ids. The first of those that are requested together stands for all.
type Attempts struct {
	waiter *waiters.Waiter // of an acquisition that waits in the queue, or nil
}

// AcquireCall implements [acquire.Attempts].
func (p Attempts) AcquireCall(a *acquire.Acquisition, _, _ int) script.Call {
	o, awaits := a.Ownership, ""
	stale, ticket, grant := p.waiter.Args()
	if p.waiter != nil {
		o.Entry.WaitBegins()
	}
	if a.AwaitSet {
		awaits = "1"
	}
	args := []string{
		EntryOf(o), permitLeaseText(a), stale, ticket, grant, awaits, o.Client.Publish, o.Names.Channel,
	}
	args = o.Client.Inbox.ChannelArgs(args, o.Names.Key)
	return script.NewCall(script.PermitAcquire, permitKeys(o.Names, a.Permanent, o.Wire), args...)
}

// What lua/permit/acquire.lua says of the place of a waiter: nobody has set the permits, or the
// waiter is not in the queue, because it wants more than there are in all.
const (
	permitsUnset = 1
	Aside        = 2
)

// permitLeaseText returns the lease as an argument for scripts, "" if it does not end.
func permitLeaseText(a *acquire.Acquisition) string {
	if a.Permanent {
		return ""
	}
	return a.Lock.Client.LeaseText(a.Lease)
}

// ReadRefusal reads the place in the queue that the script gave to a waiting ownership.
func (p Attempts) ReadRefusal(a *acquire.Acquisition, ans transport.Answer) (time.Duration, error) {
	left, place, err := readPermitRefusal(ans, a.Permits())
	if p.waiter == nil || place == nil {
		return left, err
	}
	p.waiter.List.SetPermitPlace(p.waiter, uint64(place[0]), place[1] == Aside)
	if place[1] == permitsUnset {
		return left, fault.ErrNotSetYet
	}
	return left, err
}

// ReleaseCall implements [ownership.Protocol]. For the first of a group that was never acquired, it
// gives up the whole group and its place in the queue.
func (p Protocol) ReleaseCall(o *ownership.Ownership, to ownership.Release, args []string) script.Call {
	if to.Count > 0 {
		return script.Call{}
	}
	id, entry, mark := identity.RawID(o.Wire), "", ""
	if !to.Begun && (p.leader == o.Wire || p.leader == "") {
		id, entry = "", EntryOf(o)
	}
	if p.permanent && to.MayBeAcquired {
		mark = script.MillisText(undo.LateDelivery)
	}
	args = append(args, id, entry, mark, o.Client.Publish, o.Names.Channel)
	return script.NewCall(script.PermitLeave, permitKeys(o.Names, p.permanent, p.leader),
		append(o.Client.Inbox.ChannelArgs(args, o.Names.Key), line.PresenceChannel(o.Names.Key))...)
}

// RenewalCall implements [ownership.Protocol].
func (Protocol) RenewalCall(o *ownership.Ownership, lease time.Duration) script.Call {
	return script.NewCall(script.PermitRenew, []string{keyspace.PermitIDsKey(o.Names.Key)},
		identity.RawID(o.Wire), script.MillisText(lease))
}
