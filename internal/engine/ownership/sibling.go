package ownership

import "github.com/latchkey-go/latchkey/internal/engine/hold"

// Nest returns the ownership on the side of p, which reads, for an owner that writes: under a hold of it, or, if under
// is nil, for its owner. It returns nil if the hold has ended: another goroutine may write under the same owner by
// then.
func (o *Ownership) Nest(p *Lock, under *hold.Item) *Ownership {
	o.mu.Lock()
	defer o.mu.Unlock()
	if under != nil && !under.Active() {
		return nil
	}
	if o.Sibling == nil || !o.Sibling.Usable() {
		o.Sibling = o.Lock.Client.Registry.Nested(p, o)
	}
	return o.Sibling
}

// Nested makes an ownership that reads, under the name of an owner that writes.
func (r *Registry) Nested(p *Lock, writer *Ownership) *Ownership {
	o := r.Build(p, writer.Owner(), r.client.Number(), false)
	o.Sibling = writer
	r.Replace(OwnedName{p.Names.Key, p.Spec.Side, o.Owner()}, o)
	return o
}
