package latchkey

// nest returns the ownership on the side of p, which reads, for an owner that writes: under a hold of it, or, if under
// is nil, for its owner. It returns nil if the hold has ended: another goroutine may write under the same owner by then.
func (o *ownership) nest(p *primitive, under *holdState) *ownership {
	o.mu.Lock()
	defer o.mu.Unlock()
	if under != nil && !under.Active() {
		return nil
	}
	if o.sibling == nil || !o.sibling.usable() {
		o.sibling = o.lock.client.registry.nested(p, o)
	}
	return o.sibling
}

// nested makes an ownership that reads, under the name of an owner that writes.
func (r *registry) nested(p *primitive, writer *ownership) *ownership {
	o := r.build(p, writer.owner(), r.client.Number(), false)
	o.sibling = writer
	r.replace(ownedName{p.names.Key, p.spec.side, o.owner()}, o)
	return o
}
