package tests

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// acquires returns what goroutines of a client do again and again.
type acquires func(c *latchkey.Client, name string) acquire

// passedKind is something that passes from one holder to the next, each of which excludes all
// others.
type passedKind struct {
	set    func(ctx context.Context, c *latchkey.Client, name string) error // before it can be acquired, or nil
	holds  acquires
	waits  acquires
	spins  bool // those that wait poll, whatever their client may do
	queued bool // those that wait have a place in a queue on the server
}

// prepare sets it.
func (k passedKind) prepare(t *testing.T, server *rig.Server, name string) {
	t.Helper()
	if k.set != nil {
		require.NoError(t, k.set(t.Context(), connect(t, server), name))
	}
}

// passedOn are all objects that one holder passes to the next, and the pairs of locks of which one
// excludes the other.
var passedOn = map[string]passedKind{
	"mutex":                 {holds: mutexesOf, waits: mutexesOf, queued: true},
	"lock":                  {holds: plainLocksOf, waits: plainLocksOf, queued: true},
	"fenced lock":           {holds: fencedLocksOf, waits: fencedLocksOf, queued: true},
	"fair lock":             {holds: fairLocksOf, waits: fairLocksOf, queued: true},
	"fenced fair lock":      {holds: fencedFairLocksOf, waits: fencedFairLocksOf, queued: true},
	"spin lock":             {holds: plainLocksOf, waits: spinLocksOf, spins: true},
	"write lock":            {holds: writersOf, waits: writersOf, queued: true},
	"reader behind writers": {holds: writersOf, waits: readersOf},
	"writer behind readers": {holds: readersOf, waits: writersOf, queued: true},
	"election":              {holds: leadershipsOf, waits: leadershipsOf, queued: true},
	"semaphore": {queued: true, holds: onePermit, waits: onePermit,
		set: func(ctx context.Context, c *latchkey.Client, name string) error {
			return c.NewSemaphore(name).SetPermits(ctx, 1)
		}},
	"permit semaphore": {queued: true, holds: oneWithID, waits: oneWithID,
		set: func(ctx context.Context, c *latchkey.Client, name string) error {
			return c.NewPermitSemaphore(name).SetPermits(ctx, 1)
		}},
	"fair semaphore": {queued: true, holds: oneInOrder, waits: oneInOrder,
		set: func(ctx context.Context, c *latchkey.Client, name string) error {
			return c.NewFairSemaphore(name).SetPermits(ctx, 1)
		}},
}

func mutexesOf(c *latchkey.Client, name string) acquire     { return locking(c.NewMutex(name)) }
func plainLocksOf(c *latchkey.Client, name string) acquire  { return locking(c.NewLock(name)) }
func fencedLocksOf(c *latchkey.Client, name string) acquire { return locking(c.NewFencedLock(name)) }
func fairLocksOf(c *latchkey.Client, name string) acquire   { return locking(c.NewFairLock(name)) }
func fencedFairLocksOf(c *latchkey.Client, name string) acquire {
	return locking(c.NewFairLock(name, latchkey.Fenced()))
}
func writersOf(c *latchkey.Client, name string) acquire { return locking(c.NewRWLock(name).Writer()) }
func readersOf(c *latchkey.Client, name string) acquire { return locking(c.NewRWLock(name).Reader()) }
func onePermit(c *latchkey.Client, name string) acquire { return taking(c.NewSemaphore(name)) }

func spinLocksOf(c *latchkey.Client, name string) acquire {
	return locking(c.NewSpinLock(name, latchkey.Backoff{}))
}

func leadershipsOf(c *latchkey.Client, name string) acquire {
	e := c.NewElection(name)
	return func(ctx context.Context) (taken, error) {
		l, err := e.Campaign(ctx, "me")
		if err != nil {
			return taken{}, err
		}
		return taken{release: l.Resign, token: l.Term()}, nil
	}
}

func oneWithID(c *latchkey.Client, name string) acquire {
	s := c.NewPermitSemaphore(name)
	return func(ctx context.Context) (taken, error) { return takenPermit(s.Acquire(ctx)) }
}

func oneInOrder(c *latchkey.Client, name string) acquire {
	s := c.NewFairSemaphore(name)
	return func(ctx context.Context) (taken, error) { return takenPermit(s.Acquire(ctx)) }
}

func takenPermit(p *latchkey.Permit, err error) (taken, error) {
	if err != nil {
		return taken{}, err
	}
	return taken{release: p.Release, valid: p.ValidFor()}, nil
}
