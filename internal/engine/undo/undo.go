// Package undo settles commands whose outcome is unknown, in the background, and numbers the
// operations that must count once.
package undo

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/transport"
	"github.com/latchkey-go/latchkey/internal/transport/nodes"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
	"github.com/latchkey-go/latchkey/internal/transport/retry"
)

// Undoer makes the server's state match the client's after a command with an unknown outcome: an
// acquisition that was sent and not answered, a release that could not be delivered, a renewal that
// may have been sent for a lost hold. It does so at once, and repeats it until no late copy of the
// command can be executed any more:
//
//	what may be executed late            undo is sent               until
//	-----------------------------------  -------------------------  --------------------------
//	nothing that counts: a release, a    at once                    it is answered
//	renewal, a recorded operation
//
//	an acquisition that was sent in the  at once                    it is answered
//	generation of the answer
//
//	any other acquisition                at once, after FirstPause, it is answered after the
//	                                     after pauses that grow,    end of the window
//	                                     at the end of the window
//
// The window is the lease that the acquisition wanted, but LateDelivery at most. So the undoer
// sends three commands for the default lease of 30 s or a shorter one, and five for the longest. An
// acquisition that is executed late stays until the next of these commands, or until its lease is
// over if that is sooner.
//
// A command without an answer does not count. The undo stays in the backlog of its node (see
// [nodes.Backlog]) until the lease is over, even the lease of an acquisition that was executed
// at the last moment.
type Undoer struct {
	sender *transport.Sender
	clock  func() lease.Stamp
	open   context.Context // until Close
	end    context.CancelFunc
	tasks  sync.WaitGroup

	mu      sync.Mutex
	pending map[Undoable]*pendingUndo
	planned async.Heap[*pendingUndo] // those that wait for their time
	timer   *time.Timer              // for the first of them, nil before the first use
}

const (
	// LateDelivery is the longest time for which a command can be on its way. It is longer than TCP
	// keeps trying to deliver.
	LateDelivery = 20 * time.Minute
	// FirstPause is the first pause between two commands, or a fifteenth of the window if that is
	// less. Each later pause is pauseGrowth times as long.
	FirstPause  = 2 * time.Second
	pauseGrowth = 16
	// RetryPause is the pause after an answer that means "not now".
	RetryPause = retry.LongPause
	// inFlight is how many undo commands can be in flight to one node: about as many as callers
	// give up within a round trip, or else the withdrawals of waiters fall behind. They share the
	// slots that are reserved for renewals and releases, and must leave most of them free.
	inFlight = 64
	// probePause is the pause between two probes of a silent node. Each probe is repeated until
	// the client's patience is over.
	probePause = retry.LongPause
	// longestBacklog is how many undos can wait for a silent node. If there are more, the oldest
	// that end by themselves are left to their leases.
	longestBacklog = 1 << 14
)

// Undoable is something whose state on the server may differ from the client's.
type Undoable interface {
	// Undo corrects the server's state once, and returns the outcome.
	Undo(ctx context.Context, stop <-chan struct{}) outcome.Outcome
}

// Plan describes an undo to the undoer.
type Plan struct {
	Key        string
	Delay      time.Duration    // before the first command
	Lease      time.Duration    // that the server may have given
	Late       bool             // an acquisition may be executed late
	Generation nodes.Generation // in which that acquisition was sent
}

// pendingUndo is an undo that is not finished, guarded by Undoer.mu. Its times are on the monotonic
// clock.
type pendingUndo struct {
	what       Undoable
	slot       uint16
	index      int              // in planned; async.NotInHeap if it is in the backlog of its node, or in flight
	again      bool             // it was added again while it was in flight
	due        time.Duration    // when the next command is to be sent
	pause      time.Duration    // after the answer to that command
	late       bool             // an acquisition may be executed late
	generation nodes.Generation // in which that acquisition was sent
	window     time.Duration    // when the lease that the acquisition wanted is over
	expiry     time.Duration    // when nothing is left to undo, answered or not
}

// New returns an undoer that tries each undo for the sender's patience.
func New(s *transport.Sender, clock func() lease.Stamp) *Undoer {
	open, end := context.WithCancel(context.Background())
	return &Undoer{sender: s, clock: clock, open: open, end: end, pending: map[Undoable]*pendingUndo{}}
}

// Add schedules an undo.
func (u *Undoer) Add(what Undoable, plan Plan) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.open.Err() != nil {
		return
	}
	p := newPendingUndo(what, plan, u.clock().Mono)
	switch known := u.pending[what]; {
	case known == nil:
		u.pending[what] = p
		u.planned.Put(p)
	case known.index != async.NotInHeap:
		p.due = min(p.due, known.due)
		known.merge(p)
		u.planned.Put(known)
	default:
		known.again = true
		known.merge(p)
	}
	u.arm()
}

func newPendingUndo(what Undoable, plan Plan, now time.Duration) *pendingUndo {
	start := now + plan.Delay
	lease := min(plan.Lease+lease.Margin(plan.Lease), LateDelivery)
	p := &pendingUndo{
		what: what, slot: keyspace.Slot(plan.Key), index: async.NotInHeap,
		due: start, pause: min(FirstPause, lease/(pauseGrowth-1)),
		late: plan.Late, generation: plan.Generation,
		window: start + lease, expiry: start + lease,
	}
	if p.late {
		p.expiry += LateDelivery
	}
	return p
}

// merge adds another undo of the same thing to this one.
func (p *pendingUndo) merge(more *pendingUndo) {
	switch {
	case p.late && more.late:
		p.generation = p.generation.Common(more.generation)
	case more.late:
		p.late, p.generation = true, more.generation
	}
	p.due, p.pause = more.due, more.pause
	p.window, p.expiry = max(p.window, more.window), max(p.expiry, more.expiry)
}

// arm sets the timer for the first that is planned. u.mu is held.
func (u *Undoer) arm() {
	next := u.planned.Next()
	if next == async.NoDeadline || u.open.Err() != nil {
		return
	}
	wait := max(next-u.clock().Mono, 0)
	if u.timer == nil {
		u.timer = time.AfterFunc(wait, u.dispatch)
		return
	}
	u.timer.Reset(wait)
}

// dispatch sends what is due.
func (u *Undoer) dispatch() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.open.Err() != nil {
		return
	}
	now := u.clock().Mono
	for u.planned.Next() <= now {
		u.send(u.planned.TakeFirst())
	}
	u.arm()
}

// send puts an undo into the backlog of its node. u.mu is held.
func (u *Undoer) send(p *pendingUndo) {
	backlog := nodes.BacklogOf[*pendingUndo](u.sender.Topology.Serving(p.slot), u, 0, inFlight)
	if backlog.Add(p) {
		u.tasks.Go(func() {
			backlog.Serve(u.open, u.tasks.Go, func() time.Duration { return retry.Jitter(probePause) }, u.attempt)
		})
	}
	if oldest, found := backlog.Shorten(longestBacklog, func(p *pendingUndo) bool { return p.late }); found {
		delete(u.pending, oldest.what)
	}
}

// attempt undoes something once, and plans the next time or forgets it. It reports whether the node
// answered.
func (u *Undoer) attempt(p *pendingUndo) (heard bool) {
	v := u.try(context.Background(), p.what.Undo)
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.clock().Mono
	switch {
	case p.again:
		p.again = false
	case v.Final() && u.settled(p, now), now >= p.expiry:
		delete(u.pending, p.what)
		return v.Heard()
	case v.Final():
		p.due = min(now+p.pause, p.window)
		p.pause *= pauseGrowth
	case v == outcome.TryLater:
		p.due = now + retry.Jitter(RetryPause)
	default:
		u.send(p)
		return false
	}
	u.planned.Put(p)
	u.arm()
	return v.Heard()
}

// settled reports, after an answer, whether nothing can be executed late any more. u.mu is held.
func (u *Undoer) settled(p *pendingUndo, now time.Duration) bool {
	return !p.late || now >= p.window || u.sender.Topology.IsStill(p.generation)
}

// try undoes something once, within the patience of the client.
func (u *Undoer) try(
	ctx context.Context, once func(context.Context, <-chan struct{}) outcome.Outcome,
) outcome.Outcome {
	ctx, cancel := context.WithTimeout(ctx, u.sender.Patience)
	defer cancel()
	return once(ctx, u.open.Done())
}

// Now undoes something for a call that has to report the outcome, and reports whether it is
// done.
func (u *Undoer) Now(once func(context.Context, <-chan struct{}) outcome.Outcome) bool {
	return u.try(context.Background(), once).Final()
}

// Close undoes everything once more. What it cannot reach by then ends with its lease.
func (u *Undoer) Close(ctx context.Context) {
	u.mu.Lock()
	u.end()
	if u.timer != nil {
		u.timer.Stop()
	}
	u.mu.Unlock()
	u.tasks.Wait()
	var silent sync.Map // nodes
	async.ForEach(inFlight, slices.Collect(maps.Values(u.pending)), func(p *pendingUndo) {
		node := u.sender.Topology.Serving(p.slot)
		if _, is := silent.Load(node); !is && ctx.Err() == nil && !u.try(ctx, p.what.Undo).Heard() {
			silent.Store(node, true)
		}
	})
}

// DueAt implements [async.Item].
func (p *pendingUndo) DueAt() time.Duration { return p.due }

// HeapIndex implements [async.Item].
func (p *pendingUndo) HeapIndex() *int { return &p.index }
