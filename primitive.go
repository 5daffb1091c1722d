package latchkey

import (
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/line"
)

// primitive is a lock as the engine sees it: a name in a client, and the spec of its kind.
type primitive struct {
	names  *keyspace.Keys
	client *engine
	spec   *spec
}

// primitiveOf returns a primitive with known keys.
func primitiveOf(c *engine, s *spec, names *keyspace.Keys) *primitive {
	if s.channel != nil {
		names.Channel = s.channel(names.Key)
	}
	return &primitive{names, c, s}
}

// Name returns the name as the program gave it.
func (p *primitive) Name() string { return p.names.Name }

// lineKey returns the name under which goroutines wait for a lock. Both sides of a read/write lock have the same.
func (p *primitive) lineKey() line.Key {
	kind := p.spec.kind
	if p.spec.side != "" {
		kind = keyspace.KindWrite
	}
	return line.Key{Kind: kind, Key: p.names.Key}
}
