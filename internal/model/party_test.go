package model

import (
	"fmt"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
	"github.com/latchkey-go/latchkey/internal/engine/waiters"
	"github.com/latchkey-go/latchkey/internal/primitive/fair"
	"github.com/latchkey-go/latchkey/internal/primitive/semaphore"
	"github.com/latchkey-go/latchkey/internal/testredis"
)

// party is one owner that wants, holds or releases a lock, as its client sees it. It sends what an
// ownership sends: counts are absolute, commands go out one after another, and an unanswered
// command is repeated or undone.
type party struct {
	w            *world
	name         string
	lock         *acquire.Lock
	newOwnership func() *ownership.Ownership // makes a new one
	writer       *party                      // under whose hold it reads, if it does

	t           *ownership.Ownership   // nil: it wants nothing
	others      []*ownership.Ownership // acquired together with it
	phase       ownership.Phase        // acquiring, held or releasing
	lease       modelLease
	waits       bool
	round       int // attempts of the acquisition
	acquisition *acquire.Acquisition
	inQueue     *waiters.Waiter        // its place in the queue of a fair lock or semaphore, or nil
	grips       []modelLease           // of the holds that are not released
	sent        int64                  // ms: before the command that set the lease was sent
	granted     int64                  // the lease that it set, in ms
	unheard     bool                   // a release got no answer
	owing       bool                   // the count on the server may differ
	excused     bool                   // damage has ended the hold, and the party does not know yet
	toUndo      []*ownership.Ownership // over, but the server may know them or still receive them
	made        int64                  // ms: when the owner was made
	queue       *queueReference        // in which it may wait, or nil

	unset     func() bool // whether there is nothing to acquire yet
	onAttempt func()
	onGrant   func(reply any)
	onRefusal func(reply any)
}

// modelLease is the lease that an acquisition requests.
type modelLease struct {
	ms    int64
	renew bool
}

var modelLeases = []modelLease{{30000, true}, {30000, false}, {1000, false}, {5000, false}, {1000, true}}

func (l modelLease) String() string {
	if l.renew {
		return fmt.Sprintf("%d ms, renewed", l.ms)
	}
	return fmt.Sprintf("%d ms", l.ms)
}

func fromMS(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// left returns for how many ms the client relies on its hold. There is no margin for clock drift,
// because there is only one clock.
func (p *party) left() int64 {
	if p.t == nil || p.phase != ownership.Held {
		return 0
	}
	return max(p.sent+p.granted-p.w.ms(), 0)
}

// holds reports whether the client relies on its hold and is right to do so.
func (p *party) holds() bool { return p.left() > 0 && !p.excused }

// want begins an acquisition.
func (p *party) want(lease modelLease, waits bool, fate int) {
	p.t, p.phase, p.lease, p.waits, p.round = p.newOwnership(), ownership.Acquiring, lease, waits, 0
	p.made = p.w.ms()
	p.acquisition = &acquire.Acquisition{Lock: p.lock, Ownership: p.t, Others: p.others, IsWaiting: waits, Since: p.t.Client.Clock()}
	p.inQueue = nil
	if waits {
		p.enterQueue()
	}
	p.grips, p.unheard, p.owing, p.excused = nil, false, false, false
	p.sendAttempt(fate)
}

// sendAttempt makes one attempt.
func (p *party) sendAttempt(fate int) {
	p.t.RequestBegins(1, false)
	p.acquisition.Lease = fromMS(p.lease.ms)
	c := p.acquisition.Attempts().AcquireCall(p.acquisition, 1, p.round)
	t, bare := p.t, c.Cmd.Text == ""
	p.round++
	if p.onAttempt != nil {
		p.onAttempt()
	}
	m := &message{what: fmt.Sprintf("%s acquires for %v", p.name, p.lease), words: p.w.words(c)}
	m.silent = func() { t.Doubt.Sent = &undo.SentInDoubt{Acquisition: true} }
	m.answered = func(reply any) {
		switch r := reply.(type) {
		case testredis.ReplyError:
			unset := p.unset != nil && p.unset() && testredis.HasCode(r, "LATCHKEY_UNSET")
			if !outOfMemory(r) && !unset && !(testredis.HasCode(r, "LATCHKEY_GONE") && p.writerGone()) {
				p.w.fail("%s gets %v", m.what, r)
			}
			p.GiveUp()
		case int64, []any:
			p.refused(reply)
		case nil:
			if bare { // it may be this party, if an answer was lost
				t.Doubt.Sent = &undo.SentInDoubt{Acquisition: true}
				return
			}
			p.accept(m, reply)
		default:
			p.accept(m, reply)
		}
	}
	p.w.send(m, fate)
}

// writerGone reports whether the write hold under which the party wants to read is over.
func (p *party) writerGone() bool {
	return p.writer != nil && (!p.writer.holds() || p.writer.t.Owner() != p.t.Owner())
}

func (p *party) accept(m *message, reply any) {
	p.begin(m.sent/1000, p.lease.ms, reply)
}

// begin begins a hold whose lease starts at sent.
func (p *party) begin(sent, lease int64, reply any) {
	p.phase, p.grips = ownership.Held, []modelLease{p.lease}
	p.t.Holds.Count = 1
	p.sent, p.granted = sent, lease
	p.t.Entry.HoldBegins()
	p.inQueue = nil
	if p.onGrant != nil {
		p.onGrant(reply)
	}
}

func (p *party) refused(reply any) {
	if p.onRefusal != nil {
		p.onRefusal(reply)
	}
	if _, is := reply.([]any); is && p.inQueue != nil || p.waits && p.lock.Spec.Side == keyspace.KindWrite {
		p.t.OwnEntry(p.t.Lock.Client.Clock()).WaitBegins()
	}
	if !p.waits {
		p.GiveUp()
	}
}

// line.GiveUp ends an acquisition, and has it undone if it may have left something.
func (p *party) GiveUp() {
	if p.t.Doubt.Acquisition() || p.t.Entry.MayWait() {
		p.undoLater()
	}
	p.inQueue = nil
	p.t = nil
}

// enterQueue gives a party that waits for a fair lock or semaphore its place in the queue.
func (p *party) enterQueue() {
	w := &waiters.Waiter{Ownership: p.t, Grantable: p.t.Client != p.w.clients[1]}
	switch attempts := p.lock.Spec.Attempts.(type) {
	case fair.Protocol:
		w.List = attempts.Waiters
	case semaphore.Attempts:
		w.List = semaphore.QueuesOf(p.t.Lock.Client).Waiters
	default:
		return
	}
	p.acquisition.Queued, p.inQueue = w.List.Queue.AttemptsOf(w), w
	p.t.OwnEntry(p.t.Lock.Client.Clock()).Lease = min(fromMS(p.lease.ms), settings.StaleWaiterTimeout)
}

// enter is a re-entry.
func (p *party) enter(lease modelLease, fate int) {
	t, count := p.t, len(p.grips)+1
	t.RequestBegins(count, false)
	c := p.lock.Spec.Attempts.AcquireCall(&acquire.Acquisition{Request: request.Request{Lease: fromMS(lease.ms)}, Lock: p.lock, Ownership: p.t}, count, 0)
	m := &message{what: fmt.Sprintf("%s enters for the time number %d for %v", p.name, count, lease), words: p.w.words(c)}
	m.silent = func() { p.owing, t.Doubt.Sent = true, &undo.SentInDoubt{Acquisition: true} }
	m.answered = func(reply any) {
		switch {
		case testredis.HasCode(reply, "LATCHKEY_GONE"):
			p.lost("when it is entered again")
		case outOfMemory(reply):
		case isReplyError(reply):
			p.w.fail("%s gets %v", m.what, reply)
		default:
			switch reply.(type) {
			case int64, []any:
				p.w.fail("%s, and is refused", m.what)
			}
			p.grips = append(p.grips, lease)
			t.Holds.Count = count
			p.extend(m.sent/1000, lease.ms)
			if p.onGrant != nil {
				p.onGrant(reply)
			}
		}
	}
	p.w.send(m, fate)
}

func isReplyError(reply any) bool {
	_, is := reply.(testredis.ReplyError)
	return is
}

// extend moves the end of the lease, never to an earlier time.
func (p *party) extend(sent, lease int64) {
	if sent+lease > p.sent+p.granted {
		p.sent, p.granted = sent, lease
	}
}

// lost ends the hold when the server says that the client holds nothing.
func (p *party) lost(when string) {
	if p.holds() {
		p.w.fail("%s loses its hold %s, %d ms before the end of its lease", p.name, when, p.left())
	}
	p.over()
}

// over ends the ownership. What may be left of it is undone later.
func (p *party) over() {
	p.undoLater()
	p.t = nil
}

// undoLater schedules the undo of what may be left of the ownership, and of those that were
// acquired with it. The first of several in a queue leaves the queue for all.
func (p *party) undoLater() {
	p.toUndo = append(p.toUndo, p.t)
	if _, fair := p.t.Protocol.(semaphore.Protocol); !fair || p.phase != ownership.Acquiring || p.t.Doubt.Acquisition() {
		p.toUndo = append(p.toUndo, p.others...)
	}
}

// together returns the ownerships that were requested together.
func (p *party) together() []*ownership.Ownership {
	return append([]*ownership.Ownership{p.t}, p.others...)
}

// release releases one hold.
func (p *party) release(pick, fate int) {
	i := pick % len(p.grips)
	p.grips = slices.Delete(p.grips, i, i+1)
	certain := p.holds()
	if len(p.grips) == 0 {
		p.phase = ownership.Releasing
	}
	p.settle(certain, fate)
}

// renewal returns the lease for a renewal, 0 if no hold wants one.
func (p *party) renewal() int64 {
	if p.t == nil || p.phase != ownership.Held {
		return 0
	}
	for _, g := range p.grips {
		if g.renew {
			return g.ms
		}
	}
	return 0
}

// settle makes the count on the server equal to that of the client. certain says that the lease was
// certainly valid when the last release began.
func (p *party) settle(certain bool, fate int) {
	t, others, count := p.t, p.others, len(p.grips)
	t.Holds.Count = count
	c := t.ReleaseCall(ownership.Release{Count: count, Raise: fromMS(p.renewal())}, nil)
	if c.Keys == nil {
		p.owing = false
		return
	}
	m := &message{what: fmt.Sprintf("%s releases down to %d", p.name, count), words: p.w.words(c), light: true}
	m.silent = func() { p.unheard, p.owing = true, true }
	m.answered = func(reply any) {
		if isReplyError(reply) {
			p.w.fail("%s gets %v", m.what, reply)
		}
		p.owing = false
		if !t.Doubt.Acquisition() {
			t.Holds.Most = int32(count)
		}
		switch {
		case count == 0:
			if reply == nil && certain && !p.unheard && !p.excused {
				p.w.fail("%s finds nothing to release before its lease is over", p.name)
			}
			if t.Doubt.Acquisition() || p.unheard {
				p.toUndo = append(p.toUndo, t)
			}
			p.toUndo = append(p.toUndo, others...)
			p.t = nil
		case reply == nil:
			p.lost("when it is released in part")
		}
	}
	p.watch(m)
	p.w.send(m, fate)
}

// undo settles what may be left of an ownership that is over.
func (p *party) undo(pick, fate int) {
	i := pick % len(p.toUndo)
	t := p.toUndo[i]
	c := t.ReleaseCall(ownership.Release{}, nil)
	m := &message{what: p.name + " undoes what is over", words: p.w.words(c), light: true, silent: func() {}}
	m.answered = func(any) { p.toUndo = slices.Delete(p.toUndo, i, i+1) }
	p.watch(m)
	p.w.send(m, fate)
}

// watch checks a release of a lock that has a queue.
func (p *party) watch(m *message) {
	if p.queue != nil {
		p.queue.watch(m, "")
	}
}

// renewAll renews holds of one client with one command.
func renewAll(w *world, parties []*party, fate int) {
	var c script.Call
	var due []*party // each party once per permit
	var ownerships []*ownership.Ownership
	name := ""
	for _, p := range parties {
		if p.renewal() == 0 || due != nil && p.lock.Client != due[0].lock.Client {
			continue
		}
		for _, t := range p.together() {
			c.Add(t.Protocol.RenewalCall(t, fromMS(p.renewal())))
			due, ownerships = append(due, p), append(ownerships, p.t)
		}
		name += p.name + " "
	}
	if due == nil {
		return
	}
	m := &message{what: name + "renewed", words: w.words(c), light: true, silent: func() {}}
	m.answered = func(reply any) {
		states, is := reply.([]any)
		if !is || len(states) != len(due) {
			w.fail("%s: %v", m.what, reply)
		}
		for i, p := range due {
			if p.t != ownerships[i] {
				continue // lost with an earlier one
			}
			state, _ := states[i].(int64)
			if state < 1 {
				p.lost("when it is renewed")
			} else if i+1 == len(due) || due[i+1] != p {
				p.extend(m.sent/1000, p.renewal())
			}
			if state > 1 && p.t != nil { // the semaphore ends before the lease
				p.granted = min(p.granted, m.sent/1000+state-2-p.sent)
			}
		}
	}
	w.send(m, fate)
}

// settleAll releases everything, delivers all late messages, and then lets an hour pass.
func (w *world) settleAll(parties []*party, java []*javaThread) {
	for _, p := range parties {
		p.leave()
	}
	for _, j := range java {
		j.crash()
	}
	for len(w.late) > 0 {
		w.deliver(0)
	}
	w.advance(3600_000)
}

// crash forgets everything. Copies in flight still arrive.
func (p *party) crash() {
	if p.t != nil {
		p.w.say("%s crashes", p.name)
	}
	p.t, p.toUndo = nil, nil
}

// act performs one of the actions that are possible now.
func (p *party) act(d dice) {
	fate := d.fate()
	switch {
	case p.t == nil && len(p.toUndo) > 0 && d[1]%2 == 0:
		p.undo(d[2], fate)
	case p.t == nil:
		p.want(modelLeases[d[1]%len(modelLeases)], d[2]%2 == 0, fate)
	case p.phase == ownership.Acquiring && d[1]%5 == 0:
		p.w.say("%s gives up", p.name)
		p.GiveUp()
	case p.phase == ownership.Acquiring:
		p.sendAttempt(fate)
	case p.phase == ownership.Releasing:
		p.settle(false, fate)
	case p.owing && d[1]%2 == 0:
		p.settle(p.holds(), fate)
	case p.queue != nil && p.lock.Spec.Passes && len(p.grips) == 1 && !p.t.IsGuest && !p.t.Doubt.Acquisition() && d[1]%5 == 4:
		p.releaseFor(fate)
	case p.lock.Spec.Reentrant && len(p.grips) < 4 && d[1]%5 < 2:
		p.enter(modelLeases[d[2]%len(modelLeases)], fate)
	default:
		p.release(d[2], fate)
	}
}

// end notes that the lease is over.
func (p *party) end() {
	if p.t != nil && p.phase == ownership.Held && p.left() == 0 {
		p.w.say("the lease of %s is over", p.name)
		p.over()
	}
}

// leave releases everything.
func (p *party) leave() {
	if p.t != nil && p.phase == ownership.Acquiring {
		p.GiveUp()
	}
	if p.t != nil {
		p.grips, p.phase = nil, ownership.Releasing
		p.settle(false, 0)
	}
	for len(p.toUndo) > 0 {
		p.undo(0, 0)
	}
}
