package latchkey

import (
	"context"
	"math"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// request is one acquisition with checked options.
type request struct {
	wait       time.Duration
	lease      time.Duration // to be sent
	renewLease time.Duration // set by renewals
	maxHold    time.Duration
	ofClient   time.Duration   // the MaxHold of the client, for a renewed hold without one of its own
	atLeast    time.Duration   // how long the lock stays taken at least, or 0
	by         *identity.Owner // or nil
	note       string          // of the hold, or ""
	together   int
	parent     *context.Context // of its events, or nil: see report.Reporter.Parent

	waits         bool // for longer than one attempt
	bounded       bool // by wait
	renew         bool
	awaitSet      bool
	unsetIsOpen   bool
	permanent     bool
	untilComplete bool // see confinement
}

// newRequest checks the options of one acquisition. waits says whether the method waits for longer than one
// attempt.
func newRequest(defaultLease time.Duration, waits bool, settings []setting) (request, error) {
	r := request{waits: waits, lease: defaultLease, renewLease: defaultLease, renew: true}
	for _, each := range settings {
		if err := r.apply(each); err != nil {
			return r, err
		}
	}
	switch {
	case r.permanent && r.together == 0:
		return r, fault.Invalid("Lease(NoExpiry) applies to permits only")
	case r.maxHold > 0 && !r.renew && r.lease > r.maxHold:
		return r, fault.Invalid("the lease %v is longer than the maximum hold %v", r.lease, r.maxHold)
	case r.atLeast > r.lease && !r.renew:
		return r, fault.Invalid("the lease %v is shorter than AtLeast(%v)", r.lease, r.atLeast)
	case r.maxHold > 0 && r.atLeast > r.maxHold:
		return r, fault.Invalid("the maximum hold %v is shorter than AtLeast(%v)", r.maxHold, r.atLeast)
	}
	if r.maxHold > 0 || !r.renew || r.untilComplete {
		r.ofClient = 0
	}
	if r.ofClient > 0 {
		r.maxHold = max(r.ofClient, r.atLeast)
	}
	r.lease = max(r.lease, r.atLeast) // in case the holder crashes
	if r.maxHold > 0 {
		r.lease = min(r.lease, r.maxHold)
	}
	if r.untilComplete {
		r.renew, r.renewLease, r.maxHold = true, r.lease, 0
	}
	return r, nil
}

var errNoOption = fault.Invalid("an option is nil")

// bound applies the wait of the request to its context.
func (r *request) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.bounded {
		return fault.WithWait(ctx, r.wait)
	}
	return ctx, func() {}
}

// waitForSet makes the refusal that nobody has set the value yet an error to wait for, if the caller wants
// that.
func (r *request) waitForSet(err error) error {
	if r.awaitSet && r.waits && transport.HasCode(err, "LATCHKEY_UNSET") {
		return fault.ErrNotSetYet
	}
	return err
}

// named returns the owner that By names, or the zero Owner.
func (r *request) named() identity.Owner {
	if r.by == nil {
		return identity.Owner{}
	}
	return *r.by
}

func (r *request) apply(s setting) error {
	switch s.kind {
	case settingWait:
		if s.d <= 0 {
			return fault.Invalid("the wait %v is not positive; to make one attempt, call the method that begins with Try", s.d)
		}
		r.wait, r.bounded = s.d, true
	case settingLease:
		r.lease, r.renew, r.permanent = s.d, false, s.d == lease.NoExpiry
		if r.permanent {
			r.lease = lease.Permanent
			return nil
		}
		return lease.Check("the lease", s.d)
	case settingMaxHold:
		r.maxHold = s.d
		return lease.Check("the maximum hold", s.d)
	case settingAtLeast:
		r.atLeast = s.d
		return lease.Check("the time of AtLeast", s.d)
	case settingBy:
		owner := s.owner // a copy, so that not every option is allocated
		r.by = &owner
		return s.owner.MayReenter()
	case settingNote:
		r.note = s.note
		return identity.CheckText("the note", s.note, identity.MaxNote)
	case settingAwaitSet:
		r.awaitSet = true
	case settingUnsetIsOpen:
		r.unsetIsOpen = true
	case settingUntilComplete:
		r.untilComplete = true
	case settingOfClient:
		r.ofClient = s.d
	case settingTogether:
		r.together = s.n
	default:
		return errNoOption
	}
	return nil
}

// maxCount is the largest count that Redisson supports.
const maxCount = math.MaxInt32

// checkNumber checks a number of things. what is the text for it.
func checkNumber(what string, n, least int) error {
	if n < least || n > maxCount {
		return fault.Invalid(what+", want at least %d and at most %d", n, least, maxCount)
	}
	return nil
}
