package rw

import (
	"context"
	"errors"
	"strconv"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/owners"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
	"github.com/latchkey-go/latchkey/internal/transport/nodes"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// Downgrade makes a read hold of a write hold: Hold.Downgrade of the root explains it.
func Downgrade(ctx context.Context, h *hold.Handle) (*hold.Handle, error) {
	if h == nil {
		return nil, fault.ErrNotHeld
	}
	s, is := h.Backend().(*ownership.Hold)
	if !is || s.Ownership.Spec.Side != keyspace.KindWrite {
		return nil, fault.Op("downgrade", h.Name(), fault.Invalid("only a write hold can be downgraded"))
	}
	o := s.Ownership
	if err := o.Client.Begin(context.Background()); err != nil {
		return nil, fault.Op("downgrade", h.Name(), err)
	}
	defer o.Client.Done()
	read, err := downgradeHold(ctx, s)
	if err != nil {
		return nil, fault.Op("downgrade", h.Name(),
			o.Client.Inspector.WrongKind(ctx, o.Names, keyspace.KindRWLock, err))
	}
	return hold.New(read), nil
}

func downgradeHold(ctx context.Context, s *ownership.Hold) (*ownership.Hold, error) {
	o, began := s.Ownership, s.Ownership.Client.Clock()
	if !o.LockToRelease(ctx) {
		return nil, releaseLater(s, outcome.Unavailable(outcome.ErrSilent))
	}
	defer o.SendMu.Unlock()
	if err := s.MayDowngrade(); err != nil {
		return nil, err
	}
	r, err := readRequest(s)
	if err != nil {
		return nil, err
	}
	r.Parent = o.Client.Reporter.Parent(ctx)
	a := &acquire.Acquisition{Request: r, Lock: acquire.NewLock(o.Client, Read, o.Name()), Began: began}
	count, err := enterReader(ctx, a, o)
	if err != nil {
		return nil, releaseLater(s, err)
	}
	n := a.Ownership
	defer n.ForgetUnused()
	defer n.SendMu.Unlock()
	if _, over := s.BeginRelease(); over != nil {
		n.DropEntry()
		return nil, fault.NotHeld(s.EndedBecause())
	}
	ans, err := SendDowngrade(a, count)
	return downgradeAnswered(s, a, ans, err)
}

// releaseLater leaves the release of the write hold to the background, because an earlier command
// has failed.
func releaseLater(s *ownership.Hold, failed error) error {
	if _, over := s.BeginRelease(); over != nil {
		return fault.NotHeld(s.EndedBecause())
	}
	return errors.Join(s.Ownership.ReleaseFailed(transport.Answer{}, failed)...)
}

// enterReader locks SendMu of the ownership that reads for the writer, and counts the new read
// before the server does: the last of its other reads may be released meanwhile. It returns the
// count, or an error if commands for these reads are not answered.
func enterReader(ctx context.Context, a *acquire.Acquisition, writer *ownership.Ownership) (count int, err error) {
	for err == nil {
		n := owners.Of(writer.Client).Nest(writer, &a.Lock.Lock, nil)
		a.Ownership = n
		if !n.LockToRelease(ctx) {
			return 0, outcome.Unavailable(outcome.ErrSilent)
		}
		if n.CurrentPhase() == ownership.Acquiring {
			return 1, nil
		}
		if count = n.Enter(&a.Request, nil); count > 0 {
			return count, nil
		}
		if n.CurrentPhase() == ownership.Releasing {
			err = n.CompleteRelease(writer.Client.Sender.Detached(ctx), nil)
		}
		n.SendMu.Unlock()
	}
	return 0, err
}

// downgradeAnswered ends the write hold s, and makes the hold of a if the server has granted it.
// SendMu of both ownerships is held.
func downgradeAnswered(
	s *ownership.Hold, a *acquire.Acquisition, ans transport.Answer, err error,
) (*ownership.Hold, error) {
	o := s.Ownership
	switch {
	case err != nil:
		a.Ownership.AcquisitionAnswered(ans)
		_, failed := abandonEntry(a, err)
		if causes := o.ReleaseFailed(ans, err); !errors.Is(failed, fault.ErrUnknownOutcome) {
			failed = errors.Join(causes...)
		}
		return nil, failed
	case ans.Null:
		o.Lose(fault.ErrLost, "the key was gone when the hold was downgraded")
		_, err = abandonEntry(a, fault.ErrLost)
		return nil, errors.Join(fault.ErrNotHeld, err)
	}
	read, err := arrive(a, ans)
	o.FinishRelease(ans)
	_, _ = s.ReportRelease()
	o.Client.Record.TellChanges() // the owner continues without the note of the write hold
	if err == nil {
		a.ObserveEnd(false, nil)
	}
	return read, err
}

// readRequest returns the request for the read hold. The rest of the write hold's limit still
// applies to it.
func readRequest(s *ownership.Hold) (request.Request, error) {
	var limits []request.Setting
	if left := s.UntilMaxHold(); left != async.NoDeadline { // else as of a hold with a fixed lease
		limits = []request.Setting{{Kind: request.MaxHold, D: max(left, lease.Shortest)}}
	}
	config := &s.Ownership.Client.Config
	return request.New(config.Lease, config.MaxHold, true, limits)
}

// downgradedBefore is the reply of lua/rw/downgrade.lua to a repetition, which changes nothing.
const downgradedBefore = -2

// SendDowngrade requests one more read hold in place of the write hold; count includes it. The
// request does not stop when the caller's context ends: the write hold is given up.
func SendDowngrade(a *acquire.Acquisition, count int) (transport.Answer, error) {
	o, p, c := a.Ownership, a.Lock, a.Ownership.Client
	on := o.RequestBegins(count, false) // other reads of the owner need renewals meanwhile
	ctx := c.Sender.Detached(context.Background())
	call := script.NewCall(script.RWDowngrade,
		append(Keys(p.Names.Key), LeaseKeys(p.Names.Key, o.Wire)+strconv.Itoa(count)),
		o.Wire, c.LeaseText(a.Lease), strconv.Itoa(count), readNumber(o),
		c.Publish, p.Names.Channel, line.PresenceChannel(p.Names.Key))
	ans, err := c.Sender.CallOn(ctx, nil, on, call.Confirmed(c.Replication))
	if n, _ := ans.Message.AsInt64(); n == downgradedBefore {
		ans.Sent = ans.FirstSent // from an earlier attempt, with which the lease began
	}
	if errors.Is(err, fault.ErrNotReplicated) && !ans.Doubt {
		// It has happened, and must be undone.
		ans.Doubt, ans.DoubtAt, ans.DoubtGeneration = true, ans.Sent, nodes.NoGeneration
	}
	return ans, err
}

// arrive makes the hold of a read that the server has granted: the first of its ownership, or one
// more.
func arrive(a *acquire.Acquisition, ans transport.Answer) (*ownership.Hold, error) {
	o := a.Ownership
	if o.CurrentPhase() == ownership.Acquiring {
		return a.Conclude(a.Accept(ans))
	}
	s, cause := o.AddHold(&a.Request, a.Under, ans)
	if cause != nil {
		return abandonEntry(a, cause)
	}
	return s, nil
}

// abandonEntry gives up a read that was requested: the server's count is reset.
func abandonEntry(a *acquire.Acquisition, cause error) (*ownership.Hold, error) {
	o := a.Ownership
	if o.CurrentPhase() == ownership.Acquiring {
		return a.Conclude(cause)
	}
	o.DropEntry()
	o.UndoLater(0, a.Lease)
	return nil, cause
}
