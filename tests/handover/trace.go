package handover

import (
	"fmt"
	"slices"
	"strings"
)

// trace returns the shortest way to a state, with the names that clients have at the start. The states of the graph
// have the clients in another order.
func (g *graph) trace(last int32) (lines []string) {
	var way []int32
	for i := last; i > 0; i = g.parent[i] {
		way = append(way, i)
	}
	slices.Reverse(way)
	_, names := g.model.ordered(g.model.first())
	at := int32(0)
	for _, i := range way {
		found := false
		g.model.next(g.states[at], func(st step, n state) {
			o, order := g.model.ordered(n)
			if found || o != g.states[i] {
				return
			}
			found = true
			var places, later [clients]int
			for to, name := range names {
				places[name] = to
			}
			told := n.renamed(places)
			lines = append(lines, fmt.Sprintf("%-58s %s", st.named(names), &told))
			for to, from := range order {
				later[to] = names[from]
			}
			names = later
		})
		at = i
	}
	return lines
}

// named gives the clients of a step the names that they have at the start.
func (st step) named(names [clients]int) step {
	rename := func(o owner) owner {
		if o == nobody || o == stranger {
			return o
		}
		return ownerOf(names[o.client()], o.number())
	}
	st.client = names[st.client]
	st.item.owner, st.item.next = rename(st.item.owner), rename(st.item.next)
	return st
}

var ruleNames = map[rule]string{
	starts: "wants the lock", polls: "polls", givesUp: "gives up", givesUpForNext: "gives up, the next in line waits on",
	passesOn: "passes the lock on in memory", endsTurn: "ends its turn and waits again", ends: "releases", renews: "renews",
	crashes: "CRASHES", restarts: "starts again", disconnects: "LOSES ITS SUBSCRIPTION", reconnects: "subscribes again",
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
