package latchkey

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// tenure is the time in which one owner has one lock, from the outermost
// acquisition to the last release, with all its re-entries. Holds are handles on
// it.
//
// Whatever is sent to the server for a tenure (acquire, re-enter, renew, release,
// undo) is sent under its turn, one after the other.
type tenure struct {
	client *Client
	lock   *primitive
	owner  Owner
	wire   string // the owner as it stands in Redis
	number uint64 // of this tenure in this client
	part   string // name of our part if another client made the owner, else ""
	turn   turn
	waits  bool   // the acquisition waits: see readProtocol, writeProtocol
	place  *place // in the queue of a fair lock, while it waits
	since  stamp  // when it came to the front of its line, if it waits

	// Of a permit that was asked for together with others: those others, until they
	// have begun with it or are given up.
	company   []*tenure
	leader    string // the wire name of the one that asks
	permanent bool   // it was asked for without an end of its lease

	// Of a tenure that reads for an owner that writes: what tells it from others, and
	// the tenure that writes.
	nestedNumber string
	writer       *tenure

	schedule schedule // the watchdog's

	mu        sync.Mutex
	phase     phase
	count     int // holds of this client that have not been released
	most      int // how many the server may have counted
	renewing  int // those of them that want renewal
	cause     error
	lease     time.Duration // with which it is renewed
	limit     time.Duration // total time allowed by MaxHold, or 0
	start     stamp         // what the limit counts from: before the acquisition was sent, or later
	taken     stamp         // before the acquisition was sent
	sent      stamp         // before the last command that set the lease was sent
	granted   time.Duration // the lease that it set
	renewedAt stamp         // before the last command that set a full lease was sent
	unsettled bool          // a renewal was sent and has not been answered
	doubtful  bool          // an acquisition may still be executed, late
	doubtAt   stamp
	doubtEra  era           // in which all of them were sent, or noEra
	unwanted  bool          // the server has granted what nobody is to have
	longest   time.Duration // the longest lease that an extension of unknown outcome may have set
	inLine    bool          // it may stand in the queue on the server
	stood     bool          // the lease was certain to stand when the last release began
	unheard   bool          // a release was sent whose outcome is unknown
	token     int64
	gate      *gate
	echo      bool    // our own message of the release is to be overheard
	nested    *tenure // reads for the same owner
	first     grip    // of the outermost hold
	entered   []*grip // of the re-entries that have not been released
}

type phase int

const (
	pending phase = iota // being acquired
	held
	leaving // the last release has begun: no renewal and no re-entry any more
	over
)

// begin makes a tenure live after the server has granted it. The lease counts
// from before the request was sent.
func (t *tenure) begin(r *request, a answer) {
	t.gate = t.client.gates.use(t.lock.key)
	t.gate.taken()
	t.client.tenures.add(t)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.phase, t.count, t.inLine = held, 1, false
	t.taken, t.start, t.sent, t.renewedAt, t.granted = a.sent, a.sent, a.sent, a.sent, r.lease
	t.lease, t.limit = r.renewLease, r.maxHold
	if t.lock.kind.fenced {
		t.token = a.token()
	}
	t.first.renew = r.renew
	if r.renew {
		t.renewing = 1
	}
	t.plan()
	for _, other := range t.company {
		other.begin(r, a)
	}
}

// enter makes a re-entry that the server has confirmed, or tells why the tenure can
// no longer be entered.
func (t *tenure) enter(r *request, a answer) (g *grip, cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.phase != held {
		return nil, cmp.Or(t.cause, ErrNotHeld)
	}
	g = &grip{renew: r.renew, start: a.sent, max: r.maxHold}
	t.entered = append(t.entered, g)
	t.count++
	if r.renew {
		t.renewing++
	}
	t.extend(a.sent, r.lease)
	t.plan()
	if g.max > 0 {
		t.limitGrip(g)
	}
	return g, nil
}

// limitGrip sets the timer of a re-entry that has a limit of its own. t.mu is held.
func (t *tenure) limitGrip(g *grip) {
	g.limit = time.AfterFunc(g.left(t.client.clock()), func() { t.limitReached(g) })
}

// limitReached ends a re-entry at its own limit, and gives its count back in the
// background. The outer hold goes on.
func (t *tenure) limitReached(g *grip) {
	t.mu.Lock()
	if g.over() || g.leaving || t.phase != held {
		t.mu.Unlock()
		return
	}
	endings := g.end(ErrMaxHold)
	t.uncount(g)
	t.plan()
	lease := max(t.lease, t.granted)
	t.mu.Unlock()
	endAll(endings, ErrMaxHold)
	t.undoLater(0, lease)
}

// endLimited ends the re-entries whose own limit is over, should their timers not have
// noticed that the machine slept.
func (t *tenure) endLimited() {
	now := t.client.clock()
	t.mu.Lock()
	var over []*grip
	for _, g := range t.entered {
		if g.left(now) <= 0 {
			over = append(over, g)
		}
	}
	t.mu.Unlock()
	for _, g := range over {
		t.limitReached(g)
	}
}

// uncount takes a grip off the count. With the last one the tenure is leaving: it
// is neither renewed nor entered again. t.mu is held.
func (t *tenure) uncount(g *grip) {
	g.leaving = true
	t.count--
	if g.renew {
		t.renewing--
	}
	t.entered = slices.DeleteFunc(t.entered, func(e *grip) bool { return e == g && e.over() })
	if t.count == 0 {
		t.phase = leaving
		t.stood = t.valid() > 0
		// While a lock has one holder, nobody else publishes its release. That is not so
		// for readers, whose own messages are heard like all others.
		t.echo = t.lock.kind.alone() && t.gate.releasing()
	}
}

// doubt remembers that an acquisition was sent whose outcome is unknown.
func (t *tenure) doubt(a answer) {
	if !a.doubt {
		return
	}
	t.mu.Lock()
	if t.doubtful {
		a.doubtEra = t.doubtEra.common(a.doubtEra)
	}
	t.doubtful, t.doubtAt, t.doubtEra = true, a.doubtAt, a.doubtEra
	t.mu.Unlock()
	for _, other := range t.company {
		other.doubt(a)
	}
}

// mayComeLate reports whether an acquisition may still be executed, which may have asked
// for that lease. t.mu is held.
func (t *tenure) mayComeLate(lease time.Duration) bool {
	return t.doubtful && t.client.clock().since(t.doubtAt) < max(lease, t.span())
}

// valid returns for how long the hold can be relied on, without asking anybody.
// t.mu is held.
func (t *tenure) valid() time.Duration {
	now := t.client.clock()
	left := t.granted - driftMargin(t.granted) - now.since(t.sent)
	if t.limit > 0 {
		left = min(left, t.limit-driftMargin(t.limit)-now.since(t.start))
	}
	return left
}

// plan tells the watchdog when to renew and when to give up. t.mu is held.
func (t *tenure) plan() {
	now := t.client.clock()
	renewAt := never
	if t.phase == held && t.renewing > 0 && !t.atLimit() {
		// By the clock that says more, as the end of the lease is.
		renewAt = now.mono + renewPeriod(t.lease) - now.since(t.renewedAt)
	}
	t.client.watchdog.plan(t, renewAt, now.mono+t.valid(), t.lease/3)
}

// atLimit reports whether the key already ends at the limit, so that a renewal
// could add nothing. t.mu is held.
func (t *tenure) atLimit() bool {
	return t.limit > 0 && t.sent.since(t.start)+t.granted >= t.limit
}

// nextLease is the lease for a renewal that is about to be sent, 0 if there is
// nothing to renew. It never passes the limit.
func (t *tenure) nextLease() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.phase != held || t.renewing == 0 {
		return 0
	}
	t.unsettled = true
	if t.limit > 0 {
		return min(t.lease, t.limit-t.client.clock().since(t.start))
	}
	return t.lease
}

// renewed takes note of a lease that the server has set again.
func (t *tenure) renewed(sent stamp, lease time.Duration) {
	t.mu.Lock()
	if t.phase != held {
		t.mu.Unlock()
		return
	}
	t.unsettled = false
	t.extend(sent, lease)
	t.plan()
	t.mu.Unlock()
	t.observe(Event{Type: EventRenewed})
}

// extend moves the end of the lease, never to an earlier time. t.mu is held.
func (t *tenure) extend(sent stamp, lease time.Duration) {
	if lease >= t.lease {
		t.renewedAt = sent // a shorter one is no reason to renew later
	}
	if sent.since(t.sent)+lease > t.granted {
		t.sent, t.granted = sent, lease
	}
}

// renewLater plans another renewal soon: only the deadline ends a hold that cannot
// be renewed.
func (t *tenure) renewLater() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.phase != held {
		return
	}
	now := t.client.clock().mono
	pause := min(max(t.lease/20, 5*time.Millisecond), time.Second)
	t.client.watchdog.plan(t, now+jitter(pause), now+t.valid(), t.lease/3)
}

// endIfDue ends the tenure if its time is over, and otherwise plans anew. It reports
// whether it has ended the tenure.
func (t *tenure) endIfDue() bool {
	t.mu.Lock()
	if t.phase != held && t.phase != leaving {
		t.mu.Unlock()
		return false
	}
	if t.valid() > 0 {
		t.plan()
		t.mu.Unlock()
		return false
	}
	cause, why := ErrLost, "its lease ran out before it could be renewed"
	if t.limit > 0 && t.client.clock().since(t.start) >= t.limit-driftMargin(t.limit) {
		cause, why = ErrMaxHold, "its maximum hold time is over"
	}
	after := t.mayLast()
	t.mu.Unlock()
	return t.endLost(cause, why, after, !t.lock.kind.reentrant)
}

// mayLast reports whether something is under way that may give the key more time than
// is known here. t.mu is held.
func (t *tenure) mayLast() bool {
	return t.unsettled || t.unheard || t.longest > 0 || t.mayComeLate(0)
}

// span is the longest time for which the key may live. t.mu is held.
func (t *tenure) span() time.Duration { return max(t.lease, t.granted, t.longest) }

// lose ends the tenure because the server no longer knows it.
func (t *tenure) lose(cause error, why string) {
	t.mu.Lock()
	after := t.mayLast()
	t.mu.Unlock()
	t.endLost(cause, why, after, true)
}

// endLost ends the tenure without a release, unless it is over already. after says that a
// command which is under way may yet lengthen the life of the key, or take it anew, so
// that it has to be released when its time should be over. alone says that nobody else is
// known to keep the key alive. Guests, those whose guest this is, and other readers may:
// then our part is to be taken out, once.
func (t *tenure) endLost(cause error, why string, after, alone bool) bool {
	if !t.end(cause) {
		return false
	}
	t.client.reporter.log(noticeLost(why), t.lock.name, slog.String("owner", t.wire))
	t.observe(Event{Type: EventLost, Err: cause})
	t.freeGate(0)
	t.mu.Lock()
	margin, span := driftMargin(t.granted), t.span()
	t.mu.Unlock()
	if after || !alone {
		// Not before the key is gone by itself: the holder may need a moment to stop.
		t.undoLater(margin, span)
	}
	return true
}

// freeGate lets the next local waiter try. told is how many subscribers heard of
// the release, 0 if there was none to hear of.
func (t *tenure) freeGate(told int64) {
	t.gate.released(told, t.echo && told <= 0)
}

// leaveGate is freeGate for a lock that others hold still.
func (t *tenure) leaveGate() { t.gate.left(t.echo) }

// end makes the tenure over, once, and ends everything that depends on it. The
// cause is nil after a release.
func (t *tenure) end(cause error) bool {
	t.mu.Lock()
	if t.phase != held && t.phase != leaving {
		t.mu.Unlock()
		return false
	}
	t.phase, t.cause, t.count = over, cause, 0
	endings := t.first.end(cause)
	for _, g := range t.entered {
		endings = append(endings, g.end(cause)...)
	}
	t.client.watchdog.drop(t)
	t.mu.Unlock()
	t.client.tenures.remove(t)
	if cause == nil {
		cause = ErrNotHeld
	}
	endAll(endings, cause)
	return true
}

// live reports whether the tenure can be entered again.
func (t *tenure) live() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.phase == held
}

// settle makes the server's count equal to ours. It is the release, and the undo
// of an acquisition whose outcome is unknown: run twice, late or for a tenure that
// is over, it does no harm. The turn is held.
func (t *tenure) settle(ctx context.Context, stop <-chan struct{}) (answer, error) {
	t.mu.Lock()
	count, raise := t.count, int64(0)
	if t.renewing > 0 && t.limit == 0 {
		raise = millis(t.lease)
	}
	t.mu.Unlock()
	a, err := t.sendSettle(ctx, stop, count, raise)
	if hasCode(err, "WRONGTYPE") {
		a.null, err = true, nil // somebody put something else in the place of the lock
	}
	a.count = count // the count of the tenure may be lower by now
	t.mu.Lock()
	if err == nil && !t.doubtful {
		t.most = count
	}
	t.mu.Unlock()
	return a, err
}

// counting notes that the server is about to be asked to count so many holds.
func (t *tenure) counting(count int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.most = max(t.most, count)
}

// holds is how many there are, and mostHolds how many the server may have counted.
func (t *tenure) holds() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count
}

func (t *tenure) mostHolds() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.most
}

func (t *tenure) sendSettle(ctx context.Context, stop <-chan struct{}, count int, raise int64) (answer, error) {
	c := t.lock.kind.protocol.release(t, count, raise)
	if c.keys == nil {
		return answer{}, nil
	}
	return t.client.caller.callOn(ctx, stop, t.terms(false), c.cmd, c.keys, c.args)
}

// terms bound an acquisition or a release. The call has the turn of the tenure, for which
// the next renewal waits: while the tenure is held, that is a sixth of the lease at most.
func (t *tenure) terms(waits bool) terms {
	on := terms{t.client.caller.patience, waits}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.phase == held {
		on.patience = min(on.patience, max(t.lease/6, firstPause))
	}
	return on
}

// noted remembers that the server has the tenure among those who wait.
func (t *tenure) noted() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inLine = true
}

// mayWait reports whether the server may have the tenure in a queue.
func (t *tenure) mayWait() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.inLine || t.doubtful
}

// usable reports whether an acquisition by the same owner can wait for, or enter,
// this tenure.
func (t *tenure) usable() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.phase == pending || t.phase == held
}

// token reads the fencing token from the reply of an acquisition.
func (a answer) token() int64 {
	if a.null {
		return 0
	}
	token, _ := a.message.AsInt64()
	return token
}
