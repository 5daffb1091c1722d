package latchkey

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// permitProtocol stores an id among those of a semaphore.
type permitProtocol struct {
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

// permitAttempts requests ids. The first of those that are requested together stands for all.
type permitAttempts struct {
	waiter *fairWaiter // of an acquisition that waits in the queue, or nil
}

func (p permitAttempts) acquireCall(a *acquisition, _, _ int) script.Call {
	o, awaits := a.ownership, ""
	stale, ticket, grant := p.waiter.args()
	if p.waiter != nil {
		o.markQueued()
	}
	if a.AwaitSet {
		awaits = "1"
	}
	args := []string{permitEntry(o), permitLeaseText(a), stale, ticket, grant, awaits, o.lock.client.Publish, o.lock.names.Channel}
	args = o.lock.client.Inbox.ChannelArgs(args, o.lock.names.Key)
	return script.NewCall(script.PermitAcquire, permitKeys(o.lock.names, a.Permanent, o.wire), append(args, identity.RawID(o.wire)[:identity.GroupIndex])...)
}

// What lua/permit/acquire.lua says of the place of a waiter: nobody has set the permits, or the waiter is not in the
// queue, because it wants more than there are in all.
const (
	permitsUnset = 1
	permitsAside = 2
)

// permitLeaseText returns the lease as an argument for scripts, "" if it does not end.
func permitLeaseText(a *acquisition) string {
	if a.Permanent {
		return ""
	}
	return a.lock.client.LeaseText(a.Lease)
}

// readRefusal reads the place in the queue that the script gave to a waiting ownership.
func (p permitAttempts) readRefusal(a *acquisition, ans transport.Answer) (time.Duration, error) {
	left, place, err := readPermitRefusal(ans, a.permits())
	if p.waiter == nil || place == nil {
		return left, err
	}
	p.waiter.list.setPermitPlace(p.waiter, uint64(place[0]), place[1] == permitsAside)
	if place[1] == permitsUnset {
		return left, fault.ErrNotSetYet
	}
	return left, err
}

// releaseCall, for the first of a group that was never acquired, gives up the whole group and its
// place in the queue.
func (p permitProtocol) releaseCall(o *ownership, to release, args []string) script.Call {
	if to.count > 0 {
		return script.Call{}
	}
	id, entry, mark := identity.RawID(o.wire), "", ""
	if !o.hasBegun() && (p.leader == o.wire || p.leader == "") {
		id, entry = "", permitEntry(o)
	}
	if p.permanent && o.mayBeAcquired() {
		mark = script.MillisText(undo.LateDelivery)
	}
	args = append(args, id, entry, mark, o.lock.client.Publish, o.lock.names.Channel)
	return script.NewCall(script.PermitLeave, permitKeys(o.lock.names, p.permanent, p.leader),
		append(o.lock.client.Inbox.ChannelArgs(args, o.lock.names.Key), line.PresenceChannel(o.lock.names.Key))...)
}

func (permitProtocol) renewalCall(o *ownership, lease time.Duration) script.Call {
	return script.NewCall(script.PermitRenew, []string{keyspace.PermitIDsKey(o.lock.names.Key)}, identity.RawID(o.wire), script.MillisText(lease))
}
