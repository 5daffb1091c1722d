package latchkey

// primitive is a lock as the engine sees it: a name in a client, and the spec of its kind.
type primitive struct {
	*keys
	client *Client
	spec   *spec
}

func newPrimitive(c *Client, s *spec, name string) *primitive {
	names, _ := c.options.keysOf(name) // which knows why the name cannot be used
	return primitiveOf(c, s, names)
}

// primitiveOf returns a primitive with known keys.
func primitiveOf(c *Client, s *spec, names *keys) *primitive {
	if s.channel != nil {
		names.channel = s.channel(names.key)
	}
	return &primitive{names, c, s}
}

// Name returns the name as the program gave it.
func (p *primitive) Name() string { return p.name }

// Client returns the client that made the lock.
func (p *primitive) Client() *Client { return p.client }

// lineKey returns the name under which goroutines wait for a lock. Both sides of a read/write lock have the same.
func (p *primitive) lineKey() lineKey {
	kind := p.spec.kind
	if p.spec.side != "" {
		kind = KindWrite
	}
	return lineKey{kind, p.key}
}
