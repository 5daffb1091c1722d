// Package request checks the options of one call.
package request

import (
	"context"
	"math"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/lease"
)

// Request is one acquisition with checked options.
type Request struct {
	wait       time.Duration
	Lease      time.Duration // to be sent
	RenewLease time.Duration // set by renewals
	MaxHold    time.Duration
	OfClient   time.Duration  // the MaxHold of the client, for a renewed hold without one of its own
	AtLeast    time.Duration  // how long the lock stays taken at least, or 0
	As         identity.Owner // zero if the option is not there
	Note       string         // of the hold, or ""
	Together   int
	Parent     *context.Context // of its events, or nil: see report.Reporter.Parent

	Waits         bool // for longer than one attempt
	bounded       bool // by Wait
	Renew         bool
	AwaitSet      bool
	UnsetIsOpen   bool
	Permanent     bool
	UntilComplete bool // see hold.Confinement
}

// New checks the options of one acquisition. defaultLease and maxHold are those of the client;
// maxHold is 0 for none. waits says whether the method waits for longer than one attempt.
func New(defaultLease, maxHold time.Duration, waits bool, settings []Setting) (Request, error) {
	r := Request{Waits: waits, Lease: defaultLease, RenewLease: defaultLease, OfClient: maxHold, Renew: true}
	for _, each := range settings {
		if err := r.apply(each); err != nil {
			return r, err
		}
	}
	switch {
	case r.Permanent && r.Together == 0:
		return r, fault.Invalid("Lease(NoExpiry) applies to permits only")
	case r.MaxHold > 0 && !r.Renew && r.Lease > r.MaxHold:
		return r, fault.Invalid("the lease %v is longer than MaxHold, %v", r.Lease, r.MaxHold)
	case r.AtLeast > r.Lease && !r.Renew:
		return r, fault.Invalid("the lease %v is shorter than AtLeast(%v)", r.Lease, r.AtLeast)
	case r.MaxHold > 0 && r.AtLeast > r.MaxHold:
		return r, fault.Invalid("MaxHold, %v, is shorter than AtLeast(%v)", r.MaxHold, r.AtLeast)
	}
	if r.MaxHold > 0 || !r.Renew || r.UntilComplete {
		r.OfClient = 0
	}
	if r.OfClient > 0 {
		r.MaxHold = max(r.OfClient, r.AtLeast)
	}
	r.Lease = max(r.Lease, r.AtLeast) // in case the holder crashes
	if r.MaxHold > 0 {
		r.Lease = min(r.Lease, r.MaxHold)
	}
	if r.UntilComplete {
		r.Renew, r.RenewLease, r.MaxHold = true, r.Lease, 0
	}
	return r, nil
}

// ErrNoOption is the error of a call with an option that is nil.
var ErrNoOption = fault.Invalid("an option is nil")

// Bound applies the wait of the request to its context.
func (r *Request) Bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.bounded {
		return fault.WithWait(ctx, r.wait)
	}
	return ctx, func() {}
}

// AwaitsSet reports whether the call waits until somebody has set the value.
func (r *Request) AwaitsSet() bool { return r.AwaitSet && r.Waits }

// Confines reports whether the request has limits that apply to a member of a group only once all
// members are there: see hold.Confinement.
func (r *Request) Confines() bool { return r.Waits && (!r.Renew || r.MaxHold > 0) }

func (r *Request) apply(s Setting) error {
	switch s.Kind {
	case Wait:
		if s.D <= 0 {
			return fault.Invalid("the wait %v is not positive; "+
				"to make one attempt, call the method that begins with Try", s.D)
		}
		r.wait, r.bounded = s.D, true
	case Lease:
		r.Lease, r.Renew, r.Permanent = s.D, false, s.D == lease.NoExpiry
		if r.Permanent {
			r.Lease = lease.Permanent
			return nil
		}
		return lease.Check("the lease", s.D)
	case MaxHold:
		r.MaxHold = s.D
		return lease.Check("MaxHold", s.D)
	case AtLeast:
		r.AtLeast = s.D
		return lease.Check("the time of AtLeast", s.D)
	case As:
		r.As = s.Owner
		return s.Owner.MayReenter()
	case Note:
		r.Note = s.Note
		return identity.CheckText("the note", s.Note, identity.MaxNote)
	case AwaitSet:
		r.AwaitSet = true
	case UnsetIsOpen:
		r.UnsetIsOpen = true
	case UntilComplete:
		r.UntilComplete = true
	case Together:
		r.Together = s.N
	default:
		return ErrNoOption
	}
	return nil
}

// MaxCount is the largest count that Redisson supports.
const MaxCount = math.MaxInt32

// CheckNumber checks a number of things. what is the text for it.
func CheckNumber(what string, n, least int) error {
	if n < least || n > MaxCount {
		return fault.Invalid(what+", want at least %d and at most %d", n, least, MaxCount)
	}
	return nil
}
