package handover

import (
	"testing"

	"github.com/latchkey-go/latchkey/tests/handover/explore/exploretest"
)

// usual returns bounds that most explorations share: a lease of two ticks, or one for a grant, and
// turns of one tick.
func usual(a, b, c uint8) Model {
	return Model{Acquisitions: [clients]uint8{a, b, c}, Lease: 2, Short: 1, Turn: 1}
}

func with(m Model, change func(*Model)) Model {
	change(&m)
	return m
}

func faults(n uint8, m Model) Model { m.Faults = n; return m }

func fair(m Model) Model { m.Fair = true; return m }

func failover(m Model) Model { m.Failover = true; return m }

func strangers(n uint8, m Model) Model { m.Strangers = n; return m }

// told makes refusals say since when the owner waits.
func told(m Model) Model { m.Since = true; return m }

// withoutQueue makes up to n commands run without the queue.
func withoutQueue(n uint8, m Model) Model { m.WithoutQueue = n; return m }

// polling makes the last client one that asks instead of listening.
func polling(m Model) Model { m.Pollers[clients-1] = true; return m }

// scenario is a model to explore, with its description.
type scenario struct {
	name  string
	model Model
}

// quick has the scenarios of every run. A run with the race detector has only these: see
// [exploretest.Chosen].
var quick = []scenario{
	{"a stranger", strangers(1, usual(1, 1, 0))},
	{"a poller", polling(usual(1, 0, 1))},
}

// usually has the scenarios of runs without the race detector.
var usually = []scenario{
	{"three clients", usual(1, 1, 1)},
	{"two clients, a fault", faults(1, usual(1, 1, 0))},
	{"one client alone has two in line, a fault", faults(1, usual(2, 0, 0))},
	{"two clients, one polls, a fault", polling(faults(1, usual(1, 0, 1)))},
	{"one client has two in line, another polls", polling(usual(2, 0, 1))},
	{"two clients, a failover or another fault", failover(faults(1, usual(1, 1, 0)))},
	{"two clients, told since when they wait, a fault", told(faults(1, usual(1, 1, 0)))},
}

// unlessShort has scenarios that short runs skip.
var unlessShort = []scenario{
	{"two clients, a fair lock, a fault", fair(faults(1, usual(1, 1, 0)))},
	{"one client has two in line, a command without the queue", withoutQueue(1, usual(2, 1, 0))},
	{"one client has two in line", usual(2, 1, 0)},
	{"three clients, one polls", polling(usual(1, 1, 1))},
	{"three clients, told since when they wait", told(usual(1, 1, 1))},
}

// onRequest has scenarios that take minutes and gigabytes.
var onRequest = []scenario{
	{"three clients, a fault", faults(1, usual(1, 1, 1))},
	{"three clients, a fair lock", fair(usual(1, 1, 1))},
	{"two clients, two faults", faults(2, usual(1, 1, 0))},
	{"longer leases", faults(1, with(usual(1, 1, 0), func(m *Model) { m.Lease, m.Short, m.Turn = 3, 2, 2 }))},
	{"a stranger, a fault", faults(1, strangers(1, usual(1, 1, 0)))},
	{"one client has two in line, another polls, a fault", polling(faults(1, usual(2, 0, 1)))},
	{"three clients, one has two in line", usual(2, 1, 1)},
	{"one client has two in line, a fault", faults(1, usual(2, 1, 0))},
	{"turns of three holds", usual(3, 1, 0)},
	{"two clients, told since when they wait, two faults", told(faults(2, usual(1, 1, 0)))},
	{"two clients, two commands without the queue, a fault", withoutQueue(2, faults(1, usual(1, 1, 0)))},
	{"three clients, a command without the queue", withoutQueue(1, usual(1, 1, 1))},
	{"two clients, two faults, failovers among them", failover(faults(2, usual(1, 1, 0)))},
}

func TestProtocol(t *testing.T) {
	for _, s := range exploretest.Chosen(quick, usually, unlessShort, onRequest) {
		t.Run(s.name, func(t *testing.T) { exploretest.Holds(t, &s.model) })
	}
}
