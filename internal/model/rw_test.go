package model

import (
	"fmt"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/owners"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
	"github.com/latchkey-go/latchkey/internal/primitive/rw"
	"github.com/latchkey-go/latchkey/internal/testredis"
)

func init() { models["rwlock"] = newRWModel }

// rwModel is the read/write lock: many may read, or one may write and also read.
type rwModel struct {
	w       *world
	lock    *acquire.Lock
	parties []*party
	java    []*javaThread
	writes  map[*javaThread]bool // those that write

	queue  *queueReference
	kept   *keptReference
	before []testredis.Entry
}

func newRWModel(w *world) model {
	w.withPoller()
	m := &rwModel{w: w, writes: map[*javaThread]bool{}, before: []testredis.Entry{{TTL: -2}}}
	for i, c := range w.clients {
		read, write := acquire.NewLock(c, rw.Read, modelName), acquire.NewLock(c, rw.Write, modelName)
		if i == 0 {
			m.lock = write
		}
		m.add(&party{w: w, name: fmt.Sprintf("R%d", i+1), lock: read,
			newOwnership: func() *ownership.Ownership { return ownership.Fresh(&read.Lock) }})
		writer := &party{w: w, name: fmt.Sprintf("W%d", i+1), lock: write,
			newOwnership: func() *ownership.Ownership { return ownership.Fresh(&write.Lock) }}
		m.add(writer)
		m.add(&party{w: w, name: fmt.Sprintf("W%dr", i+1), lock: read, writer: writer,
			newOwnership: func() *ownership.Ownership { return owners.Of(c).Nested(&read.Lock, writer.t) }})
	}
	m.kept = &keptReference{w: w, lock: m.lock}
	m.queue = &queueReference{w: w, lock: m.lock}
	for _, p := range m.parties {
		p.queue = m.queue
	}
	m.java = []*javaThread{newJavaThread(w, 1), newJavaThread(w, 2)}
	return m
}

func (m *rwModel) add(p *party) {
	p.onRefusal = func(reply any) {
		if refusal, is := reply.([]any); is {
			reply = refusal[0]
		}
		ms, _ := reply.(int64)
		if m.before[0].TTL == -2 && (ms < 1 || ms > 60000) {
			m.w.fail("%s is refused for %d ms, and the lock is free", p.name, ms)
		}
	}
	m.parties = append(m.parties, p)
}

func (m *rwModel) actions() []modelAction {
	return []modelAction{
		{"act", 55, func(d dice) { m.act(m.parties[d[0]%len(m.parties)], d) }},
		{"renew", 10, func(d dice) { renewAll(m.w, m.parties[d[0]%len(m.parties):], d.fate()) }},
		{"downgrade", 4, func(d dice) { m.downgrade(m.parties[d[0]%len(m.parties)], d) }},
		{"early", 8, func(d dice) { m.kept.release(m.parties[d[0]%len(m.parties)], d) }},
		{"late", 8, func(d dice) { m.w.deliver(d[0]) }},
		{"wait", 12, func(d dice) { m.w.advance(modelPause(d)) }},
		{"crash", 3, func(d dice) { m.parties[d[0]%len(m.parties)].crash() }},
		{"damage", 4, m.damage},
		{"force", 1, m.force},
		{"foreign", 3, func(d dice) { m.w.intrude(d, m.lock.Names.Key, "rwlock") }},
		{"java", 14, m.javaActs},
		{"deliver", 12, func(d dice) { m.queue.deliver(d, m.parties) }},
	}
}

// act lets a party do something. Only a writer can also read.
func (m *rwModel) act(p *party, d dice) {
	if p.t == nil && p.writer != nil && p.writer.left() == 0 && len(p.toUndo) == 0 {
		return
	}
	if p.t == nil && p.writer != nil && p.writer.left() == 0 {
		p.undo(d[2], d.fate())
		return
	}
	p.act(d)
}

// downgrade turns the only write hold into a read hold.
func (m *rwModel) downgrade(reader *party, d dice) {
	writer := reader.writer
	if writer == nil || writer.left() == 0 || len(writer.grips) != 1 ||
		reader.t != nil && (reader.phase != ownership.Held || reader.t.Owner() != writer.t.Owner()) {
		return
	}
	fresh := reader.t == nil
	if fresh {
		reader.t, reader.phase, reader.grips = reader.newOwnership(), ownership.Acquiring, nil
		reader.unheard, reader.owing, reader.excused = false, false, false
	}
	certain, lease := writer.holds(), modelLease{30000, true}
	words := m.w.record(func() {
		_, _ = rw.SendDowngrade(&acquire.Acquisition{Request: request.Request{Lease: fromMS(lease.ms)}, Lock: reader.lock, Ownership: reader.t}, reader.t.Count()+1)
	})
	writer.grips, writer.phase = nil, ownership.Releasing
	msg := &message{what: writer.name + " downgrades", words: words, light: true}
	msg.silent = func() {
		reader.t.Doubt.Sent = &undo.SentInDoubt{Acquisition: true}
		if fresh {
			reader.GiveUp()
		} else {
			reader.owing = true
		}
		writer.unheard = true
	}
	msg.answered = func(reply any) {
		writer.t = nil
		switch {
		case isReplyError(reply):
			m.w.fail("%s gets %v", msg.what, reply)
		case reply != nil:
			reader.grips = append(reader.grips, lease)
			reader.t.Holds.Count = len(reader.grips)
			reader.phase = ownership.Held
			if fresh {
				reader.sent, reader.granted = msg.sent/1000, lease.ms
			} else {
				reader.extend(msg.sent/1000, lease.ms)
			}
		case certain:
			m.w.fail("%s has lost its hold when it downgrades", writer.name)
		default:
			reader.t.Doubt.Sent = &undo.SentInDoubt{Acquisition: true}
			reader.GiveUp()
		}
	}
	m.w.send(msg, d.fate())
}

func (m *rwModel) javaActs(d dice) {
	j := m.java[d[0]%len(m.java)]
	k := m.lock.Names
	write := m.writes[j]
	switch {
	case d[1]%10 == 0:
		j.crash()
	case !j.holds():
		write = d[2]%3 == 0
		m.writes[j] = write
		if write {
			j.writeLock(k)
		} else {
			j.readLock(k)
		}
	case d[1]%3 == 0 && write:
		j.writeRenew(k)
	case d[1]%3 == 0:
		j.readRenew(k)
	case write:
		j.writeUnlock(k)
	default:
		j.readUnlock(k)
	}
}

// damage deletes keys. After the loss of a key of this library next to the lock, nobody else gets
// in and nobody loses a hold. The exception is a read under a write hold, which only the notes
// know.
func (m *rwModel) damage(d dice) {
	keys := rw.Keys(m.lock.Names.Key)
	switch i := []int{0, 1, 1, 2, 3, 4}[d[0]%6]; {
	case i < 4:
		m.w.say("%s is deleted", keys[i])
		m.w.Must("DEL", keys[i])
		m.excuse(i == 0, i == 0 || i == 3)
	default:
		m.w.say("all is deleted")
		m.w.Must("FLUSHALL")
		m.excuse(true, true)
	}
}

func (m *rwModel) excuse(all, nested bool) {
	for _, p := range m.parties {
		if p.t != nil && p.phase != ownership.Acquiring && (all || nested && p.writer != nil) {
			p.excused = true
		}
	}
	for _, j := range m.java {
		if all {
			j.crash()
		}
	}
	if all || nested {
		m.kept.forget()
	}
	if all {
		m.queue.inFlight = nil
	}
}

// force calls ForceUnlock.
func (m *rwModel) force(dice) {
	if m.w.force(m.lock) {
		m.excuse(true, true)
	}
}

// rwHolder is a holder that relies on its hold.
type rwHolder struct {
	name, owner  string
	writes, java bool
}

func (m *rwModel) check() {
	m.before = m.w.State(rw.Keys(m.lock.Names.Key)[:1]...)
	var all []rwHolder
	for _, p := range m.parties {
		p.end()
		if p.holds() {
			h := rwHolder{name: p.name, owner: p.t.Wire, writes: p.lock.Spec.Side == keyspace.KindWrite}
			all = append(all, h)
			m.checkHold(p, h)
		}
	}
	for _, j := range m.java {
		if j.holds() {
			all = append(all, rwHolder{j.name, j.owner, m.writes[j], true})
		}
	}
	for _, each := range m.kept.live() {
		all = append(all, rwHolder{name: "the former writer", owner: each.owner, writes: true})
	}
	m.kept.check()
	for i, a := range all {
		for _, b := range all[:i] {
			if a.owner != b.owner && (a.writes || b.writes) && !(a.java && b.java) {
				m.w.fail("%s and %s hold the lock", b.name, a.name)
			}
		}
	}
}

// checkHold checks that the server has a hold for as long as the client relies on it.
func (m *rwModel) checkHold(p *party, h rwHolder) {
	lock, field := m.before[0], h.owner
	if h.writes {
		field += ":write"
	}
	if lock.Count(field) < 1 || h.writes && lock.Fields["mode"] != "write" {
		m.w.fail("the server does not know of the hold of %s, which relies on it for %d ms", p.name, p.left())
	}
	if lock.TTL < p.left() {
		m.w.fail("the lock ends after %d ms, and %s relies on it for %d", lock.TTL, p.name, p.left())
	}
}

func (m *rwModel) finish() {
	m.w.settleAll(m.parties, m.java)
	m.w.nothingLeft()
}
