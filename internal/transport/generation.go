package transport

// Generation is a time in which no connection broke: to a node, and to any node, of which rueidis
// may have chosen another than we think. A client of our own has one connection for all
// commands to a node. So if one command is answered in the generation in which another was sent
// before, that has been executed already, or never will be.
type Generation struct{ Here, Anywhere int64 }

// NoGeneration is the generation of a command of which nothing like that can be said.
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

// Generation returns the one that it is now.
func (t *Topology) Generation() Generation {
	now, _ := t.common.connections.look()
	return now
}

// MarkBroken notes that there is no connection until something is answered.
func (t *Topology) MarkBroken() { t.common.connections.broke() }
