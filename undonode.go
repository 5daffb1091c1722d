package latchkey

import (
	"slices"
	"sync"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// undoRoute is the line of what is due on one node, so that one that is silent holds up
// no other. While it is silent, everything in the line waits for a single probe.
type undoRoute struct {
	line   []*pendingUndo
	busy   bool // somebody serves it
	silent bool
}

const (
	// undoPlaces is how many commands of undo are under way to one node.
	undoPlaces = 16
	// undoProbePause is the pause between two probes of a node that is silent. Each of them
	// is repeated for as long as the client is patient.
	undoProbePause = transport.LongPause
	// undoLine is how many may wait for a node that is silent. Of more, the oldest that end
	// by themselves are left to their leases.
	undoLine = 1 << 14
)

// node is where something is undone.
func (u *undoer) node(p *pendingUndo) string { return u.client.topology.AddressOf(p.slot) }

// send puts something into the line of its node. u.mu is held.
func (u *undoer) send(p *pendingUndo) {
	node := u.node(p)
	r := u.routes[node]
	if r == nil {
		r = &undoRoute{}
		u.routes[node] = r
	}
	r.line = append(r.line, p)
	if r.silent && len(r.line) > undoLine {
		u.forgetOldest(r)
	}
	if !r.busy {
		r.busy = true
		u.tasks.Go(func() { u.serve(r) })
	}
}

// forgetOldest drops the first in a line that ends by itself. u.mu is held.
func (u *undoer) forgetOldest(r *undoRoute) {
	i := slices.IndexFunc(r.line, func(p *pendingUndo) bool { return p.late })
	if i >= 0 {
		delete(u.pending, r.line[i].what)
		r.line = slices.Delete(r.line, i, i+1)
	}
}

// serve undoes what is in a line until nothing is. The first goes alone, to find out
// whether the node answers.
func (u *undoer) serve(r *undoRoute) {
	for {
		probe := u.next(r, true)
		if probe == nil {
			return
		}
		heard := u.attempt(probe)
		u.mu.Lock()
		r.silent = !heard
		several := min(len(r.line), undoPlaces)
		u.mu.Unlock()
		if heard {
			u.drain(r, several)
		} else if transport.Rest(u.open, nil, transport.Jitter(undoProbePause)) != nil {
			return
		}
	}
}

// drain undoes what is in a line, several at once, until nothing is or the node falls
// silent.
func (u *undoer) drain(r *undoRoute, several int) {
	var workers sync.WaitGroup
	for range several {
		workers.Go(func() {
			for p := u.next(r, false); p != nil && u.attempt(p); {
				p = u.next(r, false)
			}
		})
	}
	workers.Wait()
}

// next takes the first out of a line. Whoever serves the line and finds nothing leaves it.
func (u *undoer) next(r *undoRoute, serves bool) *pendingUndo {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(r.line) == 0 || u.open.Err() != nil {
		r.busy = r.busy && !serves
		r.line = nil
		return nil
	}
	p := r.line[0]
	r.line[0], r.line = nil, r.line[1:]
	return p
}
