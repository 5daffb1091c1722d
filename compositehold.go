package latchkey

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// compositeHold is several holds that are one, for as long as enough of them last: the
// [holder] of a [MultiLock] and of a [RedLock].
type compositeHold struct {
	lifecycle // guarded by mu

	name string
	need int // how many of the members have to last
	// patience is for how long members that are silent are waited for when they are not
	// needed.
	patience time.Duration

	// arriving is closed when all that were asked to become members have answered or
	// had their time, or nil if all answer before there is a hold.
	arriving chan struct{}

	releasing sync.Mutex // one release after the other

	mu      sync.Mutex
	members []*Hold // by the order of the locks; nil where there is none
	latest  []*Hold // the same with those that are over
	alive   int
	open    bool        // all that there were to begin with have been added
	mending *time.Timer // looks for members that are missing, or nil
	// confined binds members that come from now on, or is nil.
	confined *confinement
	// Of a release: how many members were held until then, and whether it is to be
	// repeated because the outcome of some is unknown.
	confirmed int
	again     bool
}

// newCompositeHold makes a group for n locks without any member yet.
func newCompositeHold(name string, n, need int, patience time.Duration) *compositeHold {
	return &compositeHold{name: name, need: need, patience: patience, members: make([]*Hold, n), latest: make([]*Hold, n)}
}

func (g *compositeHold) lockName() string { return g.name }
func (g *compositeHold) owner() Owner     { return Owner{} }
func (g *compositeHold) token() int64     { return 0 }
func (g *compositeHold) isPermit() bool   { return false }

func (g *compositeHold) life() (*lifecycle, *sync.Mutex) { return &g.lifecycle, &g.mu }

// unreleased returns the client of a member.
func (g *compositeHold) unreleased() *Client {
	g.mu.Lock()
	over := g.over() || g.leaving
	g.mu.Unlock()
	if over {
		return nil
	}
	for _, h := range g.present() {
		if client := h.inner().unreleased(); client != nil {
			return client
		}
	}
	return nil
}

// latestMembers includes those that are over.
func (g *compositeHold) latestMembers() []*Hold {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.latest)
}

// add makes a hold a member. It reports false if the group is over, and the hold is to
// be released.
func (g *compositeHold) add(i int, h *Hold) bool {
	g.mu.Lock()
	if g.over() || g.leaving || g.members[i] != nil {
		g.mu.Unlock()
		return false
	}
	g.members[i], g.latest[i] = h, h
	g.alive++
	confined := g.confined
	g.mu.Unlock()
	if confined != nil {
		h.inner().confine(*confined)
	}
	if err := h.onEnd(func(cause error) { g.memberEnded(i, h, cause) }); err != nil {
		g.memberEnded(i, h, err)
	}
	return true
}

// memberEnded takes note that a member is over.
func (g *compositeHold) memberEnded(i int, h *Hold, cause error) {
	g.mu.Lock()
	var endings []*ending
	if g.members[i] == h && !g.leaving {
		g.members[i] = nil
		g.alive--
	}
	ends := g.open && g.alive < g.need && !g.leaving && !g.over()
	if ends {
		endings = g.end(cmp.Or(cause, ErrLost))
	}
	g.mu.Unlock()
	endAll(endings, cause)
	if ends {
		g.releaseRest()
	}
}

// releaseRest releases what is left of a group that is lost, a moment after that was told:
// nobody is to be kept out by a hold that is none.
func (g *compositeHold) releaseRest() {
	time.AfterFunc(timerLateness, func() { giveBack(context.Background(), g.present(), g.patience) })
}

// begin makes the group a hold, and tells why if too few members are left for it.
func (g *compositeHold) begin() error {
	g.mu.Lock()
	g.open = true
	if g.alive < g.need {
		_ = g.end(ErrLost)
	}
	g.mu.Unlock()
	return g.err()
}

// held is how many members are there.
func (g *compositeHold) held() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.alive
}

// missing are the places of members that are not there, nil if the group is over.
func (g *compositeHold) missing() []int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over() || g.leaving {
		return nil
	}
	var places []int
	for i, h := range g.members {
		if h == nil {
			places = append(places, i)
		}
	}
	return places
}

// places returns the members by the order of the locks, nil where there is none.
func (g *compositeHold) places() []*Hold {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.members)
}

// present returns the members that are there.
func (g *compositeHold) present() []*Hold {
	return slices.DeleteFunc(g.places(), func(h *Hold) bool { return h == nil })
}

// err is why the group is not held, or nil. Every member is looked at.
func (g *compositeHold) err() error {
	for _, h := range g.present() {
		_ = h.Err() // which tells the group, should the time of the member be over
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.overBecause()
}

// validFor is for how long enough members can be relied on.
func (g *compositeHold) validFor() time.Duration {
	if g.err() != nil {
		return 0
	}
	var times []time.Duration
	for _, h := range g.present() {
		times = append(times, h.ValidFor())
	}
	slices.SortFunc(times, func(a, b time.Duration) int { return cmp.Compare(b, a) })
	if len(times) < g.need {
		return 0
	}
	return times[g.need-1]
}

// count is how often the members are held by their owners.
func (g *compositeHold) count() int {
	if g.err() != nil {
		return 0
	}
	least := 0
	for _, h := range g.present() {
		if n := h.Count(); least == 0 || n < least {
			least = n
		}
	}
	return least
}

// find returns the live hold of a lock, or of one side of it, among the members that are
// there now: also one that came late.
func (g *compositeHold) find(p *primitive, side Kind) *holdState {
	if g.err() != nil {
		return nil
	}
	for _, member := range g.present() {
		if h := member.inner().find(p, side); h != nil {
			return h
		}
	}
	return nil
}

// beginRelease begins the end of a group: it takes no members any more. It returns those that it
// has.
func (g *compositeHold) beginRelease() []*Hold {
	g.mu.Lock()
	g.leaving = true
	endings := g.takeEndings()
	if g.mending != nil {
		g.mending.Stop()
	}
	members := slices.Clone(g.members)
	g.mu.Unlock()
	endAll(endings, ErrNotHeld)
	return members
}

// abandon ends a group that has not become a hold.
func (g *compositeHold) abandon(ctx context.Context) { giveBack(ctx, g.beginRelease(), g.patience) }

// unlock releases every member. Who comes second waits for the first.
func (g *compositeHold) unlock(ctx context.Context) error {
	g.releasing.Lock()
	defer g.releasing.Unlock()
	lost := g.err()
	g.mu.Lock()
	told, again, cause := g.reported, g.again, g.cause
	g.mu.Unlock()
	if told {
		return fail("unlock", g.name, ErrNotHeld, cause)
	}
	enough := g.need
	if lost != nil && !again {
		enough = 0 // whatever comes of it, it is no release
	}
	members := g.beginRelease()
	return g.concludeRelease(lost, members, most(context.Background(), members, enough, g.patience, func(h *Hold) error { return h.Unlock(ctx) }))
}

// concludeRelease says what a release of the members means. Those that were released are not
// released again.
func (g *compositeHold) concludeRelease(lost error, members []*Hold, errs []error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	lasted, unknown := 0, false
	for i, h := range members {
		switch {
		case h == nil:
		case errs[i] == nil:
			g.members[i] = nil
			lasted++
		case errors.Is(errs[i], ErrNotHeld):
			g.members[i] = nil
		default:
			unknown = true
		}
	}
	g.alive -= lasted
	g.confirmed += lasted
	switch {
	case lost != nil && !g.again:
		g.reported = true
		return fail("unlock", g.name, append([]error{ErrNotHeld, lost}, errs...)...)
	case g.confirmed >= g.need:
		g.reported, g.released = true, true
		return nil
	case unknown:
		g.again = true // Unlock may be called again
		return fail("unlock", g.name, errs...)
	}
	g.reported = true
	return fail("unlock", g.name, append([]error{ErrNotHeld, ErrLost}, errs...)...)
}

// extend extends every member, and fails if too few could be. Who is about to become one
// is waited for: others may be silent by now, and its lease is to be as long as theirs.
func (g *compositeHold) extend(ctx context.Context, d time.Duration) error {
	if g.arriving != nil {
		select {
		case <-g.arriving:
		case <-ctx.Done():
		}
	}
	if err := g.err(); err != nil {
		return fail("extend", g.name, ErrNotHeld, err)
	}
	members := g.places()
	errs := most(context.Background(), members, g.need, g.patience, func(h *Hold) error { return h.Extend(ctx, d) })
	done := 0
	for i, err := range errs {
		if members[i] != nil && err == nil {
			done++
		}
	}
	if done < g.need {
		return fail("extend", g.name, errs...)
	}
	if err := g.err(); err != nil {
		return fail("extend", g.name, ErrNotHeld, err) // it took too long
	}
	return nil
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
		h.inner().confine(c)
	}
}
