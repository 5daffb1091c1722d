package latchkey

import "sync/atomic"

// primitive is a lock as the engine sees it: a name in a client, and the spec of its kind.
type primitive struct {
	keys
	client  *Client
	spec    *spec
	invalid error       // why the name cannot be used
	reader  *primitive  // of the write side of a read/write lock: the other side
	noQueue atomic.Bool // the user may not use its queue
}

func newPrimitive(c *Client, s *spec, name string) *primitive {
	names, err := c.options.keysOf(name)
	return &primitive{keys: names, client: c, spec: s, invalid: err}
}

// Name returns the name as the program gave it.
func (p *primitive) Name() string { return p.name }
