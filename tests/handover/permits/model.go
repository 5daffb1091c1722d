package permits

import "github.com/latchkey-go/latchkey/tests/handover/explore"

// Model is a protocol with bounds, and possibly with a mistake in it.
type Model struct {
	Total     int8              // permits
	Lines     [clients][2]uint8 // what the goroutines in each client's line want, one after the other
	Pollers   [clients]bool     // clients that ask instead of listening
	Strangers uint8             // how often a client that knows nothing of the line wants a permit
	Grants    bool              // permits have ids: they are granted, and come back with their leases
	Faults    uint8             // how many things go wrong in one run
	Failover  bool              // faults include failures of the server's memory
	Clock     bool              // faults include a clock of the server that is wrong
	Large     Large             // what happens to a first entry that wants more than is free
	Fault     Fault             // in the protocol itself
}

// Large is what a script does about a first entry that does not fit although something is free.
type Large uint8

// The forms of large requests.
const (
	Blocks Large = iota // the others wait, however long it takes
	Passed              // the others go first
	Bars                // the others wait while its bar is open, and go first while it rests
)

// Fault is a mistake that the exploration has to find.
type Fault int

// The mistakes.
const (
	None                   Fault = iota
	NewcomerIgnoresMarks         // somebody who finds nobody in line takes what is kept for those who were called
	ReturnsWithoutTicket         // a waiter does not say which ticket it had
	TicketOfLateCopy             // a place keeps its ticket even if the waiter names an older one
	WithdrawalLeavesMark         // permits stay kept for a waiter that has given up
	TakeLeavesEntry              // who has taken permits stays in line
	FutureMarkCounts             // permits are kept until a mark ends that is farther away than any new one
	PollerCalledAtHead           // a poller is called before it is about to ask
	ServesBeforeNote             // a release notes its operation after it has served
	NoNoteOfRelease              // a release that is repeated counts again
	NoNoteOfAsk                  // an ask that is repeated takes again
	NoNoteOfWithdrawal           // a late ask takes permits for a waiter that has given up
	UndoesForCall                // a call for an operation that is over is answered by its undo
	CallDropped                  // a client forgets a call that arrives while its ask is in flight
	WithdrawalServesNobody       // a withdrawal leaves to the next script whom to call
	StrayCallIgnored             // a call for an operation that is over is not answered
	NotRepeated                  // a release or a withdrawal is sent once
	NoPoll                       // a waiter relies on messages alone
	BarWantsFree                 // a large request opens its bar only if something is free when it asks
	LeaseFromRefusal             // the lease of a grant counts from the last refused ask
	LeaseFromArrival             // the lease of a grant counts from when the message arrives
	UnwantedGrantKept            // a grant that nobody waits for is left to its lease
	GrantKeepsEntry              // an operation that is granted its permits stays in line
	NewcomerIgnoresLine          // somebody who finds nothing kept takes what is free, whoever waits in line
	TakeServesNobody             // who takes permits leaves what is left to the next script
	StrangersNotHeard            // nobody listens to those who know nothing of the line
)

// keeps is how many ticks permits are kept for somebody who was called, and future is what a mark
// has left that ends later than any new one.
const (
	keeps  = 1
	future = keeps + 1
)

// lease is how many ticks an acquisition of permits with ids requests, and short how many a grant
// of them sets.
const (
	lease = 2
	short = 1
)

// opened is how many ticks a bar has when it opens. In the last one it rests.
const opened = 2

// rule is a kind of step.
type rule uint8

const (
	starts rule = iota
	polls
	pollsSoon
	givesUp
	givesUpForNext
	ends
	repeats
	delivers
	loses
	doubles
	delays
	fails
	crashes
	restarts
	disconnects
	reconnects
	ticks
	losesLine
	losesMarks
	bringsBackEntry
	bringsBackMark
	clockBack
	clockAhead
	strangerComes
	strangerTakes
	strangerReleases
)

// step is one transition.
type step struct {
	rule   rule
	client int
	item   message
	wrong  string // what is wrong with it
}

// Wrong implements [explore.Step].
func (st step) Wrong() string { return st.wrong }

// Class implements [explore.Step].
func (st step) Class() explore.Class {
	switch st.rule {
	case polls, repeats, reconnects, ticks:
		return explore.Timer
	case givesUp, givesUpForNext, loses, doubles, delays, fails, crashes, restarts, disconnects,
		losesLine, losesMarks, bringsBackEntry, bringsBackMark, clockBack, clockAhead:
		return explore.Choice
	}
	return explore.Progress
}

// First implements [explore.Model].
func (m *Model) First() state {
	s := state{free: m.Total, faults: m.Faults, strangersLeft: m.Strangers, calm: true, told: true}
	for i := range s.clients {
		s.clients[i].line, s.clients[i].polls = m.Lines[i], m.Pollers[i]
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
func (m *Model) Done(s *state, prompt bool) bool { return m.done(s, prompt) }
