package tests

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// overlapDetector detects that two are inside at once. All of its holders are in this process and
// use the same clock.
type overlapDetector struct {
	mu       sync.Mutex
	inside   map[string][]*stay // by name, in the order of arrival
	overlaps int
	longest  time.Duration
	grants   int
	last     time.Time
	gap      time.Duration
}

// stay is inside until the hold is lost, or until it is time to leave.
func (g *overlapDetector) stay(name string, hold *latchkey.Hold, leave <-chan time.Time) {
	if hold == nil || hold.Err() != nil {
		return
	}
	v := g.enter(name)
	defer g.leave(name, v)
	select {
	case <-leave:
	case <-hold.Lost():
	}
}

// stay is the time of one holder inside.
type stay struct{ joined time.Time } // when the next holder entered, if one has

func (g *overlapDetector) enter(name string) *stay {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if g.grants++; g.grants > 1 {
		g.gap = max(g.gap, now.Sub(g.last))
	}
	g.last = now
	for _, v := range g.inside[name] {
		if v.joined.IsZero() {
			g.overlaps++
			v.joined = now
		}
	}
	v := &stay{}
	g.inside[name] = append(g.inside[name], v)
	return v
}

// leave measures how long the holder was not alone without knowing it, even if the other one has
// left.
func (g *overlapDetector) leave(name string, v *stay) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !v.joined.IsZero() {
		g.longest = max(g.longest, time.Since(v.joined))
	}
	g.inside[name] = slices.DeleteFunc(g.inside[name], func(other *stay) bool { return other == v })
}

// seen returns how often a holder has entered so far, and how often another one was inside.
func (g *overlapDetector) seen() (grants, overlaps int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.grants, g.overlaps
}

// wantGrant waits until a lock is acquired after the given time.
func (g *overlapDetector) wantGrant(t *testing.T, after time.Time) {
	t.Helper()
	rig.Eventually(t, soon, "locks are granted again", func() error {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.last.Before(after) {
			return fmt.Errorf("the last one was at %v", g.last)
		}
		return nil
	})
}
