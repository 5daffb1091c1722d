package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
	"github.com/latchkey-go/latchkey/internal/primitive/rw"
)

// queueReference is what the queue of a lock must do, with the messages that report grants.
type queueReference struct {
	w        *world
	lock     *acquire.Lock
	before   []string       // the entries before a command
	inFlight []modelMessage // the messages that have not arrived yet
}

// modelMessage reports a grant.
type modelMessage struct {
	owner string
	token string // "" if it was drawn from a counter that is lost
}

// loseCount records that the counter of the tokens is lost: earlier tokens say nothing about later
// ones.
func (r *queueReference) loseCount() {
	for i := range r.inFlight {
		r.inFlight[i].token = ""
	}
}

// watch checks a release: who gets the lock, and what stays in the queue. next is the entry that
// the release is to add, or "".
func (r *queueReference) watch(m *message, next string) {
	m.before = func() { r.before = r.entries() }
	m.seen = func(reply any) {
		after := r.entries()
		switch got := reply.(type) {
		case []any:
			owner := got[0].(string)
			if slices.ContainsFunc(after, func(e string) bool { return strings.HasPrefix(e, owner+" ") }) {
				r.w.fail("%s grants the lock to %s, which waits on", m.what, owner)
			}
			if (next == "" || !strings.HasPrefix(next, owner+" ")) && !r.w.polls(owner) {
				r.inFlight = append(r.inFlight, modelMessage{owner, got[1].(string)})
			}
		case int64:
			if slices.ContainsFunc(after, func(e string) bool { return !r.w.polls(e) }) && !r.mayStayFree() {
				r.w.fail("%s leaves the lock free, and %v wait", m.what, after)
			}
		default:
			if next != "" && slices.Contains(after, next) && !slices.Contains(r.before, next) {
				r.w.fail("%s frees nothing, and lets %s wait", m.what, next)
			}
		}
		// A release that finds the lock free also hands it over.
		if owner := r.owner(); reply == nil && owner != "" && r.waited(owner) && !r.waits(after, owner) && !r.w.polls(owner) {
			r.inFlight = append(r.inFlight, modelMessage{owner, r.token(owner)})
		}
	}
}

// entries returns the queue without what it says of pollers.
func (r *queueReference) entries() []string {
	return slices.DeleteFunc(r.w.State(r.lock.Names.Queue())[0].List, func(e string) bool { return strings.HasPrefix(e, "~") })
}

func (r *queueReference) waited(owner string) bool { return r.waits(r.before, owner) }

func (*queueReference) waits(entries []string, owner string) bool {
	return slices.ContainsFunc(entries, func(e string) bool { return strings.HasPrefix(e, owner+" ") })
}

// owner returns the owner of the lock, or "".
func (r *queueReference) owner() string {
	e := r.w.State(r.lock.Names.Key)[0]
	switch {
	case r.lock.Spec.Side != "":
		for _, field := range e.List {
			if owner, writes := strings.CutSuffix(field, ":write"); writes {
				return owner
			}
		}
	case e.Kind == "hash" && len(e.List) > 0:
		return e.List[0]
	}
	return e.Text
}

// mayStayFree reports whether the lock may stay free although the queue is not empty: it is the
// turn of readers, or they hold the lock, or no writer counts as alive.
func (r *queueReference) mayStayFree() bool {
	if r.lock.Spec.Side == "" {
		return false
	}
	keys := rw.Keys(r.lock.Names.Key)
	all := r.w.State(r.lock.Names.Key, keys[2], keys[3])
	alive := false
	for _, until := range all[1].Fields {
		ms, _ := strconv.ParseInt(until, 10, 64)
		alive = alive || ms > r.w.ms()
	}
	open, _ := strconv.ParseInt(all[2].Fields["open"], 10, 64)
	return all[0].Kind != "none" || open > r.w.ms() || !alive
}

// token returns the token just issued for an owner.
func (r *queueReference) token(owner string) string {
	for _, e := range r.before {
		if words := strings.Fields(e); words[0] == owner && words[2] != "0" {
			return r.w.State(r.lock.Names.Token())[0].Text
		}
	}
	return "0"
}

// deliver delivers or loses one of the messages.
func (r *queueReference) deliver(d dice, parties []*party) {
	if len(r.inFlight) == 0 {
		return
	}
	i := d[0] % len(r.inFlight)
	m := r.inFlight[i]
	r.inFlight = slices.Delete(r.inFlight, i, i+1)
	if d[1]%6 == 0 {
		r.w.say("the message to %s is lost", m.owner)
		return
	}
	for _, p := range parties {
		if p.t != nil && p.t.Wire == m.owner {
			if p.phase == ownership.Acquiring {
				p.receiveGrant(m)
			}
			return
		}
	}
	r.giveBack(m.owner, d.fate())
}

// giveBack releases a lock that was granted to an owner for which nobody waits any more.
func (r *queueReference) giveBack(owner string, fate int) {
	name := identity.Of(owner)
	for _, c := range r.w.clients {
		if c.ID == name.ClientID() {
			o := ownership.New(&acquire.NewLock(c, r.lock.Spec, modelName).Lock, name, 0)
			m := &message{what: owner + " is not wanted", words: r.w.words(o.ReleaseCall(ownership.Release{}, nil)), light: true}
			m.answered, m.silent = func(any) {}, func() {}
			r.watch(m, "")
			r.w.send(m, fate)
		}
	}
}

// receiveGrant begins the hold of an owner that was granted the lock, if by the reckoning of its
// client there is time left.
func (p *party) receiveGrant(m modelMessage) {
	short := int64(0) // for a guest, which has no entry
	if e := p.t.Entry; e != nil {
		short = script.Millis(e.Lease)
	}
	if p.made+short <= p.w.ms() {
		p.w.say("the grant for %s is old", p.name)
		return
	}
	p.w.say("%s is told of its grant", p.name)
	p.begin(p.made, short, m.token)
}

// releaseFor is the last release of a hold, in which the client requests the lock again.
func (p *party) releaseFor(fate int) {
	t, next := p.t, p.newOwnership()
	p.grips, p.phase, t.Holds.Count = nil, ownership.Releasing, 0
	wanted := &acquire.Acquisition{Request: request.Request{Lease: fromMS(p.lease.ms)}, Lock: p.lock, Ownership: next, IsWaiting: true}
	next.WriteEntry(wanted.Lease, next.Lock.Client.Clock()).ReleaseBegins()
	t.Turn.Next = next
	m := &message{what: fmt.Sprintf("%s releases, and waits again", p.name), words: p.w.words(t.ReleaseCall(ownership.Release{}, nil)), light: true}
	t.Turn.Next = nil
	p.toUndo = append(p.toUndo, t)
	p.t, p.phase, p.made, p.waits, p.round, p.excused, p.unheard, p.owing = next, ownership.Acquiring, p.w.ms(), true, 1, false, false, false
	p.acquisition = wanted
	m.silent = func() { next.Doubt.Sent = &undo.SentInDoubt{Acquisition: true} }
	m.answered = func(reply any) {
		if isReplyError(reply) {
			p.w.fail("%s gets %v", m.what, reply)
		}
		if got, is := reply.([]any); is && got[0] == next.Wire {
			p.begin(p.made, script.Millis(next.Entry.Lease), got[1].(string))
		}
	}
	text, _ := next.Entry.Wanted()
	p.queue.watch(m, text)
	p.w.send(m, fate)
}
