package latchkey

import "time"

// waitState is the part of a wait queue that only waiting goroutines need. A lock that nobody contends for
// has none while it is held, which keeps ten thousand such holds small. Every user needs one: a waiter, the
// front, and a caller that holds nothing (see need). When only holds are left, the state is given back,
// unless the key is contended: somebody had to wait since the wait queue came into use, or others are
// known to want the key. A wait queue with two lines keeps its state, and so do both lines.
//
// shard.mu guards it. signals is the same as long as somebody is in front.
type waitState struct {
	signals chan struct{} // holds one signal for the front
	heard   bool          // there was one since the front last asked

	contended   bool
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

// need gives the wait queue a state if it has none. shard.mu is held.
func (q *waitQueue) need() *waitState {
	if q.waitState == nil {
		q.waitState = q.shard.freshState()
	}
	return q.waitState
}

// subscribed reports whether the wait queue has a subscription. shard.mu is held.
func (q *waitQueue) subscribed() bool { return q.waitState != nil && q.sub != nil }

// endState takes the state of a wait queue that has only holds left, and was not contended. shard.mu is held.
func (q *waitQueue) endState() {
	if q.waitState == nil || q.contended || q.open != nil || q.users > q.held || q.lines.Load() != nil {
		return
	}
	q.shard.dropState(q.waitState)
	q.waitState = nil
}

// freshState takes a state from the spare ones or makes one. s.mu is held.
func (s *queueShard) freshState() *waitState {
	if n := len(s.spareStates); n > 0 {
		state := s.spareStates[n-1]
		s.spareStates = s.spareStates[:n-1]
		return state
	}
	return &waitState{signals: make(chan struct{}, 1)}
}

// dropState keeps a state for another wait queue. A signal that is still to come has the front of that
// one ask once too often. s.mu is held.
func (s *queueShard) dropState(state *waitState) {
	if len(s.spareStates) == spareQueues {
		return
	}
	state.drain()
	*state = waitState{signals: state.signals}
	s.spareStates = append(s.spareStates, state)
}
