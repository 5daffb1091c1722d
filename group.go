package latchkey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
)

// group is several holds that are one, for as long as enough of them last. Its state is
// that of a grip, guarded by mu.
type group struct {
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
	open    bool // all that there were to begin with have been added
	state   grip
	mending *time.Timer // looks for members that are missing, or nil
	// confined binds members that come from now on, or is nil.
	confined *confinement
	// Of a release: how many members were held until then, and whether it is to be
	// repeated because the outcome of some is unknown.
	confirmed int
	again     bool
}

// newGroup makes a group for n locks without any member yet.
func newGroup(name string, n, need int, patience time.Duration) *group {
	return &group{name: name, need: need, patience: patience, members: make([]*Hold, n), latest: make([]*Hold, n)}
}

// newGroupHold makes the handle, whose loss is noticed as that of any other: see newHold.
func newGroupHold(g *group) *Hold {
	h := &Hold{group: g}
	runtime.SetFinalizer(h, (*Hold).abandoned)
	return h
}

// dropped reports a group whose handle the garbage collector has found.
func (g *group) dropped() {
	g.mu.Lock()
	over := g.state.over() || g.state.leaving
	g.mu.Unlock()
	if client := g.client(); !over && client != nil {
		client.reporter.log(noticeUnreleased, g.name)
	}
}

// client is that of one of the members, nil if there is none.
func (g *group) client() *Client {
	members := g.present()
	switch {
	case len(members) == 0:
		return nil
	case members[0].group != nil:
		return members[0].group.client()
	}
	return members[0].tenure.client
}

// add makes a hold a member. It reports false if the group is over, and the hold is to
// be released.
func (g *group) add(i int, h *Hold) bool {
	g.mu.Lock()
	if g.state.over() || g.state.leaving || g.members[i] != nil {
		g.mu.Unlock()
		return false
	}
	g.members[i], g.latest[i] = h, h
	g.alive++
	confined := g.confined
	g.mu.Unlock()
	if confined != nil {
		h.confine(*confined)
	}
	if err := h.onEnd(func(cause error) { g.ended(i, h, cause) }); err != nil {
		g.ended(i, h, err)
	}
	return true
}

// ended takes note that a member is over.
func (g *group) ended(i int, h *Hold, cause error) {
	g.mu.Lock()
	var endings []*ending
	if g.members[i] == h && !g.state.leaving {
		g.members[i] = nil
		g.alive--
	}
	ends := g.open && g.alive < g.need && !g.state.leaving && !g.state.over()
	if ends {
		endings = g.state.end(cmp.Or(cause, ErrLost))
	}
	g.mu.Unlock()
	endAll(endings, cause)
	if ends {
		g.letGo()
	}
}

// letGo releases what is left of a group that is lost, a moment after that was told:
// nobody is to be kept out by a hold that is none.
func (g *group) letGo() {
	time.AfterFunc(timerLateness, func() { giveBack(context.Background(), g.present(), g.patience) })
}

// begin makes the group a hold, and tells why if too few members are left for it.
func (g *group) begin() error {
	g.mu.Lock()
	g.open = true
	if g.alive < g.need {
		_ = g.state.end(ErrLost)
	}
	g.mu.Unlock()
	return g.err()
}

// held is how many members are there.
func (g *group) held() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.alive
}

// missing are the places of members that are not there, nil if the group is over.
func (g *group) missing() []int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.state.over() || g.state.leaving {
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
func (g *group) places() []*Hold {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.members)
}

// present returns the members that are there.
func (g *group) present() []*Hold {
	return slices.DeleteFunc(g.places(), func(h *Hold) bool { return h == nil })
}

// err is why the group is not held, or nil. Every member is looked at.
func (g *group) err() error {
	for _, h := range g.present() {
		_ = h.Err() // which tells the group, should the time of the member be over
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.state.ended()
}

// validFor is for how long enough members can be relied on.
func (g *group) validFor() time.Duration {
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
func (g *group) count() int {
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
func (g *group) find(p *primitive, side Kind) *Hold {
	if g.err() != nil {
		return nil
	}
	for _, member := range g.present() {
		if h := member.find(p, side); h != nil {
			return h
		}
	}
	return nil
}

// leave begins the end of a group: it takes no members any more. It returns those that it
// has.
func (g *group) leave() []*Hold {
	g.mu.Lock()
	g.state.leaving = true
	endings := g.state.takeEndings()
	if g.mending != nil {
		g.mending.Stop()
	}
	members := slices.Clone(g.members)
	g.mu.Unlock()
	endAll(endings, ErrNotHeld)
	return members
}

// abandon ends a group that has not become a hold.
func (g *group) abandon(ctx context.Context) { giveBack(ctx, g.leave(), g.patience) }

// unlock releases every member. Who comes second waits for the first.
func (g *group) unlock(ctx context.Context) error {
	g.releasing.Lock()
	defer g.releasing.Unlock()
	lost := g.err()
	g.mu.Lock()
	told, again, cause := g.state.told, g.again, g.state.cause
	g.mu.Unlock()
	if told {
		return fail("unlock", g.name, ErrNotHeld, cause)
	}
	enough := g.need
	if lost != nil && !again {
		enough = 0 // whatever comes of it, it is no release
	}
	members := g.leave()
	return g.settle(lost, members, most(context.Background(), members, enough, g.patience, func(h *Hold) error { return h.Unlock(ctx) }))
}

// settle says what a release of the members means. Those that were released are not
// released again.
func (g *group) settle(lost error, members []*Hold, errs []error) error {
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
		g.state.told = true
		return fail("unlock", g.name, append([]error{ErrNotHeld, lost}, errs...)...)
	case g.confirmed >= g.need:
		g.state.told, g.state.released = true, true
		return nil
	case unknown:
		g.again = true // Unlock may be called again
		return fail("unlock", g.name, errs...)
	}
	g.state.told = true
	return fail("unlock", g.name, append([]error{ErrNotHeld, ErrLost}, errs...)...)
}

// giveBack unlocks holds that nobody relies on. After a while, or when ctx ends, those that
// are silent are left to the background.
func giveBack(ctx context.Context, holds []*Hold, patience time.Duration) {
	most(ctx, holds, 0, patience, func(h *Hold) error { return h.Unlock(context.Background()) })
}

// most calls f for holds, all at once, and returns their errors by their places. When it
// has succeeded for enough of them, the others are waited for only a while: an errSilent
// stands for their results. When ctx ends, none is waited for.
func most(ctx context.Context, holds []*Hold, enough int, patience time.Duration, f func(*Hold) error) []error {
	errs := make([]error, len(holds))
	type result struct {
		place int
		err   error
	}
	results := make(chan result, len(holds))
	left := 0
	for i, h := range holds {
		if h == nil {
			continue
		}
		left++
		errs[i] = ofMember(i, errors.Join(ErrUnknownOutcome, unavailable(errSilent)))
		go func() { results <- result{i, f(h)} }()
	}
	var silence <-chan time.Time
	for ; left > 0; left-- {
		if enough <= 0 && silence == nil {
			silence = time.After(patience)
		}
		select {
		case r := <-results:
			errs[r.place] = ofMember(r.place, r.err)
			if r.err == nil {
				enough--
			}
		case <-silence:
			return errs
		case <-ctx.Done():
			return errs
		}
	}
	return errs
}

// ofMember says whose error it is: the members of a group often share their name.
func ofMember(place int, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("member %d: %w", place+1, err)
}

// indexes are the places of all.
func indexes[T any](all []T) []int {
	places := make([]int, len(all))
	for i := range places {
		places[i] = i
	}
	return places
}

// atOnce calls f for each of several things at the same time.
func atOnce[T any](all []T, f func(T) error) []error {
	errs := make([]error, len(all))
	var calls sync.WaitGroup
	for i, each := range all {
		calls.Go(func() { errs[i] = f(each) })
	}
	calls.Wait()
	return errs
}

// extend extends every member, and fails if too few could be. Who is about to become one
// is waited for: others may be silent by now, and its lease is to be as long as theirs.
func (g *group) extend(ctx context.Context, d time.Duration) error {
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
