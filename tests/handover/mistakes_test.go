package handover

import (
	"testing"

	"github.com/latchkey-go/latchkey/tests/handover/explore"
	"github.com/latchkey-go/latchkey/tests/handover/explore/exploretest"
)

// mistake is a mistake in the protocol, the property that finds it, and bounds that show it.
type mistake struct {
	name  string
	fault Fault
	model Model
	wrong string
}

var mistakes = []mistake{
	{"an owner is used again", OwnerUsedAgain, usual(2, 1, 0), Overlap},
	{"passed on when a release has been sent", PassesInDoubt, usual(2, 1, 0), Overlap},
	{"passed on after the turn", PassesAfterTurn, usual(3, 1, 0), Turn},
	{"a grant has no token of its own", TokenNotIssued, usual(1, 1, 0), Token},
	{"the lease counts from the arrival of the grant", LeaseFromArrival, usual(1, 1, 1), Overlap},
	{"the lease counts from the last ask", LeaseFromLastAsk, usual(1, 1, 1), Overlap},
	{"a release frees the lock of others", ReleaseOfAnyOwner, usual(1, 1, 1), Overlap},
	{"a grant keeps the entry", GrantKeepsEntry, usual(1, 1, 0), Twice},
	{"a late release lets its next owner wait", WaitsInLateRelease, faults(1, usual(2, 1, 0)), Twice},
	{"an ask does not see its own grant", NoOwnGrantSeen, usual(1, 1, 0), explore.Slow},
	{"a call to ask is dropped while an ask is under way", CallDropped, usual(1, 1, 0), explore.Slow},
	{"nobody notes that a release ran without the queue", WithoutQueueIgnored,
		withoutQueue(1, usual(2, 0, 0)), explore.Slow},
	{"refused without the queue, and waits there", WithoutQueueWaits, withoutQueue(1, usual(1, 1, 0)), explore.Slow},
	{"a repeated release drops its next owner", NextDropped, faults(1, usual(2, 0, 0)), Undriven},
	{"a poller is granted the lock at the head", PollerGrantedAtHead, polling(usual(1, 1, 1)), Absent},
	{"nobody polls", NoPoll, faults(1, usual(1, 1, 0)), explore.Stranded},
}

// hiddenMistakes show among many states, so runs with the race detector do without them: see quick.
var hiddenMistakes = []mistake{
	{"a grant is taken for whoever waits", GrantNotChecked, usual(2, 1, 1), Overlap},
	{"a refused ask moves the stamp forward", RefusedMovesStamp, usual(1, 1, 1), Overlap},
	{"a renewal revives", RenewalRevives, faults(1, usual(1, 1, 0)), Twice},
	{"a grant that nobody wants is kept", UnwantedGrantKept, faults(1, usual(1, 1, 0)), explore.Slow},
	{"the first does not hear of strangers", NoHint, strangers(1, usual(1, 1, 0)), explore.Slow},
	{"the first does not hear of a grant before it", NoHintOfGrant, faults(1, usual(1, 1, 1)), Idle},
	{"an owner returns with its ticket", PlaceKeepsTime, told(usual(1, 1, 1)), Overlap},
}

// rareMistakes show only among millions of states.
var rareMistakes = []mistake{
	{"the new first does not hear that it is", NoHintOnLeave, faults(1, usual(2, 1, 1)), Idle},
	{"nobody heeds the answer of a release", NoAnswerHeeded, faults(1, usual(2, 1, 0)), explore.Slow},
}

func TestMistakesAreFound(t *testing.T) {
	for _, c := range exploretest.Chosen(mistakes, hiddenMistakes, nil, rareMistakes) {
		t.Run(c.name, func(t *testing.T) {
			m := c.model
			m.Fault = c.fault
			exploretest.Violates(t, &m, c.wrong)
		})
	}
}
