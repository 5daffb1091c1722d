package latchkey

// generation is a time in which no connection broke: to a node, and to any node, of which rueidis
// may have chosen another than we think. A client of our own has one connection for all
// commands to a node. So if one command is answered in the generation in which another was sent
// before, that has been executed already, or never will be.
type generation struct{ here, anywhere int64 }

// noGeneration is the generation of a command of which nothing like that can be said.
var noGeneration = generation{-1, -1}

// common returns the generation of two commands, or noGeneration if they differ.
func (e generation) common(other generation) generation {
	if e != other {
		return noGeneration
	}
	return e
}

// isStill reports whether no connection to any node has broken since that generation.
func (t *topology) isStill(e generation) bool { return e.anywhere == t.breaks.Load() }

// generation returns the one that it is now.
func (t *topology) generation() generation {
	now, _ := t.common.connections.look()
	return now
}

// broke notes that there is no connection until something is answered.
func (t *topology) broke() { t.common.connections.broke() }
