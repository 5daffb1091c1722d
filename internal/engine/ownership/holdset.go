package ownership

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
)

// holdSet is the holds of an ownership, and how many of them the server is to count. The mutex of
// the ownership guards it.
//
//   - count is how many holds there are whose release has not begun. It is 1 when the ownership
//     begins. When it is 0 again the ownership is releasing, and it stays 0.
//   - renewing is how many of them want renewal.
//   - most is the largest number that the server may have counted. It rises before a request to
//     count more is sent, and falls to count when the server has confirmed that it counts no more.
//   - entered has each re-entry from its confirmation until it is over. One whose release has begun
//     stays until the server has confirmed that.
//   - outermost is the hold that the ownership began with. When the ownership is passed on, or that
//     hold leaves others that read along, another one takes its place.
//   - along has the holds that read along with the outermost (readalong.go). The server counts them
//     and the outermost as one: they are in renewing, and not in count.
type holdSet struct {
	first    Hold  // the hold that the ownership began with
	root     *Hold // the outermost, if it is not the first, else nil
	along    []*Hold
	entered  []*Hold
	Cause    error // why all were lost, or nil
	Count    int
	renewing int32
	Most     int32
}

// outermost returns the hold that is counted for all that are not re-entries.
func (s *holdSet) outermost() *Hold { return cmp.Or(s.root, &s.first) }

// begin makes the outermost hold.
func (s *holdSet) begin(r *request.Request) {
	s.first.renew = r.Renew
	s.include(&s.first)
}

// current reports whether a hold is active, or its outermost hold has not been passed on.
func (s *holdSet) current(h *Hold) bool { return h.Active() || s.has(h.outermost()) }

// has reports whether a hold is the outermost, or reads along with it.
func (s *holdSet) has(h *Hold) bool {
	return h == s.outermost() || slices.Contains(s.along, h)
}

// roots yields the holds that were not entered under another: the outermost, and those that read
// along with it.
func (s *holdSet) roots(yield func(*Hold) bool) {
	if !yield(s.outermost()) {
		return
	}
	for _, h := range s.along {
		if !yield(h) {
			return
		}
	}
}

// watchHandles has the garbage collector find holds that the program drops from now on. o.mu is held.
func (o *Ownership) watchHandles() {
	for h := range o.Holds.roots {
		h.kept.Watch()
	}
	for _, h := range o.Holds.entered {
		h.kept.Watch()
	}
}

// HasWorkUnder reports whether a hold of the ownership has a context that ends with root.
func (o *Ownership) HasWorkUnder(root context.Context) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for h := range o.Holds.roots {
		if h.HasWorkUnder(root) {
			return true
		}
	}
	return false
}

// isOnly reports whether a hold is the outermost and the only one, and nothing has begun to end it.
func (s *holdSet) isOnly(h *Hold) bool {
	return h == s.outermost() && s.Count == 1 && len(s.along) == 0 && len(s.entered) == 0 && h.Active()
}

// join adds a hold that reads along with the outermost.
func (s *holdSet) join(h *Hold) {
	s.along = append(s.along, h)
	if h.renew {
		s.renewing++
	}
}

// leave ends a hold, as a release does, if another one remains for which the server's count stays
// the same. It reports whether it did, and returns what ends with the hold.
func (s *holdSet) leave(h *Hold) (left bool, ending hold.Dependents) {
	if len(s.along) == 0 || !s.has(h) {
		return false, nil
	}
	at := slices.Index(s.along, h)
	if at < 0 { // the outermost: the last takes its place
		at = len(s.along) - 1
		s.root = s.along[at]
	}
	s.along = slices.Delete(s.along, at, at+1)
	if h.renew {
		s.renewing--
	}
	h.MarkReported()
	return true, h.End(nil)
}

// outermostFor returns the outermost hold under which a re-entry is counted: that of under, or, if
// under is nil, one whose owner the program knows. It returns nil if under is no longer current.
func (s *holdSet) outermostFor(under *Hold) *Hold {
	if under != nil {
		if root := under.outermost(); s.current(under) {
			return root
		}
		return nil
	}
	for h := range s.roots {
		if h.shown {
			return h
		}
	}
	return s.outermost()
}

// countUnder is how many holds under an outermost one, including itself, have not begun their
// release.
func (s *holdSet) countUnder(root *Hold) (count int) {
	if root.Active() {
		count++
	}
	for _, h := range s.entered {
		if h.within == root && h.Active() {
			count++
		}
	}
	return count
}

// isKnown reports whether the program has seen the owner under a hold that is still active.
func (s *holdSet) isKnown() bool {
	for h := range s.roots {
		if h.shown && s.countUnder(h) > 0 {
			return true
		}
	}
	return false
}

// replace ends the only hold, as a release does, and puts another in its place. It returns what
// ends with the first.
func (s *holdSet) replace(h, next *Hold) hold.Dependents {
	s.root = next
	h.MarkReported()
	return h.End(nil)
}

// add adds a re-entry that the server has confirmed.
func (s *holdSet) add(h *Hold) {
	s.entered = append(s.entered, h)
	s.include(h)
}

func (s *holdSet) include(h *Hold) {
	s.Count++
	if h.renew {
		s.renewing++
	}
}

// uncount takes a hold off the count before the release is sent, and reports whether it was the
// last.
func (s *holdSet) uncount(h *Hold) (last bool) {
	h.MarkReleasing()
	s.Count--
	if h.renew {
		s.renewing--
	}
	return s.Count == 0
}

// stopRenewal ends the renewal of a hold whose release has not begun.
func (s *holdSet) stopRenewal(h *Hold) {
	if h.renew {
		h.renew = false
		s.renewing--
	}
}

// remove ends a re-entry that is no longer counted, and returns what ends with it.
func (s *holdSet) remove(h *Hold, cause error) hold.Dependents {
	s.entered = slices.DeleteFunc(s.entered, func(e *Hold) bool { return e == h })
	return h.End(cause)
}

// clear ends all holds, counted or not, and returns what ends with them.
func (s *holdSet) clear(cause error) (ending hold.Dependents) {
	s.Cause, s.Count, s.renewing = cause, 0, 0
	for h := range s.roots {
		ending = append(ending, h.End(cause)...)
	}
	for _, h := range s.entered {
		ending = append(ending, h.End(cause)...)
	}
	return ending
}

// untilLimit is the time until the nearest limit of an active re-entry.
func (s *holdSet) untilLimit(now lease.Stamp) time.Duration {
	nearest := async.NoDeadline
	for _, h := range s.entered {
		if h.Active() {
			nearest = min(nearest, h.limit.Valid(now))
		}
	}
	return nearest
}

// pastLimit returns the active re-entries that are past their own limits.
func (s *holdSet) pastLimit(now lease.Stamp) (past []*Hold) {
	for _, h := range s.entered {
		if h.Active() && h.limit.Valid(now) <= 0 {
			past = append(past, h)
		}
	}
	return past
}
