package latchkey

// primitive is a lock as the engine sees it: a name in a client, and the spec of its kind.
type primitive struct {
	client *Client
	spec   *spec
	key    string // as Redis knows it
	names  *keys  // of the lock, or nil: see keys
}

func newPrimitive(c *Client, s *spec, name string) *primitive {
	p := &primitive{}
	p.init(c, s, name)
	return p
}

// init initializes a primitive that is a part of something else.
func (p *primitive) init(c *Client, s *spec, name string) {
	p.initOf(c, s, keysFor(c, s, name))
}

// initOf is init with known keys.
func (p *primitive) initOf(c *Client, s *spec, names *keys) {
	*p = primitive{c, s, names.key, names}
	if names.family == "" { // otherwise they are complete
		s.complete(names)
	}
}

// complete sets the names that are specific to this kind of lock.
func (s *spec) complete(k *keys) {
	if s.channel != nil {
		k.channel = s.channel(k.key)
	}
	if s.moreKeys != nil {
		s.moreKeys(k)
	}
}

// keys returns the names under which the lock lives in Redis. There may be many holds, and a hold needs the
// keys only for its release, so it looks them up instead of storing them. It does not map the name again: the
// program's NameMapper may lock a mutex.
func (p *primitive) keys() *keys {
	if p.names != nil {
		return p.names
	}
	if k := p.client.names.find(p.spec.family, p.Name()); k != nil && k.key == p.key {
		return k
	}
	return p.client.cacheKeys(p.spec, keysOfKey(p.Name(), p.key))
}

// keysFor returns the keys of a lock, from the cache if the client used them recently.
func keysFor(c *Client, s *spec, name string) *keys {
	if k := c.names.find(s.family, name); k != nil {
		return k
	}
	k, err := c.options.keysOf(name)
	if err != nil {
		return k
	}
	return c.cacheKeys(s, k)
}

// cacheKeys completes the keys of a lock, and caches them.
func (c *Client) cacheKeys(s *spec, k *keys) *keys {
	s.complete(k)
	k.family = s.family
	c.names.add(k)
	return k
}

// ofHold returns the primitive for a hold, without the keys if they can be looked up by the name in the key.
func (p *primitive) ofHold() primitive {
	own := *p
	if p.names != nil && p.names.family != "" && p.client.options.NameMapper == nil {
		own.names = nil
	}
	return own
}

// invalid returns why the name cannot be used, or nil.
func (p *primitive) invalid() error { return p.keys().invalid }

// Name returns the name as the program gave it.
func (p *primitive) Name() string {
	if p.names != nil {
		return p.names.name
	}
	return p.key[len(p.client.options.KeyPrefix):]
}

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
