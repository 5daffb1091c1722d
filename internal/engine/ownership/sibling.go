package ownership

import "github.com/latchkey-go/latchkey/internal/engine/hold"

// Nested returns the ownership that reads for the owner, which writes: under a hold of it, or, if under is nil, for its
// owner. read makes one if there is none. Nested returns nil if the hold has ended: another goroutine may write under
// the same owner by then.
func (o *Ownership) Nested(under *hold.Item, read func() *Ownership) *Ownership {
	o.mu.Lock()
	defer o.mu.Unlock()
	if under != nil && !under.Active() {
		return nil
	}
	if o.Sibling == nil || !o.Sibling.Usable() {
		o.Sibling = read()
	}
	return o.Sibling
}
