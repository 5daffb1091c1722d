package turns

import "time"

// Share compares what a client has had of the permits of a semaphore with what strangers
// have had: clients that know nothing of the queue, Redisson above all. A client that has had less
// than one of them asks as soon as strangers release permits, and leaves none of its own to them.
// Otherwise strangers come first.
type Share struct {
	ForStrangers int // messages that will come of releases of this library, for strangers

	strangers int // how many there are
	until     time.Time
	ours      int // acquisitions of this client
	theirs    int // releases of strangers
}

// longestShare is how many acquisitions count in full: with more, all of them count half.
const longestShare = 64

// Count adds acquisitions.
func (s *Share) Count(ours, theirs int) {
	s.ours += ours
	s.theirs += theirs
	if s.ours+s.theirs > longestShare {
		s.ours, s.theirs = s.ours/2, s.theirs/2
	}
}

// With notes how many strangers there are. The count begins anew if there were none.
func (s *Share) With(strangers int, now time.Time) {
	if now.After(s.until) {
		s.ours, s.theirs = 0, 0
	}
	s.strangers, s.until = strangers, now.Add(strangersLinger)
}

// Concerns reports whether a message concerns this client. While the client waits, a message that
// does is of strangers, because a release of this library sends none while others wait.
func (s *Share) Concerns(waits bool, now time.Time) bool {
	if s.ForStrangers > 0 {
		s.ForStrangers--
		return false
	}
	if !waits {
		return true
	}
	s.Count(0, 1)
	if now.Before(s.until) {
		s.until = now.Add(strangersLinger)
	}
	return true
}

// Standing is how a client stands to strangers.
type Standing int

// How a client stands to strangers.
const (
	Alone Standing = iota // there are none
	Short                 // each of them has had more
	Even                  // this client has had enough
)

// Stands returns how this client stands to strangers.
func (s *Share) Stands(now time.Time) Standing {
	switch {
	case now.After(s.until):
		return Alone
	case s.ours*s.strangers < s.theirs:
		return Short
	default:
		return Even
	}
}
