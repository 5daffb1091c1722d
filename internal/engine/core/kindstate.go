package core

import (
	"sync"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
)

// kindState is the state of one kind of lock in a client.
type kindState struct {
	made  sync.Once
	state any
	close func() // or nil
}

// KindState returns the state that one kind of lock keeps for all its locks in a client, such as
// the list of their waiters. It makes the state on first use, together with what is called when the
// client is closed, which may be nil.
func KindState[S any](c *Parts, kind keyspace.Kind, newState func() (state S, atClose func())) S {
	k := c.kindState(kind)
	k.made.Do(func() {
		state, atClose := newState()
		c.kindStatesMu.Lock()
		defer c.kindStatesMu.Unlock()
		k.state, k.close = state, atClose
	})
	return k.state.(S)
}

func (c *Parts) kindState(kind keyspace.Kind) *kindState {
	c.kindStatesMu.Lock()
	defer c.kindStatesMu.Unlock()
	k := c.kindStates[kind]
	if k == nil {
		k = &kindState{}
		c.kindStates[kind] = k
	}
	return k
}

// closeKindStates closes all kind states when no lock uses them any more.
func (c *Parts) closeKindStates() {
	c.kindStatesMu.Lock()
	var closes []func()
	for _, k := range c.kindStates {
		if k.close != nil {
			closes = append(closes, k.close)
		}
	}
	c.kindStatesMu.Unlock()
	for _, atClose := range closes {
		atClose()
	}
}
