package handover

import (
	"fmt"
	"strings"

	"github.com/latchkey-go/latchkey/tests/handover/explore"
)

// Describe implements [explore.Model].
func (m *Model) Describe(st step, next state, names explore.Order) string {
	st.client = names[st.client]
	st.item.owner, st.item.next = st.item.owner.renamed(names), st.item.next.renamed(names)
	next = next.renamed(names.Places())
	return fmt.Sprintf("%-58s %s", st, &next)
}

var ruleNames = map[rule]string{
	starts: "wants the lock", polls: "polls", pollsSoon: "polls as it was told to", repeats: "repeats its release",
	givesUp: "gives up", givesUpForNext: "gives up, the next in line waits on", passesOn: "passes the lock on in memory",
	endsTurn: "ends its turn and waits again", ends: "releases", renews: "renews", crashes: "CRASHES",
	restarts: "starts again", disconnects: "LOSES ITS SUBSCRIPTION", reconnects: "subscribes again",
}

func (o owner) String() string {
	switch o {
	case nobody:
		return "nobody"
	case stranger:
		return "a stranger"
	}
	return fmt.Sprintf("%c%d", 'A'+o.client(), o.number())
}

func (m message) String() string {
	t := fmt.Sprintf("%s of %s", kindNames[m.kind], m.owner)
	if m.late {
		t = "late " + t
	}
	if m.next != nobody {
		t += ", with " + m.next.String() + " waiting"
	}
	return t
}

func (st step) String() string {
	switch st.rule {
	case delivers:
		return "arrives: " + st.item.String()
	case loses:
		return "LOST: " + st.item.String()
	case delays:
		return "DELAYED: " + st.item.String()
	case spares:
		return "WITHOUT THE QUEUE: " + st.item.String()
	case doubles:
		return "ARRIVES, AND WILL AGAIN: " + st.item.String()
	case ticks:
		return "time passes"
	case losesQueue:
		return "FAILOVER: the queue is lost"
	case bringsBack:
		return "FAILOVER: " + st.item.owner.String() + " is in the queue again"
	case strangerComes, strangerTakes, strangerReleases:
		return "a stranger " + [...]string{"wants the lock", "takes it", "releases it"}[st.rule-strangerComes]
	}
	return fmt.Sprintf("%c %s", 'A'+st.client, ruleNames[st.rule])
}

// String returns the state of the server, and which clients rely on the lock.
func (s *state) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "lock: %s", s.owner)
	if s.owner != nobody && s.owner != stranger {
		fmt.Fprintf(&b, " for %d", s.ttl)
	}
	for i, e := range s.queue {
		if e != nobody {
			b.WriteString([...]string{", ", "; queue: "}[min(1, 1/(i+1))] + e.String())
		}
	}
	for i := range s.clients {
		if c := &s.clients[i]; c.phase == holding {
			fmt.Fprintf(&b, "; %s relies on it for %d", s.mine(i), c.valid)
		}
	}
	return b.String()
}
