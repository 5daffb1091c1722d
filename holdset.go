package latchkey

import (
	"slices"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// holdSet is the holds of an ownership, and how many of them the server is to count. What
// guards the ownership guards it.
//
//   - count is how many holds there are whose release has not begun. It is 1 when the
//     ownership begins. When it is 0 again the ownership is releasing, and it stays 0.
//   - renewing is how many of them want renewal.
//   - most is what the server may have counted, at most. It rises before the server is asked
//     to count more, and falls to count when the server has said that it counts no more.
//   - entered has each re-entry from its confirmation until it is over: one whose release
//     has begun is there until the server has taken it back.
//   - outermost is the hold that the ownership began with, or the one that took its place when
//     the ownership was passed on.
type holdSet struct {
	first     holdState // that of the beginning
	outermost *holdState
	entered   []*holdState
	count     int
	renewing  int
	most      int
}

// begin makes the outermost hold.
func (s *holdSet) begin(renew bool) {
	s.first.renew = renew
	s.outermost = &s.first
	s.include(&s.first)
}

// current reports whether a hold is the outermost or was entered under it, and not one that was
// passed on.
func (s *holdSet) current(h *holdState) bool { return h.outermost() == s.outermost }

// isOnly reports whether a hold is the outermost, there is no other, and nothing ends it.
func (s *holdSet) isOnly(h *holdState) bool {
	return h == s.outermost && s.count == 1 && len(s.entered) == 0 && h.active()
}

// replace makes the only hold over, as after its release, and puts another in its place. It
// returns what ends with the first.
func (s *holdSet) replace(h, next *holdState) []*ending {
	s.outermost = next
	h.reported = true
	return h.end(nil)
}

// add adds a re-entry that the server has confirmed.
func (s *holdSet) add(h *holdState) {
	s.entered = append(s.entered, h)
	s.include(h)
}

func (s *holdSet) include(h *holdState) {
	s.count++
	if h.renew {
		s.renewing++
	}
}

// uncount takes a hold off the count before the server is told, and reports whether it was
// the last.
func (s *holdSet) uncount(h *holdState) (last bool) {
	h.releasing = true
	s.count--
	if h.renew {
		s.renewing--
	}
	return s.count == 0
}

// stopRenewal ends the renewal of a hold whose release has not begun.
func (s *holdSet) stopRenewal(h *holdState) {
	if h.renew {
		h.renew = false
		s.renewing--
	}
}

// remove makes a re-entry over that is not counted any more, and returns what ends with it.
func (s *holdSet) remove(h *holdState, cause error) []*ending {
	s.entered = slices.DeleteFunc(s.entered, func(e *holdState) bool { return e == h })
	return h.end(cause)
}

// clear makes all holds over, counted or not, and returns what ends with them.
func (s *holdSet) clear(cause error) []*ending {
	s.count, s.renewing = 0, 0
	endings := s.outermost.end(cause)
	for _, h := range s.entered {
		endings = append(endings, h.end(cause)...)
	}
	return endings
}

// pastLimit returns the re-entries whose own limits are over.
func (s *holdSet) pastLimit(now transport.Stamp) (past []*holdState) {
	for _, h := range s.entered {
		if h.limit.valid(now) <= 0 {
			past = append(past, h)
		}
	}
	return past
}

// noteCount takes note that the server is about to be asked to count so many.
func (s *holdSet) noteCount(count int) { s.most = max(s.most, count) }
