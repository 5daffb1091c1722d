package latchkey

// primitive is a lock as the engine sees it: a name in a client, and the spec of its kind.
type primitive struct {
	client *Client
	spec   *spec
	key    string // as Redis knows it
	names  *keys  // under which it lives in Redis
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
	return &primitive{c, s, names.key, names}
}

// keys returns the names under which the lock lives in Redis.
func (p *primitive) keys() *keys { return p.names }

// invalid returns why the name cannot be used, or nil.
func (p *primitive) invalid() error { return p.keys().invalid }

// Name returns the name as the program gave it.
func (p *primitive) Name() string { return p.names.name }

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
