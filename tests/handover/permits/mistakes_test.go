package permits

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
	{"a newcomer ignores marks", NewcomerIgnoresMarks, calls(1, 1, 1, 1), Overtaken},
	{"a newcomer ignores the line", NewcomerIgnoresLine, calls(2, 1, 2, 1), Overtaken},
	{"a called client returns without its ticket", ReturnsWithoutTicket, stranger(calls(1, 1, 1, 0)), Demoted},
	{"a withdrawal leaves a mark", WithdrawalLeavesMark, calls(1, 1, 1, 0), Idle},
	{"a withdrawal serves nobody", WithdrawalServesNobody, calls(1, 1, 1, 1), explore.Slow},
	{"a take leaves the entry", TakeLeavesEntry, calls(1, 1, 1, 1), Twice},
	{"a mark in the future counts", FutureMarkCounts, clock(faults(1, calls(1, 1, 1, 1))), Rests},
	{"a poller is called at the head", PollerCalledAtHead, polling(calls(1, 1, 1, 1)), Absent},
	{"grants, to a poller at the head", PollerCalledAtHead, polling(grants(1, 1, 1, 1)), Absent},
	{"a release serves before it notes", ServesBeforeNote, faults(1, calls(1, 1, 1, 0)), Sum},
	{"a release is not noted", NoNoteOfRelease, faults(1, calls(1, 1, 1, 0)), Sum},
	{"an ask does not read its note", NoNoteOfAsk, faults(1, calls(2, 1, 1, 0)), Sum},
	{"a withdrawal is not noted", NoNoteOfWithdrawal, faults(1, calls(1, 1, 1, 0)), Lost},
	{"a call for nobody is answered by an undo", UndoesForCall, failover(faults(1, calls(1, 1, 1, 0))), Sum},
	{"a call for nobody is not answered", StrayCallIgnored, failover(faults(1, calls(1, 1, 1, 0))), Idle},
	{"a call is dropped while an ask is under way", CallDropped, calls(1, 1, 1, 0), explore.Slow},
	{"strangers are not heard", StrangersNotHeard, stranger(calls(1, 1, 0, 0)), explore.Slow},
	{"grants, the lease counts from the last refusal", LeaseFromRefusal, grants(1, 1, 1, 1), Unfounded},
	{"grants, the lease counts from the arrival", LeaseFromArrival, grants(1, 1, 1, 1), Unfounded},
	{"grants, one that nobody waits for is kept", UnwantedGrantKept, faults(1, grants(1, 1, 1, 0)), Lost},
	{"grants, the entry stays", GrantKeepsEntry, grants(1, 1, 1, 0), Twice},
	{"grants, a newcomer ignores the line", NewcomerIgnoresLine, grants(2, 1, 2, 1), Overtaken},
	{"a release is sent once", NotRepeated, faults(1, calls(1, 1, 1, 0)), Lost},
	{"nobody polls", NoPoll, faults(1, calls(1, 1, 1, 0)), explore.Stranded},
	{"a bar opens only beside something free", BarWantsFree, large(Bars, twoInLine(1, calls(2, 1, 2, 1))), Overtaken},
	{"a large request is passed", None, large(Passed, calls(2, 1, 2, 1)), Overtaken},
}

// hiddenMistakes show among many states, so runs with the race detector do without them: see quick.
var hiddenMistakes = []mistake{
	{"a late copy of an ask keeps its ticket", TicketOfLateCopy, faults(1, stranger(calls(1, 1, 1, 1))), Demoted},
	{"a take serves nobody", TakeServesNobody, faults(1, calls(2, 2, 1, 1)), Rests},
}

// rareMistakes show only among hundreds of thousands of states.
var rareMistakes = []mistake{
	{"a large request blocks", None, faults(1, calls(2, 1, 2, 1)), explore.Stranded},
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
