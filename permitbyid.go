package latchkey

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// This file handles permits by their ids. Any process that knows an id can release the permit and set its
// lease.

// PermitState says what happened to a permit in a release.
type PermitState int

const (
	// PermitUndecided means that no answer came: if the error matches ErrUnknownOutcome, the
	// release is repeated in the background.
	PermitUndecided PermitState = iota
	// PermitReleased means that it was held until now.
	PermitReleased
	// PermitExpired means that its lease had ended: another process may have had it since.
	PermitExpired
	// PermitUnknown means that there is no permit with that id, or no longer.
	PermitUnknown
)

// String returns the state as a word.
func (s PermitState) String() string {
	switch s {
	case PermitReleased:
		return "released"
	case PermitExpired:
		return "expired"
	case PermitUnknown:
		return "unknown"
	}
	return "undecided"
}

// releaseBatch is how many permits one script releases.
const releaseBatch = 100

// Release releases permits by their ids, including permits of other processes, wakes waiters, and returns the
// state of each permit in the order of the ids. If another process renews a permit, it loses the permit and
// learns of that at its next renewal. Release works even if ctx has ended: the time is bounded by
// Options.RetryBudget instead, for each 100 ids.
//
// The error is nil if all were released. It matches ErrNotHeld if some are [PermitExpired] or [PermitUnknown],
// and ErrUnknownOutcome and ErrUnavailable if the server could not be reached or did not answer for some, which
// are [PermitUndecided] and are released in the background. It is ErrInvalid, and nothing was sent, if there is
// no id or one cannot be the id of a permit. ErrClosed, ErrWrongKind and a *rueidis.RedisError are possible for
// permits that are PermitUndecided and were not released.
func (s *permitPool) Release(ctx context.Context, ids ...string) ([]PermitState, error) {
	if err := identity.CheckIDs(ids); err != nil {
		return nil, fault.Op("release", s.names.Name, err)
	}
	states := make([]PermitState, len(ids))
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
	if slices.Contains(states, PermitExpired) || slices.Contains(states, PermitUnknown) {
		err = errors.Join(fault.Op("release", s.names.Name, fault.ErrNotHeld), err)
	}
	return states, err
}

// own returns the ownership of a permit that this client holds, or nil.
func (s *permitPool) own(id string) *ownership {
	o := s.client.registry.known(permitName(s.names.Key, id))
	if o == nil || !o.live() {
		return nil
	}
	return o
}

func releaseOwn(ctx context.Context, o *ownership, errs []error) (PermitState, []error) {
	err := o.first().Unlock(ctx)
	switch {
	case err == nil:
		return PermitReleased, errs
	case errors.Is(err, fault.ErrLost):
		return PermitExpired, errs
	case errors.Is(err, fault.ErrNotHeld):
		return PermitUnknown, errs
	}
	return PermitUndecided, append(errs, err)
}

// releaseByID releases some of the ids and fills in their states.
func (s *permitPool) releaseByID(ctx context.Context, ids []string, some []int, states []PermitState) error {
	a, err := s.sendUntilDone(s.client.Sender.Detached(ctx), "release", func(o *undo.Operation) script.Call {
		args := append(s.client.Inbox.ChannelArgs([]string{o.Number, s.client.Publish, s.names.Channel}, s.names.Key), line.PresenceChannel(s.names.Key))
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
		return fault.Op("release", s.names.Name, fault.ErrUnknownOutcome, errors.Join(script.ErrReply, err))
	}
	for at, i := range some {
		states[i] = map[byte]PermitState{'R': PermitReleased, 'E': PermitExpired, 'U': PermitUnknown}[report[at]]
	}
	return nil
}

// RemainingLease returns the remaining lease of the permit with that id, NoExpiry if it does not end. It
// changes nothing; the answer may be out of date when it arrives.
//
// The error matches ErrNotHeld if nobody holds a permit with that id, ErrInvalid if it cannot
// be an id (nothing was sent), ErrWrongKind, ErrClosed, or ErrUnavailable if the server did
// not answer within Options.RetryBudget.
func (s *permitPool) RemainingLease(ctx context.Context, id string) (time.Duration, error) {
	if err := identity.CheckIDs([]string{id}); err != nil {
		return 0, fault.Op("remaining lease", s.names.Name, err)
	}
	a, err := s.query(ctx, "remaining lease", script.NewCall(script.PermitLease, []string{s.names.Key, s.secondKey, s.kindKey()}, identity.RawID(id)))
	switch {
	case err != nil:
		return 0, err
	case a.Null:
		return 0, fault.Op("remaining lease", s.names.Name, fault.ErrNotHeld)
	}
	left, err := a.Message.AsInt64()
	return script.FromPTTL(left), err
}

// SetLease makes the lease of the permit with that id d from now, longer or shorter, or without an end for
// NoExpiry. A permit of this client is no longer renewed, even after an error. Another process may still renew
// its own permit, which sets the lease to the length that it uses. ctx bounds the call.
//
// The error matches ErrNotHeld if nobody holds a permit with that id (and also ErrLost if this client held it),
// and ErrInvalid if it cannot be an id or d is not from MinLease to MaxLease (nothing was sent).
// ErrUnknownOutcome means that no answer came: the lease is unchanged or d, and does not change later. After
// ErrUnavailable, ErrClosed or ErrWrongKind it is unchanged.
func (s *permitPool) SetLease(ctx context.Context, id string, d time.Duration) error {
	const verb = "set lease"
	ms, err := ttlText(d)
	if err = errors.Join(err, identity.CheckIDs([]string{id})); err != nil {
		return fault.Op(verb, s.names.Name, err)
	}
	if o := s.own(id); o != nil {
		return s.setOwnLease(ctx, verb, o, d, ms)
	}
	_, _, err = s.update(ctx, verb, id, ms)
	return err
}

// setOwnLease sets the lease of a permit of this client, and ends its renewal.
func (s *permitPool) setOwnLease(ctx context.Context, verb string, o *ownership, d time.Duration, ms string) error {
	if err := o.sendMu.Lock(ctx); err != nil {
		return fault.Op(verb, s.names.Name, transport.Unavailable(fault.ContextError(ctx)))
	}
	defer o.sendMu.Unlock()
	o.fixLease(s.client.Clock(), min(d, lease.Permanent), true)
	sent, end, err := s.update(ctx, verb, o.wire, ms)
	switch lease := min(d, end, lease.Permanent); {
	case err == nil:
		o.fixLease(sent, lease, false)
		s.client.Record.Use(sent.Mono, lease)
	case errors.Is(err, fault.ErrNotHeld):
		o.lose(fault.ErrLost, "the permit was gone when its lease was set")
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if lost := o.holds.first.errLocked(); err == nil && lost != nil {
		return fault.Op(verb, s.names.Name, fault.ErrNotHeld, lost)
	}
	return err
}

// update sets a lease, which begins no earlier than sent. end is when the semaphore ends. If no answer comes, the lease
// is not set later.
func (s *permitPool) update(ctx context.Context, verb, id, ms string) (sent lease.Stamp, end time.Duration, err error) {
	a, err := s.sendOrVoid(ctx, verb, func(o *undo.Operation) script.Call {
		return script.NewCall(script.PermitUpdate.Confirmed(s.client.Replication), []string{s.names.Key, s.secondKey, o.Record, s.kindKey()},
			o.Number, identity.RawID(id), ms, s.client.Publish, s.names.Channel)
	})
	switch {
	case script.DeniedHold(err), err == nil && a.Message.IsInt64():
		return sent, 0, fault.Op(verb, s.names.Name, fault.ErrNotHeld)
	case err != nil:
		return sent, 0, err
	}
	reply, err := a.Message.AsIntSlice()
	if err != nil || len(reply) != 2 {
		return sent, 0, fault.Op(verb, s.names.Name, fault.ErrUnknownOutcome, errors.Join(script.ErrReply, err))
	}
	if end = lease.NoExpiry; reply[1] > 0 {
		end = script.FromMillis(reply[1])
	}
	if reply[0] == 2 {
		return a.FirstSent, end, nil // from an earlier attempt
	}
	return a.Sent, end, nil
}

// fixLease ends the renewal of a permit whose lease is being set. With shorter, while the server has not
// answered, the permit ends after the new lease or the current one, whichever is shorter. Without it, it ends
// after the new lease.
func (o *ownership) fixLease(sent lease.Stamp, lease time.Duration, shorter bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.phase != held {
		return
	}
	o.holds.stopRenewal(&o.holds.first)
	o.doubt.ExtensionInDoubt(lease)
	if shorter {
		o.lease.Shorten(sent, lease)
	} else {
		o.lease.Set(sent, lease)
	}
	o.plan()
}
