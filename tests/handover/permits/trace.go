package permits

import (
	"fmt"
	"strings"

	"github.com/latchkey-go/latchkey/tests/handover/explore"
)

// Describe implements [explore.Model].
func (m *Model) Describe(st step, next state, names explore.Order) string {
	st.client = names[st.client]
	st.item.op = st.item.op.renamed(names)
	next = next.renamed(names.Places())
	return fmt.Sprintf("%-50s %s", st, &next)
}

var ruleNames = map[rule]string{
	starts: "wants permits", polls: "polls", pollsSoon: "polls as it was told to", givesUp: "gives up",
	givesUpForNext: "gives up, the next in line waits on", ends: "releases", repeats: "repeats what was not answered",
	crashes: "CRASHES", restarts: "starts again", disconnects: "LOSES ITS SUBSCRIPTION", reconnects: "subscribes again",
}

var worldNames = map[rule]string{
	ticks: "time passes", losesLine: "FAILOVER: the line is lost", losesMarks: "FAILOVER: the marks are lost",
	clockBack: "THE CLOCK is set back", clockAhead: "THE CLOCK is set forward", strangerComes: "a stranger wants a permit",
	strangerTakes: "the stranger takes it", strangerReleases: "the stranger releases it",
}

var itemNames = map[rule]string{
	delivers: "arrives: ", loses: "LOST: ", doubles: "ARRIVES, AND WILL AGAIN: ", delays: "DELAYED: ",
	fails: "ARRIVES, BUT CALLS FAIL: ",
}

func (o op) String() string {
	if o == none {
		return "nobody"
	}
	return fmt.Sprintf("%c%d", 'A'+o.client(), o.number())
}

func (f message) String() string {
	t := fmt.Sprintf("%s of %s", kindNames[f.kind], f.op)
	if f.late {
		t = "late " + t
	}
	return t
}

func (st step) String() string {
	switch {
	case itemNames[st.rule] != "":
		return itemNames[st.rule] + st.item.String()
	case worldNames[st.rule] != "":
		return worldNames[st.rule]
	case st.rule == bringsBackEntry:
		return "FAILOVER: " + st.item.op.String() + " is in line again"
	case st.rule == bringsBackMark:
		return "FAILOVER: permits are kept for " + st.item.op.String() + " again"
	}
	return fmt.Sprintf("%c %s", 'A'+st.client, ruleNames[st.rule])
}

// String returns the state of the server, and which clients rely on permits.
func (s *state) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "free: %d", s.free)
	for i, e := range s.line {
		if e.op != none {
			fmt.Fprintf(&b, "%s%s (%d)", [...]string{", ", "; line: "}[min(1, 1/(i+1))], e.op, s.size(e.op))
		}
	}
	for _, k := range s.marks {
		if k.op != none {
			fmt.Fprintf(&b, "; %d kept for %s%s", s.size(k.op), k.op, [...]string{", over", "", ", until far away"}[k.left])
		}
	}
	for i := range s.clients {
		if s.clients[i].phase == holding {
			fmt.Fprintf(&b, "; %s has %d", s.mine(i), s.size(s.mine(i)))
		}
	}
	return b.String()
}
