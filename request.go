package latchkey

import (
	"context"
	"errors"
	"time"
)

// Option is a setting of one acquisition. Options are made by [Wait], [Lease],
// [MaxHold] and [By].
type Option struct {
	kind  optionKind
	d     time.Duration
	owner Owner
	n     int
}

type optionKind int

const (
	optionWait optionKind = iota + 1
	optionLease
	optionMaxHold
	optionBy
	optionAwaitSet
	optionTTL
	optionTogether // how many permits are acquired at once
	optionUnsetIsOpen
	optionUntilWhole // renewed without a limit, until it is confined
)

// Wait bounds how long the acquisition waits for the lock, besides its context.
// It makes TryLock wait at all. It must not be negative; Wait(0) is no wait, one
// attempt.
func Wait(d time.Duration) Option { return Option{kind: optionWait, d: d} }

// Lease gives the hold a fixed lease: it is not renewed, and is lost when d is over.
// Fractions of a millisecond are rounded up. On a re-entry the lease can only
// lengthen what the outer hold has. A permit, and nothing else, may have the lease
// NoExpiry, which does not end: it is gone for good if its holder crashes.
func Lease(d time.Duration) Option { return Option{kind: optionLease, d: d} }

// MaxHold limits a renewed hold: at d its contexts end with ErrMaxHold, a drift
// margin before the key ends on the server. On an outermost hold the limit binds
// all re-entries too; on a re-entry it binds that hold alone.
func MaxHold(d time.Duration) Option { return Option{kind: optionMaxHold, d: d} }

// By acquires for an owner: if the owner holds the lock, it is a re-entry. An owner
// that another process made is entered as a guest: the lock is free when both have
// released it. A thread of Redisson as the owner must not have a shorter lease than its
// guest: whatever it does sets the time of the lock to that.
func By(owner Owner) Option { return Option{kind: optionBy, owner: owner} }

// AwaitSet lets whoever waits for a semaphore or a latch wait also until somebody sets
// its permits or its count, instead of failing with ErrNotSet.
func AwaitSet() Option { return Option{kind: optionAwaitSet} }

// TTL gives a semaphore or a latch that is set a time to live, after which it goes by
// itself.
func TTL(d time.Duration) Option { return Option{kind: optionTTL, d: d} }

// UnsetIsOpen lets Await of a latch that is not there succeed, as Redisson's does:
// Redisson has opened it, or nobody has set its count, or it was deleted, or has come to the end of its time to live, also
// while it was awaited. It excludes [AwaitSet].
func UnsetIsOpen() Option { return Option{kind: optionUnsetIsOpen} }

// request is one acquisition, checked.
type request struct {
	wait       time.Duration
	waits      bool          // for longer than one attempt
	bounded    bool          // by wait
	lease      time.Duration // to be sent
	renewLease time.Duration // of the renewals
	renew      bool
	maxHold    time.Duration
	by         Owner
	awaitSet   bool
	permanent  bool
	untilWhole bool // see confinement
	together   int

	began  stamp   // when the call did
	tenure *tenure // that is to begin, of a request that waits in front
}

// permanentLease stands for a lease that does not end.
const permanentLease = 100 * 365 * 24 * time.Hour

// newRequest checks the options of one acquisition. waits is what the verb means
// by itself.
func newRequest(defaultLease time.Duration, waits bool, options []Option) (request, error) {
	r := request{waits: waits, lease: defaultLease, renewLease: defaultLease, renew: true}
	for _, o := range options {
		if err := r.apply(o); err != nil {
			return r, err
		}
	}
	switch {
	case r.permanent && r.together == 0:
		return r, invalid("only permits may be without an end")
	case r.maxHold > 0 && !r.renew && r.lease > r.maxHold:
		return r, invalid("the lease %v is longer than the maximum hold %v", r.lease, r.maxHold)
	case r.maxHold > 0:
		r.lease = min(r.lease, r.maxHold)
	}
	if r.untilWhole {
		r.renew, r.renewLease, r.maxHold = true, r.lease, 0
	}
	return r, nil
}

// waitRequest checks the options of a call that waits for something without a lease.
func waitRequest(c *Client, waits bool, options []Option) (request, error) {
	r, err := newRequest(c.options.Lease, waits, options)
	if err == nil && (!r.renew || r.maxHold > 0 || !r.by.IsZero()) {
		err = invalid("there is no lease and no owner here: only Wait and AwaitSet apply")
	}
	return r, err
}

// onlyTTL is the time to live among the options of a call that sets something, in ms as
// it is sent.
func onlyTTL(options []Option) (ms string, err error) {
	for _, o := range options {
		if o.kind != optionTTL {
			return "", invalid("only TTL applies here")
		}
		if ms, err = ttlText(o.d); err != nil {
			return "", err
		}
	}
	return ms, nil
}

// bound applies the wait of the request to its context.
func (r *request) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.bounded && r.waits {
		return context.WithTimeout(ctx, r.wait)
	}
	return ctx, func() {}
}

// waitForSet makes something to wait for of the refusal that nobody has set it yet, if
// the caller asked for that.
func (r *request) waitForSet(err error) error {
	if r.awaitSet && r.waits && hasCode(err, "LATCHKEY_UNSET") {
		return errors.Join(ErrNotAcquired, ErrNotSet)
	}
	return err
}

func (r *request) apply(o Option) error {
	switch o.kind {
	case optionWait:
		if o.d < 0 {
			return invalid("the wait %v is negative", o.d)
		}
		r.wait, r.bounded, r.waits = o.d, true, o.d > 0
	case optionLease:
		r.lease, r.renew = o.d, false
		if o.d == NoExpiry {
			r.lease, r.permanent = permanentLease, true
			return nil
		}
		return checkLease("the lease", o.d)
	case optionMaxHold:
		r.maxHold = o.d
		return checkLease("the maximum hold", o.d)
	case optionBy:
		if o.owner.IsZero() {
			return invalid("the owner is empty")
		}
		r.by = o.owner
	case optionAwaitSet:
		r.awaitSet = true
	case optionUntilWhole:
		r.untilWhole = true
	case optionTogether:
		r.together = o.n
	case optionTTL:
		return invalid("a time to live is set with the permits or the count")
	case optionUnsetIsOpen:
		return invalid("only a latch that is awaited may be unset and open")
	default:
		return invalid("an Option that no function of this package made")
	}
	return nil
}
