package latchkey

import "time"

// waitState is what a wait queue starts anew with for each key. shard.mu guards it. signals is the same as
// long as somebody is in front.
type waitState struct {
	signals chan struct{} // holds one signal for the front
	heard   bool          // there was one since the front last asked

	contended   bool          // somebody had to wait since the wait queue came into use, or others are known to want the key
	sub         *subscription // to the messages of the key, or nil
	reliedUntil time.Time     // when nobody needs them any more, or zero if that is never
	retired     time.Time     // since when nobody uses the wait queue, while the subscription lingers
	open        any           // what others may have along with the holders of this client, or nil
	left        any           // what the next in front goes on with, or nil: see exit
	waitLine
	recentReleases
	beside
	besidePollers
	permitFront
	permitTurns
	permitShare
	lastAnswer
}

// waitLine is a line of waiters with at most one in front.
type waitLine struct {
	busy          bool // somebody is in front
	waitsToBeTold bool // it is told when the key is its own, and needs no other message
	line          waiterList
}

func newWaitState() waitState { return waitState{signals: make(chan struct{}, 1)} }

// clear makes the state that of a wait queue for another key. A signal that is still to come has the front
// of that one ask once too often.
func (s *waitState) clear() {
	s.drain()
	*s = waitState{signals: s.signals}
}

// subscribed reports whether the wait queue has a subscription. shard.mu is held.
func (s *waitState) subscribed() bool { return s.sub != nil }
