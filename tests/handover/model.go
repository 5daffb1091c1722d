package handover

// Model is a protocol with bounds, and perhaps with a fault in it.
type Model struct {
	Acquisitions [clients]uint8 // how many goroutines of each client want the lock once
	Strangers    uint8          // how often a client wants it that knows nothing of the queue
	Faults       uint8          // how many things go wrong in one run
	Failover     bool           // faults of the server's memory are among them
	Spared       uint8          // how many commands go without the queue, because its key cannot be used
	Since        bool           // a refusal says since when the owner waits, and the lease of its grant counts from then
	Fair         bool           // nobody overtakes the queue, nothing is passed on in memory
	Lease        uint8          // ticks that an acquisition asks for
	Short        uint8          // ticks that a grant sets
	Passes       uint8          // tokens that a turn reserves beside the first: one for each time it passes on
	Turn         uint8          // ticks in which the holds of one turn begin
	Fault        Fault          // in the protocol itself
	Only         string         // the property that is looked at, or "" for all
}

// Fault is a mistake that the exploration has to find.
type Fault int

// The mistakes.
const (
	None               Fault = iota
	GrantNotChecked          // a client takes a grant for whoever waits, not for the owner that it names
	OwnerUsedAgain           // the next acquisition waits under the owner of one that has given up
	PassesInDoubt            // an ownership is passed on whose release has been sent
	PassesAfterTurn          // it is passed on for as long as the lease lasts
	PassesWithoutToken       // it is passed on when the tokens of the turn are used up
	TokensNotReserved        // a turn has one token from the server and counts on by itself
	EntryWantsLess           // an entry says one token, and the asks of its owner say more
	LeaseFromArrival         // the lease of a grant counts from when the message comes
	LeaseFromLastAsk         // it counts from the last ask, which may be later than the grant
	RefusedMovesStamp        // it counts from the last ask that was refused
	ReleaseOfAnyOwner        // a release frees the lock, whoever has it
	RenewalRevives           // a renewal makes its owner the owner of a free lock
	GrantKeepsEntry          // whoever is granted the lock stays in the queue
	NoOwnGrantSeen           // an ask does not see that its owner has the lock
	NoPoll                   // a waiter relies on messages alone
	UnwantedGrantKept        // a grant that nobody wants is left to its lease
	NoAnswerHeeded           // nobody looks whether the release that lets the next owner wait did so
	NoHint                   // nobody tells the first of the queue anything
	NoHintOfGrant            // nobody tells it of a grant to the one before it
	NoHintOnLeave            // nobody tells the new first when the one before it gives up
	CallDropped              // a client that is told to ask while it does forgets that
	WaitsInLateRelease       // a release that frees nothing lets the next owner wait all the same
	PlaceKeepsTime           // an owner that is put into the queue again stands there since the first time
	SparedNotHeeded          // nobody looks whether the release went without the queue that lets the next owner wait
	SparedWaits              // whoever is refused without the queue waits as if it stood there
)

// rule is a kind of step.
type rule uint8

const (
	starts rule = iota
	polls
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

// class tells what a property may count on.
type class uint8

const (
	progress class = iota // happens if nothing goes wrong
	timer                 // happens some time later
	choice                // may never happen
)

func (r rule) class() class {
	switch r {
	case polls, renews, reconnects, ticks:
		return timer
	case givesUp, givesUpForNext, loses, doubles, delays, spares, crashes, restarts, disconnects, losesQueue, bringsBack:
		return choice
	}
	return progress
}

// step is one transition.
type step struct {
	rule   rule
	client int
	item   message
	wrong  string // what is wrong with the hold that it begins
}

func (m *Model) first() state {
	s := state{faults: m.Faults, spared: m.Spared, strangerLeft: m.Strangers, calm: true, told: true, high: m.far()}
	for i := range s.clients {
		s.clients[i].left = m.Acquisitions[i]
	}
	return s
}

// next calls yield for each step that is possible.
func (m *Model) next(s state, yield func(step, state)) {
	m.deliveries(&s, yield)
	for c := range s.clients {
		m.actions(&s, c, yield)
	}
	m.strangers(&s, yield)
	m.faults(&s, yield)
	yield(step{rule: ticks}, m.tick(s))
}

// The properties, by what is said when they do not hold.
const (
	Overlap   = "two clients rely on the lock at once"
	Unfounded = "a client relies on what the server has not given it"
	Token     = "the token is not larger than that of an earlier holder"
	Turn      = "a hold is passed on when its turn is over"
	Twice     = "an owner has the lock and waits for it: a second grant would be outstanding"
	Idle      = "a grant has run out, and the first of the queue does not know when to ask"
	Slow      = "nothing was lost, but only a poll or the end of a lease helps"
	Stranded  = "somebody who waits is never served"
)

// wrong tells which property does not hold in a state, or "".
func (m *Model) wrong(s *state) string {
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
	if s.owner != nobody && s.owner != stranger && !m.Failover && m.Spared == 0 && s.place(s.owner) >= 0 {
		return Twice
	}
	if m.idle(s) {
		return Idle
	}
	return ""
}

// idle reports whether a grant has run out while the first of the queue, who was told all that
// it should have been, neither asks nor is about to.
func (m *Model) idle(s *state) bool {
	o := s.queue[0]
	free := s.owner == nobody && s.brief && s.told
	if !free || o == nobody || !s.hears(o) || !s.current(o) || s.flight[0].kind != nothing {
		return false
	}
	return s.clients[o.client()].alarm == 0
}
