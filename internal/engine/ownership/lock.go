package ownership

import (
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/line"
)

// Lock is a lock as the engine sees it: a name in a client, and the spec of its kind.
type Lock struct {
	Names  *keyspace.Keys
	Client *core.Parts
	Spec   *Spec
}

// LockOf returns a lock with known keys.
func LockOf(c *core.Parts, s *Spec, names *keyspace.Keys) *Lock {
	if s.Channel != nil {
		names.Channel = s.Channel(names.Key)
	}
	return &Lock{names, c, s}
}

// Name returns the name as the program gave it.
func (p *Lock) Name() string { return p.Names.Name }

// LineKey returns the name under which goroutines wait for a lock. Both sides of a read/write lock
// have the same.
func (p *Lock) LineKey() line.Key {
	kind := p.Spec.Kind
	if p.Spec.Side != "" {
		kind = keyspace.KindWrite
	}
	return line.Key{Kind: kind, Key: p.Names.Key}
}

// Table implements [line.Held], for the ownerships of the lock.
func (p *Lock) Table() *line.Table { return p.Client.Lines }

// PassedIn implements [line.Held].
func (p *Lock) PassedIn() line.Side {
	if !p.Spec.Passes {
		return line.Only
	}
	return p.Spec.Line
}

// KeepsOut implements [line.Held]. Others may have permits too.
func (p *Lock) KeepsOut() bool { return !p.Spec.Permit }
