package latchkey

// primitive is the working part of every exclusive lock.
type primitive struct {
	keys
	client  *Client
	spec    *spec
	invalid error      // why the name cannot be used
	reader  *primitive // of the write side of a read/write lock: the other side
}

func newPrimitive(c *Client, k *spec, name string) *primitive {
	names, err := c.options.keysOf(name)
	return &primitive{keys: names, client: c, spec: k, invalid: err}
}

// Name returns the name as the program gave it.
func (p *primitive) Name() string { return p.name }
