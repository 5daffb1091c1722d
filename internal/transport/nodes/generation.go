package nodes

// Generation is a period in which no connection broke, to one node and to any node, since rueidis
// may choose another node than we expect. An owned client has one connection for all commands to a
// node. So if a command is answered in the generation in which an earlier one was sent, the earlier
// one has been executed already, or never will be.
type Generation struct{ Here, Anywhere int64 }

// NoGeneration is the generation of a command without that guarantee.
var NoGeneration = Generation{-1, -1}

// Common returns the generation of two commands, or NoGeneration if they differ.
func (g Generation) Common(other Generation) Generation {
	if g != other {
		return NoGeneration
	}
	return g
}

// IsStill reports whether no connection to any node has broken since that generation.
func (t *Topology) IsStill(g Generation) bool { return g.Anywhere == t.breaks.Load() }

// Generation returns the current generation, for IsStill.
func (t *Topology) Generation() Generation {
	now, _ := t.common.connections.look()
	return now
}

// MarkBroken notes that there is no connection until the next answer.
func (t *Topology) MarkBroken() { t.common.connections.broke() }
