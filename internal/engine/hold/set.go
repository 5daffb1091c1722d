package hold

import (
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/base/lease"
)

// Set is the holds of an ownership, and how many of them the server is to count. The mutex of
// the ownership guards it.
//
//   - Count is how many holds there are whose release has not begun, and re-entries that are being
//     requested. It is 1 when the ownership begins. When it is 0 again the ownership is releasing,
//     and it stays 0.
//   - renewing is how many of them want renewal.
//   - Most is the largest number that the server may have counted. It rises before a request to
//     count more is sent, and falls to Count when the server has confirmed that it counts no more.
//   - entered has each re-entry from its confirmation until it is over. One whose release has begun
//     stays until the server has confirmed that.
//   - outermost is the hold that the ownership began with. When the ownership is passed on, or that
//     hold leaves others that read along, another one takes its place.
//   - along has the holds that read along with the outermost (ownership/readalong.go). The server
//     counts them and the outermost as one: they are in renewing, and not in Count.
type Set struct {
	Cause error // why all were lost, or nil
	Count int
	Most  int32

	renewing  int32
	outermost *Item
	along     []*Item
	entered   []*Item
}

// NewSet returns a set that will begin with that hold.
func NewSet(first *Item) Set { return Set{outermost: first} }

// Begin makes the outermost hold.
func (s *Set) Begin() {
	s.Count++
	s.include(s.outermost)
}

// Outermost returns the hold that is counted for all that are not re-entries.
func (s *Set) Outermost() *Item { return s.outermost }

// Renews reports whether a hold wants renewal.
func (s *Set) Renews() bool { return s.renewing > 0 }

// Current reports whether a hold is active, or its outermost hold has not been passed on.
func (s *Set) Current(h *Item) bool { return h.Active() || s.has(h.Outermost()) }

// has reports whether a hold is the outermost, or reads along with it.
func (s *Set) has(h *Item) bool {
	return h == s.outermost || slices.Contains(s.along, h)
}

// Roots yields the holds that were not entered under another: the outermost, and those that read
// along with it.
func (s *Set) Roots(yield func(*Item) bool) {
	if !yield(s.outermost) {
		return
	}
	for _, h := range s.along {
		if !yield(h) {
			return
		}
	}
}

// Watch leaves the handles of all holds to the program: if that drops one, the garbage collector
// finds it.
func (s *Set) Watch() {
	for h := range s.Roots {
		h.Keeper.Watch()
	}
	for _, h := range s.entered {
		h.Keeper.Watch()
	}
}

// IsOnly reports whether a hold is the outermost and the only one, and nothing has begun to end it.
func (s *Set) IsOnly(h *Item) bool {
	return h == s.outermost && s.Count == 1 && len(s.along) == 0 && len(s.entered) == 0 && h.Active()
}

// Join adds a hold that reads along with the outermost.
func (s *Set) Join(h *Item) {
	s.along = append(s.along, h)
	if h.Renew {
		s.renewing++
	}
}

// Leave ends a hold, as a release does, if another one remains for which the server's count stays
// the same. It reports whether it did, and returns what ends with the hold.
func (s *Set) Leave(h *Item) (left bool, ending Dependents) {
	if len(s.along) == 0 || !s.has(h) {
		return false, nil
	}
	at := slices.Index(s.along, h)
	if at < 0 { // the outermost: the last takes its place
		at = len(s.along) - 1
		s.outermost = s.along[at]
	}
	s.along = slices.Delete(s.along, at, at+1)
	if h.Renew {
		s.renewing--
	}
	h.MarkReported()
	return true, h.End(nil)
}

// OutermostFor returns the outermost hold under which a re-entry is counted: that of under, or, if
// under is nil, one whose owner the program knows. It returns nil if under is no longer current.
func (s *Set) OutermostFor(under *Item) *Item {
	if under != nil {
		if root := under.Outermost(); s.Current(under) {
			return root
		}
		return nil
	}
	for h := range s.Roots {
		if h.Shown {
			return h
		}
	}
	return s.outermost
}

// CountUnder is how many holds under an outermost one, including itself, have not begun their
// release.
func (s *Set) CountUnder(root *Item) (count int) {
	if root.Active() {
		count++
	}
	for _, h := range s.entered {
		if h.Within == root && h.Active() {
			count++
		}
	}
	return count
}

// MayBeEntered reports whether a hold may be entered: under, which may have ended, or, if under is
// nil, any with the owner. passed says that there were other holds before, so that the program may
// have the owner from one of them.
func (s *Set) MayBeEntered(under *Item, passed bool) bool {
	if under != nil {
		return under.Active()
	}
	return !passed || s.isKnown()
}

// isKnown reports whether the program has shared the owner under a hold that is still active.
func (s *Set) isKnown() bool {
	for h := range s.Roots {
		if h.Shown && s.CountUnder(h) > 0 {
			return true
		}
	}
	return false
}

// Replace ends the only hold, as a release does, and puts another in its place. It returns what
// ends with the first.
func (s *Set) Replace(h, next *Item) Dependents {
	s.outermost = next
	h.MarkReported()
	return h.End(nil)
}

// Reserve counts a re-entry that is about to be requested, so that no other hold is the last
// meanwhile. Add or Unreserve follows.
func (s *Set) Reserve() { s.Count++ }

// Unreserve ends Reserve if there is no re-entry. It reports whether nothing is counted any more.
func (s *Set) Unreserve() (last bool) {
	s.Count--
	return s.Count == 0
}

// Add adds a reserved re-entry that the server has confirmed.
func (s *Set) Add(h *Item) {
	s.entered = append(s.entered, h)
	s.include(h)
}

func (s *Set) include(h *Item) {
	if h.Renew {
		s.renewing++
	}
}

// Uncount takes a hold off the count before the release is sent, and reports whether it was the
// last.
func (s *Set) Uncount(h *Item) (last bool) {
	h.MarkReleasing()
	s.Count--
	if h.Renew {
		s.renewing--
	}
	return s.Count == 0
}

// StopRenewal ends the renewal of a hold whose release has not begun.
func (s *Set) StopRenewal(h *Item) {
	if h.Renew {
		h.Renew = false
		s.renewing--
	}
}

// Remove ends a re-entry that is no longer counted, and returns what ends with it.
func (s *Set) Remove(h *Item, cause error) Dependents {
	s.entered = slices.DeleteFunc(s.entered, func(e *Item) bool { return e == h })
	return h.End(cause)
}

// Clear ends all holds, counted or not, and returns what ends with them.
func (s *Set) Clear(cause error) (ending Dependents) {
	s.Cause, s.Count, s.renewing = cause, 0, 0
	for h := range s.Roots {
		ending = append(ending, h.End(cause)...)
	}
	for _, h := range s.entered {
		ending = append(ending, h.End(cause)...)
	}
	return ending
}

// UntilLimit is the time until the nearest limit of an active re-entry.
func (s *Set) UntilLimit(now lease.Stamp) time.Duration {
	nearest := async.NoDeadline
	for _, h := range s.entered {
		if h.Active() {
			nearest = min(nearest, h.Limit.Valid(now))
		}
	}
	return nearest
}

// PastLimit returns the active re-entries that are past their own limits.
func (s *Set) PastLimit(now lease.Stamp) (past []*Item) {
	for _, h := range s.entered {
		if h.Active() && h.Limit.Valid(now) <= 0 {
			past = append(past, h)
		}
	}
	return past
}
