// Package turns has how a client takes turns with others that do not wait in the queue of a lock.
// Its values lock nothing, start no timer and read no clock: who has one guards it, and tells it
// the time.
package turns

import "time"

// Strangers are clients that know nothing of the queue of a lock: Redisson, above all. They receive
// the message that the lock is free, and acquire it if they are fast. A client of this library
// shares the lock with them: if there are strangers, its turn has as many holds as it has
// goroutines that want the lock, and then strangers may have as many.

const (
	// strangersLinger is how long a client takes strangers into account after it has seen them.
	strangersLinger = time.Second
	// strangersMayShare is how long a client takes strangers into account that may hold a shared
	// lock together with clients of this library. If a stranger leaves last, only subscribers learn
	// of it.
	strangersMayShare = 10 * time.Second
	// StrangerPause is how long strangers have to acquire a free lock.
	StrangerPause = 3 * time.Millisecond
	// UnusedPauses is how many pauses in succession strangers may leave unused. Then the front
	// pauses once in so many releases: those that listen may have no wish to hold the lock.
	UnusedPauses = 8
)

// Strangers is what a client knows of strangers that want its lock.
type Strangers struct {
	TakesTurns    bool // its lock takes turns with strangers
	ReleasesHeard int  // releases of strangers that were heard in their turn

	until       time.Time // until when strangers are taken into account
	ourHolds    int       // holds of this client since the strangers' last one
	ourLastTurn int       // holds in the last turn of this client
	turnLeft    int       // releases of strangers after which another stranger may go first
	unused      int       // releases that left the lock free, since a stranger was last found to hold it
}

// TheyReceive notes that other clients received the message that this client has left the lock
// free. It reports whether they go first.
func (s *Strangers) TheyReceive(now time.Time) (first bool) {
	s.until = now.Add(strangersLinger)
	s.unused++
	return s.unused <= UnusedPauses || s.unused%UnusedPauses == 0
}

// TheyHold notes that the front was refused because a stranger holds the lock. The first such
// refusal of a wait begins the turn of the strangers. It has as many holds as the turn of this
// client had, and at least one, but no more than waiters in line.
func (s *Strangers) TheyHold(first bool, waiters int, now time.Time) {
	s.until, s.unused = now.Add(strangersLinger), 0
	if first && s.ourHolds > 0 {
		s.beginTheirs(waiters)
	}
}

// beginTheirs lets strangers have as many holds as this client had in its last turn, even if
// it had none since theirs. The front may try after the last of them.
func (s *Strangers) beginTheirs(waiters int) {
	if s.ourHolds == 0 && s.turnLeft > 0 {
		return // their turn continues
	}
	if s.ourHolds > 0 {
		s.ourLastTurn, s.ourHolds = s.ourHolds, 0
	}
	s.turnLeft = min(max(s.ourLastTurn-1, 0), waiters)
}

// AreAnnounced notes that the next messages, so many, are for strangers. That begins their turn.
func (s *Strangers) AreAnnounced(messages, waiters int) {
	s.beginTheirs(waiters)
	s.turnLeft += messages
}

// GoesFirst reports whether another stranger may go first, now that one has released the lock.
func (s *Strangers) GoesFirst() bool {
	if s.turnLeft == 0 {
		return false
	}
	s.turnLeft--
	s.ReleasesHeard++
	return true
}

// WeHold counts a hold of this client, in a turn of its own.
func (s *Strangers) WeHold() {
	s.ourHolds++
	s.turnLeft = 0
}

// Known reports whether strangers have just been seen.
func (s *Strangers) Known(now time.Time) bool { return now.Before(s.until) }

// MayShare reports whether strangers may still hold a lock together with clients of this library.
func (s *Strangers) MayShare(now time.Time) bool { return now.Sub(s.until) < strangersMayShare }
