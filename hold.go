package latchkey

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Hold is the right to release a lock, and the way to learn that it is lost. It
// is what every acquisition returns, one for each, re-entries included. Its
// methods may be called from any goroutine. A nil Hold behaves as released.
type Hold struct {
	tenure *tenure
	grip   *grip
	group  *group // instead of both, of a lock that is several
}

// grip is what a tenure knows of one hold, guarded by tenure.mu. It is kept apart
// from the Hold so that a Hold that was dropped without a release can be noticed.
type grip struct {
	renew    bool
	leaving  bool // its release has begun, and its count is given up
	released bool
	told     bool            // Unlock has said so
	cause    error           // why it was lost
	lost     chan struct{}   // made on demand
	endings  map[any]*ending // contexts by their parents, and groups
	// Of a re-entry with MaxHold: the limit, what it counts from, and its timer.
	max   time.Duration
	start stamp
	limit *time.Timer
}

func (g *grip) over() bool { return g.released || g.cause != nil }

// ended is why the hold is over, or nil.
func (g *grip) ended() error {
	switch {
	case g.cause != nil:
		return g.cause
	case g.released || g.leaving:
		return ErrNotHeld
	}
	return nil
}

// left is what remains of the grip's own limit.
func (g *grip) left(now stamp) time.Duration {
	if g.max == 0 {
		return never
	}
	return g.max - driftMargin(g.max) - now.since(g.start)
}

// end makes a grip over: released, or lost with a cause. It returns what
// ends with it. What guards the grip is held.
func (g *grip) end(cause error) []*ending {
	if g.over() {
		return nil
	}
	g.cause, g.released = cause, cause == nil
	if g.lost != nil && cause != nil {
		close(g.lost)
	}
	if g.limit != nil {
		g.limit.Stop()
	}
	return g.takeEndings()
}

// newHold makes the handle, and has a hold that nobody released reported when the
// garbage collector finds it. It is never released then: the program may still be
// inside.
func newHold(t *tenure, g *grip) *Hold {
	h := &Hold{tenure: t, grip: g}
	runtime.SetFinalizer(h, (*Hold).abandoned)
	return h
}

// abandoned runs in the goroutine of the garbage collector, and only looks.
func (h *Hold) abandoned() {
	if h.group != nil {
		h.group.dropped()
		return
	}
	h.tenure.mu.Lock()
	over := h.grip.over() || h.grip.leaving
	// A permit that ends by itself may be left to whoever has its id.
	left := h.tenure.lock.kind.shared && !h.grip.renew
	h.tenure.mu.Unlock()
	if !over && !left {
		h.tenure.client.reporter.log(noticeUnreleased, h.tenure.lock.name, slog.String("owner", h.tenure.wire))
	}
}

// Name returns the name of the lock as the program gave it.
func (h *Hold) Name() string {
	if h == nil {
		return ""
	}
	if h.group != nil {
		return h.group.name
	}
	return h.tenure.lock.name
}

// Owner returns the owner as it stands in Redis. Another process that acquires
// the lock [By] this owner enters the same hold. A [MultiLock] and a [RedLock] have no
// owner of their own.
func (h *Hold) Owner() Owner {
	if h == nil || h.group != nil {
		return Owner{}
	}
	return h.tenure.owner
}

// Token returns the fencing token of a [FencedLock]: a number that is larger than
// that of every earlier holder, the same for the whole hold and its re-entries. A
// store that remembers the largest token it has seen, and refuses smaller ones,
// is safe from a holder that does not know yet that it lost the lock. Other locks
// have no tokens and return 0; for the members of a [MultiLock] see [Hold.Member].
func (h *Hold) Token() int64 {
	if h == nil || h.group != nil {
		return 0
	}
	return h.tenure.token
}

// Count returns how often this client holds the lock for this owner: 1 for an
// outermost hold, more with re-entries, 0 when it is over.
func (h *Hold) Count() int {
	switch {
	case h == nil:
		return 0
	case h.group != nil:
		return h.group.count()
	}
	h.tenure.mu.Lock()
	defer h.tenure.mu.Unlock()
	return h.tenure.count
}

// ValidFor returns for how long the hold can be relied on if the server is never
// heard of again, 0 when it is over. It asks nobody. Look at it right before a
// step that must not happen without the lock; what stalls after the look is for
// a fencing token to stop.
func (h *Hold) ValidFor() time.Duration {
	switch {
	case h.Err() != nil:
		return 0
	case h.group != nil:
		return h.group.validFor()
	}
	h.tenure.mu.Lock()
	defer h.tenure.mu.Unlock()
	return max(min(h.tenure.valid(), h.grip.left(h.tenure.client.clock())), 0)
}

// Err returns nil while the lock is held, and afterwards why it is not: ErrNotHeld
// after Unlock, or the cause of the loss (ErrLost, ErrMaxHold, ErrClosed). It is
// judged at the moment of the call, also when the machine has just woken up and
// no timer has fired yet.
func (h *Hold) Err() error {
	switch {
	case h == nil:
		return ErrNotHeld
	case h.group != nil:
		return h.group.err()
	}
	t := h.tenure
	t.mu.Lock()
	expired := t.phase == held && t.valid() <= 0
	limited := h.grip.left(t.client.clock()) <= 0
	t.mu.Unlock()
	if expired {
		t.endIfDue()
	}
	if limited {
		t.limitReached(h.grip)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.errOf(h.grip)
}

// errOf is why a grip is not held, or nil. t.mu is held.
func (t *tenure) errOf(g *grip) error {
	if err := g.ended(); err != nil || t.phase == held {
		return err
	}
	return ErrNotHeld
}

// Lost returns a channel that closes when the hold is lost, at the latest when the
// lease could run out on the server, whether anything is heard from it or not. It
// does not close on Unlock.
func (h *Hold) Lost() <-chan struct{} {
	if h == nil {
		closed := make(chan struct{})
		close(closed)
		return closed
	}
	if h.group != nil {
		return h.group.state.whenLost(&h.group.mu)
	}
	return h.grip.whenLost(&h.tenure.mu)
}

// whenLost returns the channel that closes with the loss. mu guards the grip.
func (g *grip) whenLost(mu *sync.Mutex) <-chan struct{} {
	mu.Lock()
	defer mu.Unlock()
	if g.lost == nil {
		g.lost = make(chan struct{})
		if g.cause != nil {
			close(g.lost)
		}
	}
	return g.lost
}

// find returns the hold itself, or the one of its members, if it is a live one of a lock,
// or of one side of it, or nil.
func (h *Hold) find(p *primitive, side Kind) *Hold {
	if h.group != nil {
		return h.group.find(p, side)
	}
	t := h.tenure
	if t.client == p.client && t.lock.key == p.key && t.lock.kind.side == side && h.Err() == nil {
		return h
	}
	return nil
}

// Extend makes the lease at least d from now, once; it never shortens it. Renewal,
// if the hold has it, goes on. It does not wait; while the server is in trouble it is
// repeated for Options.RetryBudget.
//
// The error matches ErrNotHeld if the hold is over (also ErrLost if it was lost), ErrMaxHold
// if d would pass the limit of the hold, ErrInvalid for a bad d, ErrClosed, ErrNotReplicated,
// or ErrUnavailable if the server could not be asked, with ErrUnknownOutcome if the request was
// sent and not answered; or it is a *rueidis.RedisError if the server refuses. The lease is
// then unchanged, or d after ErrUnknownOutcome and ErrNotReplicated.
func (h *Hold) Extend(ctx context.Context, d time.Duration) error {
	if err := checkLease("the extension", d); err != nil {
		return fail("extend", h.Name(), err)
	}
	if err := h.Err(); err != nil {
		return fail("extend", h.Name(), notHeld(err))
	}
	if h.group != nil {
		return h.group.extend(ctx, d)
	}
	t := h.tenure
	if !t.client.begin() {
		return fail("extend", h.Name(), ErrClosed)
	}
	defer t.client.working.Done()
	if err := t.turn.take(ctx); err != nil {
		return fail("extend", h.Name(), unavailable(contextError(ctx)))
	}
	defer t.turn.give()
	return t.extendBy(ctx, h.grip, d)
}

// Unlock gives the hold back; the last one of its owner frees the lock and wakes a
// waiter. It works although ctx has ended: only the values of ctx are used, and the
// time is bounded by Options.RetryBudget instead.
//
// nil means that the hold lasted until this call and is over now. ErrNotHeld means
// that it was over before: released already, or lost (then ErrLost matches too).
// After any other error the hold is not renewed any more, the release is repeated in
// the background until its lease has ended, and Unlock may be called again to wait for
// it. ErrUnavailable and ErrUnknownOutcome mean that the server could not be asked or did
// not answer; a *rueidis.RedisError means that it refused. A connection that has gone silent without breaking may cost a few seconds on
// top of the budget until that is noticed.
func (h *Hold) Unlock(ctx context.Context) error {
	switch {
	case h == nil:
		return ErrNotHeld
	case h.group != nil:
		err := h.group.unlock(ctx)
		runtime.KeepAlive(h) // until then it is no hold that was dropped
		return err
	}
	err := h.tenure.release(ctx, h.grip)
	if err == nil {
		runtime.SetFinalizer(h, nil)
	}
	return err
}

// release gives one grip back. It begins before the turn is there, so that nothing
// that holds the turn up can keep the hold alive.
func (t *tenure) release(ctx context.Context, g *grip) error {
	if err := t.letGo(g); err != nil {
		return err
	}
	if !t.turn.try() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.client.options.RetryBudget)
		defer cancel()
		if err := t.turn.take(ctx); err != nil {
			return t.releaseFailed(answer{}, unavailable(errSilent))
		}
	}
	defer t.turn.give()
	if done, err := t.tell(g); done {
		return err
	}
	a, err := t.settle(t.client.caller.detached(ctx), nil)
	switch {
	case err != nil:
		return t.releaseFailed(a, err)
	case a.null && !t.explains(a):
		t.lose(ErrLost, "it was gone when it was released")
		return fail("unlock", t.lock.name, ErrNotHeld, ErrLost)
	}
	t.letGone(g, a)
	_, err = t.tell(g)
	return err
}

// tell says what Unlock has to, if the hold is over by now: nil to the first who asks
// about a release, be it one in the background after Unlock had failed.
func (t *tenure) tell(g *grip) (done bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case g.cause != nil, g.told:
		return true, fail("unlock", t.lock.name, ErrNotHeld, g.cause)
	case g.released:
		g.told = true
		return true, nil
	}
	return false, nil
}

// letGo takes a grip off the count before anything is sent, so that no renewal
// and no re-entry can follow. It may be called again after a release that failed.
func (t *tenure) letGo(g *grip) error {
	t.mu.Lock()
	if g.told || g.cause != nil {
		t.mu.Unlock()
		return fail("unlock", t.lock.name, ErrNotHeld, g.cause)
	}
	if g.released || g.leaving {
		t.mu.Unlock()
		return nil
	}
	t.uncount(g)
	endings := g.takeEndings()
	t.mu.Unlock()
	// Before anything is sent: the server may free the lock long before it answers.
	endAll(endings, ErrNotHeld)
	return nil
}

// explains reports whether an owner that is gone is explained by a release of ours
// whose answer was lost: the last hold was given back while its lease was certain
// to stand, and the outcome of sending that is unknown.
func (t *tenure) explains(a answer) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return a.count == 0 && t.stood && (a.doubt || t.unheard)
}

// releaseFailed leaves the rest to the background.
func (t *tenure) releaseFailed(a answer, err error) error {
	t.mu.Lock()
	t.unheard = t.unheard || a.doubt
	t.plan()
	left := t.span()
	t.mu.Unlock()
	t.undoLater(0, left)
	if judge(err) == refused {
		return fail("unlock", t.lock.name, err)
	}
	return fail("unlock", t.lock.name, ErrUnknownOutcome, err)
}

// letGone ends a grip that the server has taken back, and with the last one the
// tenure.
func (t *tenure) letGone(g *grip, a answer) {
	t.mu.Lock()
	if a.count > 0 {
		g.end(nil)
		t.entered = slices.DeleteFunc(t.entered, func(e *grip) bool { return e == g })
		if t.renewing > 0 && t.limit == 0 && t.client.acks == nil {
			t.extend(a.sent, t.lease) // the release has raised it, which no replica confirms
		}
		t.plan()
		t.mu.Unlock()
		return
	}
	t.mu.Unlock()
	t.gone(a)
}

// gone ends a tenure that the server has taken back.
func (t *tenure) gone(a answer) {
	if !t.end(nil) {
		return
	}
	told, _ := a.message.AsInt64()
	if told == -1 {
		t.client.reporter.log(noticePublish, t.lock.channel)
	}
	t.observe(Event{Type: EventReleased}) // before the next one can acquire
	if t.lock.kind.side != "" && !a.message.IsInt64() {
		t.leaveGate()
	} else {
		t.freeGate(told)
	}
	t.mu.Lock()
	span := t.span()
	late := t.mayComeLate(0) && !t.client.topology.still(t.doubtEra)
	t.mu.Unlock()
	if late {
		t.undoLater(undoPause, span) // this release was the first undo
	}
}

// extendBy sends a renewal of one hold. The turn is held.
func (t *tenure) extendBy(ctx context.Context, g *grip, d time.Duration) error {
	if err := t.mayExtend(g, d); err != nil {
		return fail("extend", t.lock.name, err)
	}
	c := t.lock.kind.protocol.renewal(t, d)
	a, err := t.client.caller.call(ctx, t.client.closing, c.cmd.confirmed(t.client.acks), c.keys, c.args)
	if a.doubt || errors.Is(err, ErrNotReplicated) {
		t.mu.Lock()
		t.longest = max(t.longest, d)
		t.mu.Unlock()
	}
	switch {
	case denied(err):
		t.lose(ErrLost, "the key is gone or belongs to another owner")
		return t.extended(g, d)
	case err != nil && a.doubt:
		return fail("extend", t.lock.name, ErrUnknownOutcome, err)
	case err != nil:
		return fail("extend", t.lock.name, err)
	}
	results, err := a.message.AsIntSlice()
	switch {
	case err != nil || len(results) != 1 || results[0] < 0:
		return fail("extend", t.lock.name, ErrUnknownOutcome, unavailable(errors.Join(errReply, err)))
	case results[0] == 0:
		t.lose(ErrLost, "the key is gone or belongs to another owner")
	default:
		t.renewed(a.sent, d)
	}
	return t.extended(g, d)
}

// mayExtend checks, under the turn, that there is something to extend.
func (t *tenure) mayExtend(g *grip, d time.Duration) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.client.clock()
	switch {
	case t.errOf(g) != nil:
		return notHeld(t.errOf(g))
	case t.limit > 0 && now.since(t.start)+d > t.limit, g.max > 0 && now.since(g.start)+d > g.max:
		return ErrMaxHold
	}
	t.unsettled = true
	return nil
}

// extended says whether the hold still stands when the answer is in. If it ended
// meanwhile, the time that the key has got is taken back.
func (t *tenure) extended(g *grip, d time.Duration) error {
	t.mu.Lock()
	err, phase := t.errOf(g), t.phase
	t.mu.Unlock()
	if err == nil {
		return nil
	}
	if phase == over {
		t.undoLater(0, d)
	}
	return fail("extend", t.lock.name, notHeld(err))
}
