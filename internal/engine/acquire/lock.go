package acquire

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// Lock is a lock as an acquisition sees it.
type Lock struct {
	ownership.Lock

	Spec *Spec
}

// NewLock returns a lock with that name. If the name cannot be used, its keys say why.
func NewLock(c *core.Parts, s *Spec, name string) *Lock {
	return LockOf(c, s, c.Config.Names(name))
}

// LockOf returns a lock with known keys.
func LockOf(c *core.Parts, s *Spec, names *keyspace.Keys) *Lock {
	return &Lock{*ownership.LockOf(c, s.Spec, names), s}
}

// With returns a lock of that kind with the name, for a type that contains it.
func (s *Spec) With(c *core.Parts, name string) Lock {
	return Lock{*ownership.LockOf(c, s.Spec, c.Config.Names(name)), s}
}

// isFor reports whether an acquisition of the lock may go on with the ownership: it is of the same
// kind and name.
func (p *Lock) isFor(o *ownership.Ownership) bool {
	return p.Spec.Spec == o.Spec && p.Name() == o.Name()
}

// Spec is what an acquisition needs to know of a kind of lock.
type Spec struct {
	*ownership.Spec

	Attempts Attempts
	// Resolve finds the ownership, possibly shared with other calls, that an acquisition is for, or
	// returns nil for a new owner. It is nil for the kinds whose locks have one side.
	Resolve func(context.Context, *Acquisition) (*ownership.Ownership, error)
	// Fresh makes the ownership of a new owner, and others that begin together with it. It is nil
	// for the kinds of which a call acquires one.
	Fresh func(*Acquisition) (o *ownership.Ownership, others []*ownership.Ownership)
	// Wait makes attempts until one acquires. It is nil for the kinds whose acquisitions wait in
	// one line for each key.
	Wait func(context.Context, *Acquisition) error
	// Backoff returns how long a spin lock rests after that many rounds. It is nil for all others.
	Backoff func(round int) time.Duration
	// Ceiling is the longest time between two attempts of the front, or nil for the poll ceiling.
	Ceiling func(*core.Parts) time.Duration
}

// Copy returns a spec that can be changed without changing s.
func (s *Spec) Copy() *Spec {
	whole, of := *s, *s.Spec
	whole.Spec = &of
	return &whole
}

// Attempts is what attempts to acquire a kind of lock send, and how they read the answers. Every
// call is safe to send twice, because counts are absolute.
type Attempts interface {
	// AcquireCall makes the ownership hold the lock count times. round is 0 for the first attempt
	// of an acquisition.
	AcquireCall(a *Acquisition, count, round int) script.Call
	// ReadRefusal reads a reply to AcquireCall that is a number or an array: a refusal. The error
	// matches ErrNotAcquired. left is the time after which to try again, negative if the script
	// does not know.
	ReadRefusal(a *Acquisition, ans transport.Answer) (left time.Duration, err error)
}

// CheckAtLeast refuses the option for a lock that cannot stay taken, for the lock of an election,
// which must go to the next candidate at once, and for a Once.
func (p *Lock) CheckAtLeast() error {
	if !p.Spec.IsLock() || p.Spec.Side == keyspace.KindRead || p.Spec.Public {
		return ErrNoAtLeast
	}
	return nil
}

// ErrNoAtLeast is the error of an acquisition with AtLeast of a lock that cannot stay taken.
var ErrNoAtLeast = fault.Invalid("AtLeast does not apply to read locks, MultiLocks, RedLocks, elections and a Once")
