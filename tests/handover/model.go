package handover

import "github.com/latchkey-go/latchkey/tests/handover/explore"

// Model is a protocol with bounds, and possibly with a mistake in it.
type Model struct {
	Acquisitions [clients]uint8 // how many goroutines of each client want the lock once
	Pollers      [clients]bool  // clients that ask instead of listening
	Strangers    uint8          // how often a client that knows nothing of the queue wants it
	Faults       uint8          // how many things go wrong in one run
	Failover     bool           // faults include failures of the server's memory
	WithoutQueue uint8          // how many commands run without the queue, because its key cannot be used
	Since        bool           // a refusal says since when the owner waits, and the lease of its grant counts from then
	Fair         bool           // nobody overtakes the queue, and nothing is passed on in memory
	Lease        uint8          // ticks that an acquisition requests
	Short        uint8          // ticks that a grant sets
	Turn         uint8          // ticks in which the holds of one turn begin
	Fault        Fault          // in the protocol itself
}

// Fault is a mistake that the exploration has to find.
type Fault int

// The mistakes.
const (
	None                Fault = iota
	GrantNotChecked           // a client takes a grant for its current owner, whichever owner the grant names
	OwnerUsedAgain            // the next acquisition waits under the owner of an acquisition that has given up
	PassesInDoubt             // an ownership is passed on after its release was sent
	PassesAfterTurn           // an ownership is passed on for as long as the lease lasts
	TokenNotIssued            // a grant carries the last token, and issues none
	LeaseFromArrival          // the lease of a grant counts from when the message arrives
	LeaseFromLastAsk          // the lease counts from the last ask, which may be later than the grant
	RefusedMovesStamp         // the lease counts from the last ask that was refused
	ReleaseOfAnyOwner         // a release frees the lock even if another owner holds it
	RenewalRevives            // a renewal makes its owner the owner of a free lock
	GrantKeepsEntry           // an owner that is granted the lock stays in the queue
	NoOwnGrantSeen            // an ask does not see that its owner has the lock
	NoPoll                    // a waiter relies on messages alone
	UnwantedGrantKept         // an unwanted grant is left to its lease
	NoAnswerHeeded            // nobody checks whether the release that lets the next owner wait did so
	NoHint                    // nobody sends the first of the queue any message
	NoHintOfGrant             // nobody notifies the first of the queue of a grant to the one before it
	NoHintOnLeave             // nobody notifies the new first when the one before it gives up
	CallDropped               // a client forgets a hint that arrives while its ask is in flight
	WaitsInLateRelease        // a release that frees nothing still lets the next owner wait
	PlaceKeepsTime            // an owner that is put into the queue again has its first time: its ticket
	WithoutQueueIgnored       // nobody checks whether the release that lets the next owner wait ran without the queue
	NextDropped               // a client forgets the next owner of a release that was executed before
	PollerGrantedAtHead       // a poller is granted the lock before it is about to ask
	WithoutQueueWaits         // an owner that is refused without the queue waits as if it were in it
)

// rule is a kind of step.
type rule uint8

const (
	starts rule = iota
	polls
	pollsSoon
	repeats
	givesUp
	givesUpForNext
	passesOn
	endsTurn
	ends
	renews
	delivers
	loses
	doubles
	delays
	spares
	crashes
	restarts
	disconnects
	reconnects
	ticks
	losesQueue
	bringsBack
	strangerComes
	strangerTakes
	strangerReleases
)

// step is one transition.
type step struct {
	rule   rule
	client int
	item   message
	wrong  string // what is wrong with the hold that it begins
}

// Wrong implements [explore.Step].
func (st step) Wrong() string { return st.wrong }

// Class implements [explore.Step].
func (st step) Class() explore.Class {
	switch st.rule {
	case polls, repeats, renews, reconnects, ticks:
		return explore.Timer
	case givesUp, givesUpForNext, loses, doubles, delays, spares, crashes, restarts, disconnects, losesQueue, bringsBack:
		return explore.Choice
	}
	return explore.Progress
}

// First implements [explore.Model].
func (m *Model) First() state {
	s := state{faults: m.Faults, withoutQueue: m.WithoutQueue, strangerLeft: m.Strangers, high: far}
	s.calm, s.told, s.sure = true, true, true
	for i := range s.clients {
		s.clients[i].left, s.clients[i].poller = m.Acquisitions[i], m.Pollers[i]
	}
	return s
}

// Next implements [explore.Model].
func (m *Model) Next(s state, yield func(step, state)) {
	m.deliveries(&s, yield)
	for c := range s.clients {
		m.actions(&s, c, yield)
	}
	m.strangers(&s, yield)
	m.faults(&s, yield)
	yield(step{rule: ticks}, m.tick(s))
}

// Calm implements [explore.Model].
func (m *Model) Calm(s *state) bool { return s.calm }

// Done implements [explore.Model].
func (m *Model) Done(s *state, prompt bool) bool { return s.done(prompt) }

// The properties, by the message for a failure.
const (
	Overlap   = "two clients rely on the lock at once"
	Unfounded = "a client relies on what the server has not given it"
	Token     = "the token is not larger than that of an earlier holder"
	Turn      = "a hold is passed on when its turn is over"
	Twice     = "an owner has the lock and waits for it: a second grant would be outstanding"
	Undriven  = "an owner has the lock, and nobody uses it or gives it back"
	Absent    = "the lock was granted to a poller that is not about to ask"
	Idle      = "a grant has run out, and the first of the queue does not know when to ask"
)

// Wrong implements [explore.Model].
func (m *Model) Wrong(s state) string {
	relying := 0
	if s.strangerPhase == holding {
		relying++
	}
	for i := range s.clients {
		c := &s.clients[i]
		if c.phase != holding {
			continue
		}
		relying++
		if m.Fault == None && (s.owner != s.mine(i) || s.ttl < c.valid) {
			return Unfounded
		}
	}
	if relying > 1 {
		return Overlap
	}
	if s.owner != nobody && s.owner != stranger && !m.Failover && m.WithoutQueue == 0 && s.place(s.owner) >= 0 {
		return Twice
	}
	if s.undriven() {
		return Undriven
	}
	if s.absent() {
		return Absent
	}
	if m.idle(&s) {
		return Idle
	}
	return ""
}

// absent reports whether the owner of the lock is a poller that does not know it, and will not ask
// soon.
func (s *state) absent() bool {
	o := s.owner
	if !s.calm || !s.brief || o == nobody || o == stranger || !s.current(o) || s.mentioned(o) {
		return false
	}
	c := &s.clients[o.client()]
	return c.poller && c.phase == waiting && !c.soon
}

// undriven reports whether the lock has an owner that its client has used up, although nothing but
// answers to releases was lost, and nothing about that owner is in flight. A late ask of a poller
// may cause that for the lease of a grant, because no message tells the poller.
func (s *state) undriven() bool {
	o := s.owner
	if o == nobody || o == stranger || !s.sure || s.polls(o) || !s.living(o) || s.current(o) {
		return false
	}
	return !s.mentioned(o)
}

// mentioned reports whether anything in flight is about an owner.
func (s *state) mentioned(o owner) bool {
	for _, f := range s.flight {
		if f.kind != nothing && f.owner == o {
			return true
		}
	}
	return false
}

// idle reports whether a grant has expired while the first of the queue, which got all its
// messages, neither asks nor is about to.
func (m *Model) idle(s *state) bool {
	o := s.firstListener()
	free := s.owner == nobody && s.brief && s.told
	if !free || o == nobody || !s.hears(o) || !s.current(o) || s.flight[0].kind != nothing {
		return false
	}
	return s.clients[o.client()].alarm == 0
}
