package latchkey

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// acquirable is a lock as an acquisition sees it.
type acquirable struct {
	ownership.Lock

	spec *acquireSpec
}

func newAcquirable(c *ownership.Engine, s *acquireSpec, name string) *acquirable {
	names, _ := c.Config.Naming().Keys(name) // which knows why the name cannot be used
	return acquirableOf(c, s, names)
}

// acquirableOf returns a lock with known keys.
func acquirableOf(c *ownership.Engine, s *acquireSpec, names *keyspace.Keys) *acquirable {
	return &acquirable{*ownership.LockOf(c, s.Spec, names), s}
}

// isFor reports whether an acquisition of the lock may go on with the ownership: it is of the same kind and name.
func (p *acquirable) isFor(o *ownership.Ownership) bool {
	return p.spec.Spec == o.Lock.Spec && p.Name() == o.Lock.Name()
}

// acquireSpec is what an acquisition needs to know of a kind of lock.
type acquireSpec struct {
	*ownership.Spec

	attempts attemptProtocol
	// resolve finds the ownership, possibly shared with other calls, that an acquisition is for;
	// nil means a new owner.
	resolve func(context.Context, *acquisition) (*ownership.Ownership, error)
	// fresh makes the ownership of a new owner, and others that begin together with it.
	fresh func(*acquisition) (o *ownership.Ownership, others []*ownership.Ownership)
	// wait makes attempts until one acquires. It is nil for the kinds whose acquisitions wait in
	// one line for each key.
	wait func(context.Context, *acquisition) error
	// backoff returns how long a spin lock rests after that many rounds. It is nil for all others.
	backoff func(round int) time.Duration
	// ceiling is the longest time between two attempts of the front, or nil for the poll ceiling.
	ceiling func(*ownership.Engine) time.Duration
}

// attemptProtocol is what attempts to acquire a kind of lock send, and how they read the answers. Every call is
// safe to send twice, because counts are absolute.
type attemptProtocol interface {
	// acquireCall makes the ownership hold the lock count times. round is 0 for the first attempt of an
	// acquisition.
	acquireCall(a *acquisition, count, round int) script.Call
	// readRefusal reads a reply to acquireCall that is a number or an array: a refusal. The error matches
	// ErrNotAcquired. left is the time after which to try again, negative if the script does not know.
	readRefusal(a *acquisition, ans transport.Answer) (left time.Duration, err error)
}
