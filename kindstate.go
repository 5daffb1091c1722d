package latchkey

import (
	"maps"
	"slices"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
)

// kindState returns the state that one kind of lock keeps for all its locks in a client, such as the list of
// their waiters. It makes the state on first use. Close calls its method close, if it has one.
func (c *parts) kindState(kind keyspace.Kind, newState func() any) any {
	c.kindStatesMu.Lock()
	defer c.kindStatesMu.Unlock()
	state := c.kindStates[kind]
	if state == nil {
		state = newState()
		c.kindStates[kind] = state
	}
	return state
}

// closeKindStates closes all kind states when no lock uses them any more.
func (c *parts) closeKindStates() {
	c.kindStatesMu.Lock()
	states := slices.Collect(maps.Values(c.kindStates))
	c.kindStatesMu.Unlock()
	for _, state := range states {
		if s, is := state.(interface{ close() }); is {
			s.close()
		}
	}
}
