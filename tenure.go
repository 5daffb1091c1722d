package latchkey

import (
	"context"
	"strconv"
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
	client  *Client
	lock    *primitive
	owner   Owner
	wire    string // the owner as it stands in Redis
	guest   string // our client id if another client made the owner, else ""
	guestID uint64 // number of a guest among the tenures, which guard it
	turn    turn

	schedule schedule // the watchdog's

	mu        sync.Mutex
	phase     phase
	count     int // holds of this client that have not been released
	renewing  int // those of them that want renewal
	cause     error
	lease     time.Duration // with which it is renewed
	limit     time.Duration // total time allowed by MaxHold, or 0
	start     stamp         // before the acquisition was sent
	sent      stamp         // before the last command that set the lease was sent
	granted   time.Duration // the lease that it set
	renewedAt stamp         // before the last command that could have set it was sent
	doubtful  bool          // an acquisition may still be executed, late
	doubtAt   stamp
	stood     bool // the lease was certain to stand when the last release began
	unheard   bool // a release was sent whose outcome is unknown
	token     int64
	gate      *gate
	echo      bool    // our own message of the release is to be overheard
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
	t.phase, t.count = held, 1
	t.start, t.sent, t.renewedAt, t.granted = a.sent, a.sent, a.sent, r.lease
	t.lease, t.limit = r.renewLease, r.maxHold
	if t.lock.kind.fenced {
		t.token = a.token()
	}
	t.first.renew = r.renew
	if r.renew {
		t.renewing = 1
	}
	t.plan()
}

// enter makes a re-entry that the server has confirmed.
func (t *tenure) enter(r *request, a answer) *grip {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := &grip{renew: r.renew}
	t.entered = append(t.entered, g)
	t.count++
	if r.renew {
		t.renewing++
	}
	t.extend(a.sent, r.lease)
	t.plan()
	if r.maxHold > 0 {
		g.limit = time.AfterFunc(r.maxHold-driftMargin(r.maxHold), func() { t.limitReached(g) })
	}
	return g
}

// limitReached ends a re-entry at its own limit. The outer hold goes on.
func (t *tenure) limitReached(g *grip) {
	t.mu.Lock()
	if g.over() {
		t.mu.Unlock()
		return
	}
	if g.renew {
		g.renew = false
		t.renewing--
	}
	contexts := g.end(ErrMaxHold)
	t.plan()
	t.mu.Unlock()
	cancelAll(contexts, ErrMaxHold)
}

// doubt remembers that an acquisition was sent whose outcome is unknown.
func (t *tenure) doubt(a answer) {
	if !a.doubt {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.doubtful, t.doubtAt = true, a.doubtAt
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
	now := t.client.clock().mono
	renewAt := never
	if t.phase == held && t.renewing > 0 && !t.atLimit() {
		renewAt = t.renewedAt.mono + renewPeriod(t.lease)
	}
	t.client.watchdog.plan(t, renewAt, now+t.valid(), t.lease/3)
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
	t.extend(sent, lease)
	t.plan()
	t.mu.Unlock()
	t.client.observe(t.event(EventRenewed))
}

// extend moves the end of the lease, never to an earlier time. t.mu is held.
func (t *tenure) extend(sent stamp, lease time.Duration) {
	t.renewedAt = sent
	if sent.since(t.sent)+lease > t.granted {
		t.sent, t.granted = sent, lease
	}
}

// renewFailed plans another renewal soon: only the deadline ends a hold that
// cannot be renewed.
func (t *tenure) renewFailed(err error) {
	t.client.options.Logger.Warn("latchkey: renewal failed, repeating it",
		"lock", t.lock.name, "owner", t.wire, "error", err)
	t.renewLater()
}

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

// checkDeadline ends the tenure if its time is over, and otherwise plans anew.
func (t *tenure) checkDeadline() {
	t.mu.Lock()
	if t.phase != held && t.phase != leaving {
		t.mu.Unlock()
		return
	}
	if t.valid() > 0 {
		t.plan()
		t.mu.Unlock()
		return
	}
	limited := t.limit > 0 && t.client.clock().since(t.start) >= t.limit-driftMargin(t.limit)
	t.mu.Unlock()
	if limited {
		t.expire(ErrMaxHold, "its maximum hold time is over")
		return
	}
	t.expire(ErrLost, "its lease ran out before it could be renewed")
}

// expire ends the tenure at its deadline. A renewal that is still under way may
// lengthen the life of the key after that, so the key is released in the
// background as well, when its time should be over.
func (t *tenure) expire(cause error, why string) {
	if !t.lose(cause, why) {
		return
	}
	t.mu.Lock()
	granted := t.granted
	t.mu.Unlock()
	t.client.janitor.add(t, driftMargin(granted), granted)
}

// lose ends the tenure without a release. Its contexts end with the cause.
func (t *tenure) lose(cause error, why string) bool {
	if !t.end(cause) {
		return false
	}
	t.client.options.Logger.Warn("latchkey: hold lost: "+why, "lock", t.lock.name, "owner", t.wire)
	e := t.event(EventLost)
	e.Err = cause
	t.client.observe(e)
	t.freeGate(0)
	return true
}

// freeGate lets the next local waiter try. told is how many subscribers heard of
// the release, 0 if there was none to hear of.
func (t *tenure) freeGate(told int64) {
	t.gate.released(told, t.echo && told <= 0)
}

// end makes the tenure over, once, and ends everything that depends on it. The
// cause is nil after a release.
func (t *tenure) end(cause error) bool {
	t.mu.Lock()
	if t.phase != held && t.phase != leaving {
		t.mu.Unlock()
		return false
	}
	t.phase, t.cause, t.count = over, cause, 0
	contexts := t.first.end(cause)
	for _, g := range t.entered {
		contexts = append(contexts, g.end(cause)...)
	}
	t.client.watchdog.drop(t)
	t.mu.Unlock()
	t.client.tenures.remove(t)
	if cause == nil {
		cause = ErrNotHeld
	}
	cancelAll(contexts, cause)
	return true
}

// live reports whether the tenure can be entered again.
func (t *tenure) live() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.phase == held
}

func (t *tenure) event(kind EventType) Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := Event{Type: kind, Kind: t.lock.kind.kind, Name: t.lock.name, Owner: t.owner}
	if kind == EventLost || kind == EventReleased {
		e.Held = t.client.clock().since(t.start)
	}
	return e
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
	keys := []string{t.lock.key, t.lock.channel}
	if t.lock.kind.ownerIn == inString {
		if count > 0 {
			return answer{}, nil
		}
		return t.client.caller.call(ctx, stop, mutexRelease, keys, []string{t.wire, t.client.publish})
	}
	return t.client.caller.call(ctx, stop, lockRelease, keys,
		[]string{t.wire, strconv.Itoa(count), t.guest, t.client.publish, strconv.FormatInt(raise, 10)})
}

// usable reports whether an acquisition by the same owner can wait for, or enter,
// this tenure.
func (t *tenure) usable() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.phase == pending || t.phase == held
}
