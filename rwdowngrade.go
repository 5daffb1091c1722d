package latchkey

import (
	"context"
	"errors"
	"strconv"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// downgrade implements [Hold.Downgrade].
func downgrade(ctx context.Context, h *hold.Handle) (*hold.Handle, error) {
	if h == nil {
		return nil, fault.ErrNotHeld
	}
	s, is := h.Backend().(*holdState)
	if !is || s.ownership.lock.spec.side != keyspace.KindWrite {
		return nil, fault.Op("downgrade", h.Name(), fault.Invalid("only a write hold can be downgraded"))
	}
	o := s.ownership
	if err := o.lock.client.Begin(context.Background()); err != nil {
		return nil, fault.Op("downgrade", h.Name(), err)
	}
	defer o.lock.client.Done()
	read, err := downgradeHold(ctx, s)
	if err != nil {
		return nil, fault.Op("downgrade", h.Name(), o.lock.client.Inspector.WrongKind(ctx, o.lock.names, keyspace.KindRWLock, err))
	}
	return read, nil
}

func downgradeHold(ctx context.Context, s *holdState) (*hold.Handle, error) {
	o := s.ownership
	lock := newAcquirable(o.lock.client, readSpec, o.lock.Name())
	n, began := o.nest(&lock.primitive, nil), o.lock.client.Clock()
	defer n.forgetUnused()
	for _, each := range []*ownership{o, n} {
		if !each.lockToRelease(ctx) {
			if _, err := s.beginRelease(); err != nil {
				return nil, err
			}
			return nil, o.releaseFailed(transport.Answer{}, transport.Unavailable(transport.ErrSilent))
		}
		defer each.SendMu().Unlock()
	}
	if err := s.mayDowngrade(); err != nil {
		return nil, err
	}
	r, err := readRequest(s)
	if err != nil {
		return nil, err
	}
	if _, err := s.beginRelease(); err != nil {
		return nil, err
	}
	r.Parent = o.lock.client.Reporter.Parent(ctx)
	a := &acquisition{Request: r, lock: lock, ownership: n, began: began}
	ans, err := sendDowngrade(a)
	return downgradeAnswered(s, a, ans, err)
}

// downgradeAnswered ends the write hold s, and makes the hold of a if the server has granted it. sendMu of both
// ownerships is held.
func downgradeAnswered(s *holdState, a *acquisition, ans transport.Answer, err error) (*hold.Handle, error) {
	o := s.ownership
	switch {
	case err != nil:
		a.ownership.noteDoubt(ans)
		_, err = abandonEntry(a, err)
		return nil, errors.Join(err, o.releaseFailed(ans, err))
	case ans.Null:
		o.lose(fault.ErrLost, "the key was gone when the hold was downgraded")
		_, err = abandonEntry(a, fault.ErrLost)
		return nil, errors.Join(fault.ErrNotHeld, err)
	}
	read, err := arrive(a, ans)
	o.finishRelease(ans)
	_, _ = s.reportRelease()
	o.lock.client.Record.TellChanges() // the owner continues without the note of the write hold
	if err == nil {
		a.observeEnd(false, nil)
	}
	return read, err
}

// readRequest returns the request for the read hold. The rest of the write hold's limit still applies to it.
func readRequest(s *holdState) (request.Request, error) {
	o := s.ownership
	left := s.untilMaxHold()
	limit := request.Setting{Kind: request.MaxHold, D: max(left, lease.Shortest)}
	if left == async.NoDeadline { // as of a hold with a fixed lease
		limit = request.Setting{Kind: request.OfClient, D: o.lock.client.Config.MaxHold}
	}
	return request.New(o.lock.client.Config.Lease, true, []request.Setting{limit})
}

// downgradedBefore is the reply of lua/rw/downgrade.lua to a repetition, which changes nothing.
const downgradedBefore = -2

// sendDowngrade requests one more read hold in place of the write hold. It does not stop when the caller's
// context ends: the write hold is given up.
func sendDowngrade(a *acquisition) (transport.Answer, error) {
	o, p := a.ownership, a.lock
	count := o.count() + 1
	o.noteCount(count, false)
	ans, err := o.lock.client.Sender.Call(o.lock.client.Sender.Detached(context.Background()), nil, script.RWDowngrade.Confirmed(o.lock.client.Replication),
		append(rwKeys(p.names.Key), leaseKeys(p.names.Key, o.wire)+strconv.Itoa(count)),
		[]string{o.wire, o.lock.client.LeaseText(a.Lease), strconv.Itoa(count), readNumber(o), o.lock.client.Publish, p.names.Channel, line.PresenceChannel(p.names.Key)})
	if n, _ := ans.Message.AsInt64(); n == downgradedBefore {
		ans.Sent = ans.FirstSent // from an earlier attempt, with which the lease began
	}
	if errors.Is(err, fault.ErrNotReplicated) && !ans.Doubt {
		ans.Doubt, ans.DoubtAt, ans.DoubtGeneration = true, ans.Sent, transport.NoGeneration // it has happened, and must be undone
	}
	return ans, err
}

// arrive makes the hold of a read that the server has granted: the first of its ownership, or one more.
func arrive(a *acquisition, ans transport.Answer) (*hold.Handle, error) {
	o := a.ownership
	if o.currentPhase() == acquiring {
		return a.conclude(a.accept(ans))
	}
	s, cause := o.addHold(&a.Request, a.under, ans)
	if cause != nil {
		return abandonEntry(a, cause)
	}
	return hold.New(s), nil
}

// abandonEntry gives up a read that was requested: the server's count is reset.
func abandonEntry(a *acquisition, cause error) (*hold.Handle, error) {
	o := a.ownership
	if o.currentPhase() == acquiring {
		return a.conclude(cause)
	}
	o.undoLater(0, a.Lease)
	return nil, cause
}
