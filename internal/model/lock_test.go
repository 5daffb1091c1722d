package model

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/primitive/admin"
	"github.com/latchkey-go/latchkey/internal/primitive/lock"
	"github.com/latchkey-go/latchkey/internal/testredis"
)

func init() {
	models["mutex"] = func(w *world) model { return newLockModel(w, always(lock.Mutex)) }
	models["lock"] = func(w *world) model { return newLockModel(w, always(lock.Reentrant)) }
	models["fenced"] = func(w *world) model { return newLockModel(w, always(lock.Fenced)) }
}

// lockModel is the mutex, the re-entrant lock and the fenced lock: one owner at a time, with its
// guests, and tokens that grow.
type lockModel struct {
	w       *world
	kind    *acquire.Spec
	lock    *acquire.Lock // of the first client
	parties []*party
	java    []*javaThread
	queue   *queueReference
	kept    *keptReference

	before    testredis.Entry // the lock as it was after the last step
	token     int64           // the largest token so far
	tokenOf   string          // its owner
	lostCount bool            // the counter of tokens was deleted
	looks     string          // the form of the key
}

func always(kind *acquire.Spec) func(*core.Parts) *acquire.Spec {
	return func(*core.Parts) *acquire.Spec { return kind }
}

func newLockModel(w *world, kindOf func(*core.Parts) *acquire.Spec) *lockModel {
	kind := kindOf(w.clients[0])
	if kind.Passes {
		w.withPoller()
	}
	m := &lockModel{w: w, kind: kind, before: testredis.Entry{Kind: "none", TTL: -2}, looks: "hash"}
	if kind.Stored == keyspace.KindMutex {
		m.looks = "string"
	}
	for i, c := range w.clients {
		lock := acquire.NewLock(c, kindOf(c), modelName)
		if i == 0 {
			m.lock = lock
		}
		for n := range 2 {
			m.add(&party{w: w, name: fmt.Sprintf("G%d%c", i+1, 'a'+n), lock: lock,
				newOwnership: func() *ownership.Ownership { return ownership.Fresh(&lock.Lock) }})
		}
	}
	m.kept = &keptReference{w: w, lock: m.lock}
	if kind.Passes {
		m.queue = &queueReference{w: w, lock: m.lock}
	}
	for _, p := range m.parties {
		p.queue = m.queue
	}
	hosts := m.parties
	for i, c := range w.clients {
		if kind.Reentrant && kind.Kind != keyspace.KindFair { // in a queue a guest and its host are one
			m.addGuest(c, hosts[(2*i+2)%len(hosts)])
		}
	}
	if kind.Reentrant {
		m.java = []*javaThread{newJavaThread(w, 1), newJavaThread(w, 2)}
	}
	return m
}

func (m *lockModel) add(p *party) {
	p.onGrant = func(reply any) { m.granted(p, reply) }
	p.onRefusal = func(any) {
		if m.before.TTL == -2 {
			m.w.fail("%s is refused, and the lock is free", p.name)
		}
	}
	m.parties = append(m.parties, p)
}

// addGuest lets a client join the holds of a party of another client.
func (m *lockModel) addGuest(c *core.Parts, host *party) {
	lock := acquire.NewLock(c, m.kind, modelName)
	guest := &party{w: m.w, name: host.name + "*", lock: lock}
	guest.newOwnership = func() *ownership.Ownership {
		number := c.Number()
		owner := identity.New(host.lock.Client.ID, 1<<40)
		if host.t != nil {
			owner = host.t.Owner()
		}
		o := ownership.New(&lock.Lock, owner, number)
		o.IsGuest = true
		return o
	}
	m.add(guest)
}

// granted checks the token of a new hold.
func (m *lockModel) granted(p *party, reply any) {
	text, _ := reply.(string)
	if !m.kind.Fenced || reply == "" {
		return
	}
	token, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		m.w.fail("%s gets the token %v", p.name, reply)
	case m.lostCount:
		m.lostCount = false
	case p.t.Wire == m.tokenOf && token < m.token || p.t.Wire != m.tokenOf && token <= m.token:
		m.w.fail("%s gets the token %d after %d", p.name, token, m.token)
	}
	m.token, m.tokenOf = token, p.t.Wire
}

func (m *lockModel) actions() []modelAction {
	actions := []modelAction{
		{"act", 50, func(d dice) { m.parties[d[0]%len(m.parties)].act(d) }},
		{"renew", 10, func(d dice) { renewAll(m.w, m.parties[d[0]%len(m.parties):], d.fate()) }},
		{"early", 8, func(d dice) { m.kept.release(m.parties[d[0]%len(m.parties)], d) }},
		{"late", 8, func(d dice) { m.w.deliver(d[0]) }},
		{"wait", 12, func(d dice) { m.w.advance(modelPause(d)) }},
		{"crash", 3, func(d dice) { m.parties[d[0]%len(m.parties)].crash() }},
		{"damage", 1, m.damage},
		{"force", 1, m.force},
		{"foreign", 3, func(d dice) { m.w.intrude(d, m.lock.Names.Key, m.looks) }},
	}
	if m.queue != nil {
		actions = append(actions, modelAction{"deliver", 12, func(d dice) { m.queue.deliver(d, m.parties) }})
	}
	if m.java != nil {
		actions = append(actions, modelAction{"java", 12, m.javaActs})
	}
	return actions
}

// modelPause returns for how many ms nothing happens.
func modelPause(d dice) int64 {
	pauses := []int64{1, 10, 100, 500, 999, 1000, 1500, 3000, 4999, 10000, 20000, 30001}
	return pauses[d[0]%len(pauses)]
}

func (m *lockModel) javaActs(d dice) {
	j := m.java[d[0]%len(m.java)]
	switch {
	case d[1]%10 == 0:
		j.crash()
	case j.count > 0 && d[1]%3 == 0:
		j.renew(m.lock.Names)
	case j.count > 0 && d[1]%3 == 1:
		j.unlock(m.lock.Names)
	default:
		j.lock(m.lock.Names)
	}
}

// damage deletes keys.
func (m *lockModel) damage(d dice) {
	if m.kind.Fenced && d[0]%3 == 0 {
		m.w.say("the counter of the tokens is deleted")
		m.w.Must("DEL", m.lock.Names.Token())
		m.lostCount, m.token = true, 0
		m.queue.loseCount()
		return
	}
	if d[0]%3 == 1 {
		m.w.say("all is deleted")
		m.w.Must("FLUSHALL")
		m.lostCount, m.token = true, 0
	} else {
		m.w.say("the lock is deleted")
		m.w.Must("DEL", m.lock.Names.Key)
	}
	m.excuse()
}

// excuse permits holds to end because something outside ended them.
func (m *lockModel) excuse() {
	m.kept.forget()
	for _, p := range m.parties {
		p.excused = p.t != nil && p.phase != ownership.Acquiring
	}
	for _, j := range m.java {
		j.crash()
	}
	if m.queue != nil {
		m.queue.inFlight = nil
	}
}

// force calls ForceUnlock.
func (m *lockModel) force(dice) {
	if m.w.force(m.lock) {
		m.excuse()
	}
}

// force ends all holds, and reports whether there were any.
func (w *world) force(p *acquire.Lock) bool {
	words := w.record(func() { _, _ = admin.ForceUnlock(context.Background(), p.Client, p.Names, nil) })
	if words != nil {
		w.send(&message{what: "force", words: words, light: true, answered: func(any) {}}, 0)
	}
	return words != nil
}

func (m *lockModel) check() {
	lock := m.w.State(m.lock.Names.Key)[0]
	m.before = lock
	owner, holder := "", ""
	alone := func(name, wire string) {
		if owner != "" && owner != wire {
			m.w.fail("%s and %s hold the lock", holder, name)
		}
		owner, holder = wire, name
	}
	for _, p := range m.parties {
		p.end()
		if p.holds() {
			alone(p.name, p.t.Wire)
			m.checkHold(p, lock)
		}
	}
	for _, j := range m.java {
		if j.holds() {
			alone(j.name, j.owner)
		}
	}
	for _, each := range m.kept.live() {
		alone("the former holder", each.owner) // its guests may be inside
	}
	m.kept.check()
}

// checkHold checks that the server has a hold for as long as the client relies on it.
func (m *lockModel) checkHold(p *party, key testredis.Entry) {
	mine := key.Count(p.t.Wire) - key.Count(p.t.Wire+"@")
	switch {
	case m.kind.Stored == keyspace.KindMutex:
		if key.Text != p.t.Wire {
			m.w.fail("the server does not know of the hold of %s", p.name)
		}
		mine = 1
	case p.t.IsGuest:
		mine = key.Count(p.t.Wire + "@" + p.t.GuestID())
	}
	if mine < 1 {
		m.w.fail("the server does not know of the hold of %s", p.name)
	}
	if key.TTL < p.left() {
		m.w.fail("the lock ends after %d ms, and %s relies on it for %d", key.TTL, p.name, p.left())
	}
}

func (m *lockModel) finish() {
	m.w.settleAll(m.parties, m.java)
	m.w.nothingLeft(m.lock.Names.Token())
}

// nothingLeft checks that no keys are left except the given ones.
func (w *world) nothingLeft(but ...string) {
	for _, key := range w.everything() {
		if !slices.Contains(but, key) {
			w.fail("%s is left over: %v", key, w.State(key)[0])
		}
	}
}
