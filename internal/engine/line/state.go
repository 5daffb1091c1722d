package line

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/engine/pubsub"
)

// state is the part of a line that is reset for each key. shard.mu guards it. signals
// does not change while anybody is in front.
type state struct {
	signals  chan struct{} // holds one signal for the front
	signaled bool          // there was one since ForgetSignal

	contended   bool                 // somebody waited since the queue came into use, or others are known to want the key
	sub         *pubsub.Subscription // to the messages of the key, or nil
	reliedUntil time.Time            // until when the messages are needed, or zero if that has no end
	retired     time.Time            // since when nobody uses the line, while the subscription lingers
	open        Held                 // what others may share with its holders, or nil
	left        Place                // what the next front continues with, or nil: see exit
	line        []*Waiter
	busy        bool      // somebody is in front of the line
	openUntil   time.Time // until then the front leaves what is free to others
	awaitsGrant bool      // the server will tell the front when it has the key; the front needs no other message

	echoes    int // messages of this client's own releases that have not come back yet
	strangers strangerTurns
	share     strangerShare
	recipe    recipeTurns
	answer    lastAnswer
}

func newState() state { return state{signals: make(chan struct{}, 1)} }

// clear resets the state for another key. A late signal then causes one useless attempt.
func (s *state) clear() {
	s.drain()
	*s = state{signals: s.signals}
}

// subscribed reports whether the line has a subscription. shard.mu is held.
func (s *state) subscribed() bool { return s.sub != nil }
