// Package nodes knows the servers that receive commands: which of them serves what, the state of
// their connections, and how many commands each may have in flight.
package nodes

import (
	"errors"
	"sync"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// Node is a server that receives commands. Nodes do not affect each other: each has its own limits
// for commands in flight.
type Node struct {
	// Each command in flight takes a slot of one of these. Acquisitions cannot take those slots
	// that existing holds need, for renewals, releases and undo.
	Ordinary, Reserved *InFlight

	topology    *Topology
	address     string
	connections connTracker
	backlogs    sync.Map // a *Backlog for each owner
	texts       sync.Map // the scripts that it has received as text, each by its *rueidis.Lua
}

func (t *Topology) newNode(address string) *Node {
	return &Node{
		topology:    t,
		address:     address,
		connections: connTracker{all: &t.breaks},
		Ordinary:    newInFlight(t.limit),
		Reserved:    newInFlight(reservedSlots),
	}
}

// HasText reports whether the node has received a script as text. If not, the caller sends it now.
func (n *Node) HasText(script *rueidis.Lua) bool {
	_, sent := n.texts.LoadOrStore(script, true)
	return sent
}

// Steady reports whether a command that is sent now finds a connection on which nothing is overdue.
// It returns the current generation, with which the answer has to be noted.
func (n *Node) Steady() (now Generation, steady bool) {
	now, steady = n.connections.look()
	return now, steady && !n.Ordinary.anyAbandoned.Load() && !n.Reserved.anyAbandoned.Load()
}

// Heed looks at a reply of the node. If only a new connection can help, it closes those that there
// are.
func (n *Node) Heed(result rueidis.RedisResult) {
	if n.topology.fixed.Load() && outcome.IsAway(result.Error()) {
		n.connections.replace(result.Error())
	}
}

// Heard notes whether the node is up, from the result of a command that was sent in a generation of
// the connection.
func (n *Node) Heard(sentIn Generation, result rueidis.RedisResult) {
	n.Heed(result)
	switch err := result.NonRedisError(); {
	case errors.Is(err, outcome.ErrUnsent): // this says nothing new
	case err != nil && !errors.Is(err, fault.ErrNotReplicated):
		n.connections.broke()
	default:
		n.connections.answered(sentIn)
	}
}

// Address returns the address of the node. It is empty while that is unknown, and without a
// cluster.
func (n *Node) Address() string { return n.address }
