package latchkey

import "sync/atomic"

// primitive is a lock as the engine sees it: a name in a client, and the spec of its kind.
type primitive struct {
	*keys
	client  *Client
	spec    *spec
	channel string      // on which its release is published
	fair    []string    // the keys of a fair lock
	invalid error       // why the name cannot be used
	reader  *primitive  // of the write side of a read/write lock: the other side
	noQueue atomic.Bool // the user may not use its queue
}

func newPrimitive(c *Client, s *spec, name string) *primitive {
	p := &primitive{}
	p.init(c, s, name)
	return p
}

// init makes a primitive that is a part of something else.
func (p *primitive) init(c *Client, s *spec, name string) {
	names, err := c.names.keysOf(&c.options, name)
	p.initOf(c, s, names)
	p.invalid = err
}

// initOf is init with keys that are known.
func (p *primitive) initOf(c *Client, s *spec, names *keys) {
	p.client, p.spec, p.keys, p.channel = c, s, names, names.channel
	if s.channel != nil {
		p.channel = s.channel(p.key)
	}
}

// Name returns the name as the program gave it.
func (p *primitive) Name() string { return p.name }
