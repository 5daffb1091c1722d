package latchkey

import (
	"context"
	"time"
)

// round tries all members at once. After an error nothing is held but what is being
// released; again tells whether another round may go better.
func (l *RedLock) round(ctx context.Context, r *request, settings []setting) (h *Hold, again bool, err error) {
	g := newCompositeHold(l.Name(), len(l.members), l.need, l.memberTimeout(r))
	t := l.try(ctx, l.memberTimeout(r), settings)
	t.gather(ctx, g)
	if late, won := g.elect(r); !won {
		again, err := t.defeat(g.held(), l.need, late)
		t.cancel()
		go t.collect(g)
		g.abandon(ctx)
		return nil, again, err
	}
	g.arriving = make(chan struct{})
	go func() {
		t.collect(g)
		close(g.arriving)
		if r.renew && r.maxHold == 0 { // else a member that came later would last longer
			l.mendLater(context.WithoutCancel(ctx), g, r, settings)
		}
	}()
	return newHold(g), false, nil
}

// elect makes a hold of a majority, if there is one. One that has come too late is none.
func (g *compositeHold) elect(r *request) (late, won bool) {
	if g.held() < g.need || g.begin() != nil {
		return false, false
	}
	late = g.validFor() < leastValidity(r)
	return late, !late
}

// leastValidity is what has to be left of a fixed lease for the hold to be of use.
func leastValidity(r *request) time.Duration {
	if r.renew {
		return MinLease
	}
	return r.lease / 10
}

func (l *RedLock) memberTimeout(r *request) time.Duration {
	if l.options.MemberTimeout > 0 {
		return l.options.MemberTimeout
	}
	return min(max(r.lease/100, minMemberTimeout), maxMemberTimeout)
}

// tries are attempts at several members that are under way.
type tries struct {
	outcomes chan memberResult
	pending  map[int]bool // places of those that have not come to an end
	failures []failure
	members  []member
	timeout  time.Duration
	cancel   context.CancelFunc
}

// memberResult is what came of one.
type memberResult struct {
	place int
	hold  *Hold
	err   error
}

// try begins to try some members, or all. It does not end with the caller's context: who
// is needed no more is released when it comes.
func (l *RedLock) try(ctx context.Context, timeout time.Duration, settings []setting, places ...int) *tries {
	if places == nil {
		places = indexes(l.members)
	}
	ctx, cancel := withWait(context.WithoutCancel(ctx), timeout)
	t := &tries{outcomes: make(chan memberResult, len(places)), pending: map[int]bool{}, members: l.members, timeout: timeout, cancel: cancel}
	for _, i := range places {
		t.pending[i] = true
		go func() {
			h, err := l.members[i].acquire(ctx, "try lock", false, settings)
			t.outcomes <- memberResult{i, h, err}
		}()
	}
	return t
}

// gather fills the group until it is complete, or the outcome is certain, or ctx ends.
func (t *tries) gather(ctx context.Context, g *compositeHold) {
	for len(t.pending) > 0 && g.held() < g.need && t.open(g.need) {
		select {
		case o := <-t.outcomes:
			delete(t.pending, o.place)
			if o.err == nil {
				g.add(o.place, o.hold)
			} else {
				t.failures = append(t.failures, failureOf(o))
			}
		case <-ctx.Done():
			return
		}
	}
}

// collect waits for the rest: members that come late join the group, or are released if
// it is over.
func (t *tries) collect(g *compositeHold) {
	defer t.cancel()
	for range t.pending {
		if o := <-t.outcomes; o.err == nil && !g.add(o.place, o.hold) {
			giveBack(context.Background(), []*Hold{o.hold}, 0) // it may have fallen silent, and others come behind it
		}
	}
}

// mendLater has members that are missing tried again, for as long as the hold lasts: the
// more there are, the more may be lost.
func (l *RedLock) mendLater(ctx context.Context, g *compositeHold, r *request, settings []setting) {
	period := max(g.validFor()/3, minMemberTimeout)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over() || g.leaving || g.confined != nil {
		return
	}
	g.mending = time.AfterFunc(period, func() {
		if places := g.missing(); len(places) > 0 {
			l.try(ctx, l.memberTimeout(r), settings, places...).collect(g)
		}
		l.mendLater(ctx, g, r, settings)
	})
}
