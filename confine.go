package latchkey

import "time"

// While a [MultiLock] waits for a member, those that it holds are renewed, whatever [Lease]
// and [MaxHold] say: these are about the whole, and confine its members when all are there.

// confinement is what binds a hold from a moment on.
type confinement struct {
	fixed bool          // its lease is not renewed any more
	max   time.Duration // it lasts for so long at most, or 0
	from  time.Time     // counted from here
}

// confines reports whether a request asks for anything that has to wait for the whole.
func (r *request) confines() bool { return r.waits && (!r.renew || r.maxHold > 0) }

// confine binds a hold that was renewed without an end until now.
func (h *Hold) confine(c confinement) {
	if h.composite != nil {
		h.composite.confine(c)
		return
	}
	h.ownership.confine(h.state, c)
}

func (t *ownership) confine(g *holdState, c confinement) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.errOf(g) != nil {
		return
	}
	if c.fixed && g.renew {
		g.renew = false
		t.renewing--
	}
	start := t.client.clock().before(time.Since(c.from))
	switch {
	case c.max == 0:
	case g == &t.first:
		t.lease.limit = holdLimit{c.max, start}
	default:
		g.max, g.start = c.max, start
		t.limitHold(g)
	}
	t.plan()
}

// confine binds the members of a group, and those that are about to come. Members that are
// missing are not looked for any more: they would last longer than the others.
func (g *compositeHold) confine(c confinement) {
	g.mu.Lock()
	g.confined = &c
	if g.mending != nil {
		g.mending.Stop()
	}
	g.mu.Unlock()
	for _, h := range g.present() {
		h.confine(c)
	}
}
