package permits

import (
	"testing"

	"github.com/latchkey-go/latchkey/tests/handover/explore/exploretest"
)

// calls returns a model with that many permits, of which the clients want that many.
func calls(total int8, a, b, c uint8) Model {
	return Model{Total: total, Lines: [clients][2]uint8{{a}, {b}, {c}}}
}

// grants is calls for permits with ids.
func grants(total int8, a, b, c uint8) Model {
	m := calls(total, a, b, c)
	m.Grants = true
	return m
}

func faults(n uint8, m Model) Model { m.Faults = n; return m }

func failover(m Model) Model { m.Failover = true; return m }

func clock(m Model) Model { m.Clock = true; return m }

// polling makes the last client one that asks instead of listening.
func polling(m Model) Model { m.Pollers[clients-1] = true; return m }

// twoInLine gives the first client a second goroutine in its line, which wants n permits.
func twoInLine(n uint8, m Model) Model { m.Lines[0][1] = n; return m }

func stranger(m Model) Model { m.Strangers = 1; return m }

func large(l Large, m Model) Model { m.Large = l; return m }

// four lets four goroutines of three clients wait for one permit.
func four() Model { return twoInLine(1, calls(1, 1, 1, 1)) }

// scenario is a model to explore, with its description.
type scenario struct {
	name  string
	model Model
}

// quick has the scenarios of every run. A run with the race detector has only these: see
// [exploretest.Chosen].
var quick = []scenario{
	{"three clients, one permit", calls(1, 1, 1, 1)},
	{"two in line want as much", twoInLine(1, calls(1, 1, 1, 0))},
	{"two in line want different numbers", twoInLine(1, calls(2, 2, 2, 0))},
	{"a stranger", stranger(calls(1, 1, 1, 0))},
	{"a poller", polling(calls(1, 1, 1, 1))},
	{"grants, two clients", grants(1, 1, 1, 0)},
	{"grants, a poller", polling(grants(1, 1, 0, 1))},
}

// usually has the scenarios of runs without the race detector.
var usually = []scenario{
	{"two clients, a fault", faults(1, calls(1, 1, 1, 0))},
	{"two clients, a failover or another fault", failover(faults(1, calls(1, 1, 1, 0)))},
	{"a poller, a fault", polling(faults(1, calls(1, 0, 1, 1)))},
	{"a large request, blocked", calls(2, 1, 2, 1)},
	{"a large request, with a bar", large(Bars, calls(2, 1, 2, 1))},
	{"grants, a stranger", stranger(grants(1, 1, 1, 0))},
	{"a stranger, a fault", stranger(faults(1, calls(1, 1, 1, 0)))},
}

// unlessShort has scenarios that short runs skip.
var unlessShort = []scenario{
	{"grants, two clients, a failover or another fault", failover(faults(1, grants(1, 1, 1, 0)))},
	{"three clients, a fault or a clock that is wrong", clock(faults(1, calls(1, 1, 1, 1)))},
	{"a poller, four in line", polling(four())},
}

// onRequest has scenarios that take minutes and gigabytes.
var onRequest = []scenario{
	{"three clients, a failover or another fault", failover(faults(1, calls(1, 1, 1, 1)))},
	{"grants, three clients, two permits", grants(2, 1, 2, 1)},
	{"two clients, two faults", failover(clock(faults(2, calls(1, 1, 1, 0))))},
	{"two in line want different numbers, two faults", twoInLine(1, faults(2, calls(2, 2, 2, 0)))},
	{"three clients, two permits, a fault", faults(1, calls(2, 1, 1, 1))},
	{"a large request, with a bar, four in line", large(Bars, twoInLine(1, calls(2, 1, 2, 1)))},
	{"a large request, with a bar, a fault", large(Bars, clock(faults(1, calls(2, 1, 2, 1))))},
	{"three clients, a poller, a fault", polling(faults(1, calls(1, 1, 1, 1)))},
}

func TestProtocol(t *testing.T) {
	for _, s := range exploretest.Chosen(quick, usually, unlessShort, onRequest) {
		t.Run(s.name, func(t *testing.T) { exploretest.Holds(t, &s.model) })
	}
}
