package semaphore

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/object"
	"github.com/latchkey-go/latchkey/internal/engine/owners"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// This file handles permits by their ids. Any process that knows an id can release the permit and
// set its lease.

// State says what happened to a permit in a release.
type State int

// The states of a permit.
const (
	Undecided State = iota // no answer came
	Released               // it was held until now
	Expired                // its lease had ended
	Unknown                // there is no permit with that id
)

// releaseBatch is how many permits one script releases.
const releaseBatch = 100

// Release releases permits by their ids, and returns the state of each.
func (s *Pool) Release(ctx context.Context, ids []string) ([]State, error) {
	if err := identity.CheckIDs(ids); err != nil {
		return nil, fault.Op("release", s.Names.Name, err)
	}
	states := make([]State, len(ids))
	var errs []error
	var others []int // which this client does not hold
	for i, id := range ids {
		if o := s.own(id); o != nil {
			states[i], errs = releaseOwn(ctx, o, errs)
		} else {
			others = append(others, i)
		}
	}
	for len(others) > 0 {
		some := others[:min(len(others), releaseBatch)]
		others = others[len(some):]
		errs = append(errs, s.releaseByID(ctx, ids, some, states))
	}
	err := errors.Join(errs...)
	if slices.Contains(states, Expired) || slices.Contains(states, Unknown) {
		err = errors.Join(fault.Op("release", s.Names.Name, fault.ErrNotHeld), err)
	}
	return states, err
}

// own returns the ownership of a permit that this client holds or is releasing, or nil. The server
// may still have a permit whose release has failed; its state is that of the ownership.
func (s *Pool) own(id string) *ownership.Ownership {
	o := owners.Of(s.Client).Known(permitName(s.Names.Key, id))
	if o == nil || o.CurrentPhase() == ownership.Acquiring {
		return nil
	}
	return o
}

func releaseOwn(ctx context.Context, o *ownership.Ownership, errs []error) (State, []error) {
	err := o.First.Unlock(ctx)
	switch {
	case err == nil:
		return Released, errs
	case errors.Is(err, fault.ErrLost):
		return Expired, errs
	case errors.Is(err, fault.ErrNotHeld):
		return Unknown, errs
	}
	return Undecided, append(errs, err)
}

// releaseByID releases some of the ids and fills in their states.
func (s *Pool) releaseByID(ctx context.Context, ids []string, some []int, states []State) error {
	a, err := s.SendUntilDone(s.Client.Sender.Detached(ctx), "release", func(o *undo.Operation) script.Call {
		args := s.Client.Inbox.ChannelArgs([]string{o.Number, s.Client.Publish, s.Names.Channel}, s.Names.Key)
		args = append(args, line.PresenceChannel(s.Names.Key))
		for _, i := range some {
			args = append(args, identity.RawID(ids[i]))
		}
		return script.NewCall(script.PermitRelease, s.queueKeys(o), args...)
	})
	if err != nil {
		return err
	}
	report, err := a.Message.ToString()
	if err != nil || len(report) != len(some) {
		return fault.Op("release", s.Names.Name, fault.ErrUnknownOutcome, errors.Join(script.ErrReply, err))
	}
	for at, i := range some {
		states[i] = map[byte]State{'R': Released, 'E': Expired, 'U': Unknown}[report[at]]
	}
	return nil
}

// RemainingLease returns the remaining lease of the permit with that id.
func (s *Pool) RemainingLease(ctx context.Context, id string) (time.Duration, error) {
	if err := identity.CheckIDs([]string{id}); err != nil {
		return 0, fault.Op("remaining lease", s.Names.Name, err)
	}
	keys := []string{s.Names.Key, s.SecondKey, s.KindKey()}
	a, err := s.Query(ctx, "remaining lease", script.NewCall(script.PermitLease, keys, identity.RawID(id)))
	switch {
	case err != nil:
		return 0, err
	case a.Null:
		return 0, fault.Op("remaining lease", s.Names.Name, fault.ErrNotHeld)
	}
	left, err := a.Message.AsInt64()
	return script.FromPTTL(left), err
}

// SetLease makes the lease of the permit with that id d from now.
func (s *Pool) SetLease(ctx context.Context, id string, d time.Duration) error {
	const verb = "set lease"
	ms, err := object.TTLText("the lease", d)
	if err = errors.Join(err, identity.CheckIDs([]string{id})); err != nil {
		return fault.Op(verb, s.Names.Name, err)
	}
	if o := s.own(id); o != nil {
		return s.setOwnLease(ctx, verb, o, d, ms)
	}
	_, _, err = s.update(ctx, verb, id, ms)
	return err
}

// setOwnLease sets the lease of a permit of this client, and ends its renewal.
func (s *Pool) setOwnLease(ctx context.Context, verb string, o *ownership.Ownership, d time.Duration, ms string) error {
	if err := o.SendMu.Lock(ctx); err != nil {
		return fault.Op(verb, s.Names.Name, outcome.Unavailable(fault.ContextError(ctx)))
	}
	defer o.SendMu.Unlock()
	if err := o.First.FixLease(s.Client.Clock(), min(d, lease.Permanent)); err != nil {
		return fault.Op(verb, s.Names.Name, err)
	}
	sent, end, err := s.update(ctx, verb, o.Wire, ms)
	switch lease := min(d, end, lease.Permanent); {
	case err == nil:
		o.First.LeaseFixed(sent, lease)
		s.Client.Record.Use(sent.Mono, lease)
	case errors.Is(err, fault.ErrNotHeld):
		o.Lose(fault.ErrLost, "the permit was gone when its lease was set")
	}
	if lost := o.First.EndedBecause(); err == nil && lost != nil {
		return fault.Op(verb, s.Names.Name, fault.ErrNotHeld, lost)
	}
	return err
}

// update sets a lease, which begins no earlier than sent. end is when the semaphore ends. If no
// answer comes, the lease is not set later.
func (s *Pool) update(ctx context.Context, verb, id, ms string) (sent lease.Stamp, end time.Duration, err error) {
	a, err := s.SendOrVoid(ctx, verb, func(o *undo.Operation) script.Call {
		return script.NewCall(script.PermitUpdate.Confirmed(s.Client.Replication),
			[]string{s.Names.Key, s.SecondKey, o.Record, s.KindKey()},
			o.Number, identity.RawID(id), ms, s.Client.Publish, s.Names.Channel)
	})
	switch {
	case script.DeniedHold(err), err == nil && a.Message.IsInt64():
		return sent, 0, fault.Op(verb, s.Names.Name, fault.ErrNotHeld)
	case err != nil:
		return sent, 0, err
	}
	reply, err := a.Message.AsIntSlice()
	if err != nil || len(reply) != 2 {
		return sent, 0, fault.Op(verb, s.Names.Name, fault.ErrUnknownOutcome, errors.Join(script.ErrReply, err))
	}
	if end = lease.NoExpiry; reply[1] > 0 {
		end = script.FromMillis(reply[1])
	}
	if reply[0] == 2 {
		return a.FirstSent, end, nil // from an earlier attempt
	}
	return a.Sent, end, nil
}
