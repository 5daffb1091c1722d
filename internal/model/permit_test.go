package model

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/primitive/semaphore"
	"github.com/latchkey-go/latchkey/internal/testredis"
)

// permitModel is the semaphore whose permits have IDs and leases: no permit is created or lost,
// permits that are acquired together are granted all or none, and a lease lasts its full time. Its
// queue is in fairPermitModel.
type permitModel struct {
	w         *world
	notes     opReference
	operators []*operator
	parties   []*party
	keys      *semaphore.Pool
	java      []string // IDs that a process of Redisson holds
	ids       int      // how many were made

	set   bool  // somebody has set the permits
	total int64 // in all
	ends  int64 // ms, 0: never
}

func newPermitModel(w *world) *permitModel {
	m := &permitModel{w: w, notes: opReference{w, map[string]opNote{}}}
	for i, c := range w.clients {
		m.keys = newPool(c)
		lock := semaphore.NewFairPool(c, modelName).Permits
		m.operators = append(m.operators, &operator{w: w, name: fmt.Sprintf("G%d", i+1), client: c, execute: m.execute})
		for n, size := range []int{1, 1, 2, 5} {
			p := &party{w: w, name: fmt.Sprintf("G%d%c", i+1, 'a'+n), lock: lock}
			p.newOwnership = func() *ownership.Ownership {
				t, others := m.newOwnerships(lock, size)
				p.others = others
				return t
			}
			p.unset = func() bool { return !m.set }
			m.parties = append(m.parties, p)
		}
	}
	w.elapsed = m.lapse
	return m
}

// newOwnerships returns the ownerships of permits that are acquired together. Their IDs are the
// same in every run.
func (m *permitModel) newOwnerships(s *acquire.Lock, size int) (first *ownership.Ownership, others []*ownership.Ownership) {
	m.ids++
	ids := identity.GroupOf(fmt.Sprintf("%024x%04x0000", m.ids, size))
	return semaphore.OwnershipsOf(&acquire.Acquisition{Lock: s}, ids)
}

func (m *permitModel) actions() []modelAction {
	return []modelAction{
		{"set", 5, m.change},
		{"act", 50, func(d dice) { m.parties[d[0]%len(m.parties)].act(d) }},
		{"renew", 10, func(d dice) { renewAll(m.w, m.parties[d[0]%len(m.parties):], d.fate()) }},
		{"release", 4, m.release},
		{"expire", 1, m.expire},
		{"retry", 10, func(d dice) { m.retryOne(m.operators[d[0]%len(m.operators)], d.fate()) }},
		{"late", 8, func(d dice) { m.w.deliver(d[0]) }},
		{"wait", 12, func(d dice) { m.w.advance(modelPause(d)) }},
		{"crash", 3, func(d dice) { m.parties[d[0]%len(m.parties)].crash() }},
		{"java", 10, m.javaActs},
		{"foreign", 3, func(d dice) { m.w.intrude(d, m.keys.Names.Key, "counter") }},
	}
}

// lapse ends the semaphore when its time is over.
func (m *permitModel) lapse() {
	if m.set && m.ends > 0 && m.w.expired(m.ends) {
		m.gone()
	}
}

// gone is the end of the semaphore, and of its permits.
func (m *permitModel) gone() {
	m.set, m.total, m.ends, m.java = false, 0, 0, nil
	for _, p := range m.parties {
		p.excused = p.t != nil && p.phase != ownership.Acquiring
	}
}

// free returns how many permits are available, and how many are held.
func (m *permitModel) free() (free, held int64) {
	words := m.w.State(m.keys.Names.Key, keyspace.PermitIDsKey(m.keys.Names.Key))
	free, held = numeral(words[0].Text), int64(len(words[1].List))
	for _, score := range words[1].Fields {
		if numeral(score) <= m.w.ms() {
			free++
		}
	}
	return free, held
}

// execute is the reference of the scripts that count once.
func (m *permitModel) execute(o modelOperation) any {
	if o.script == "shared/op_void" {
		return m.notes.void(o)
	}
	return m.notes.once(o, func() any {
		switch o.script {
		case "permit/set":
			return m.changed(o)
		case "permit/release":
			return judged(func(reply any) { m.notes.remember(o, reply) })
		case "semaphore/expire":
			was, ms := m.set, o.arg(1)
			if ms == "0" {
				m.gone()
			}
			if !was {
				return m.notes.done(o, int64(0))
			}
			if ms == "0" {
				return m.notes.done(o, int64(1))
			}
			m.ends = 0
			if o.arg(1) != "" {
				m.ends = m.w.ms() + numeral(o.arg(1))
			}
			return m.notes.done(o, int64(1))
		}
		panic("model: no reference of " + o.script)
	})
}

func (m *permitModel) changed(o modelOperation) any {
	n, how := numeral(o.arg(1)), o.arg(2)
	if m.set && how == "try" {
		return m.notes.done(o, int64(0))
	}
	total := m.total
	if !m.set {
		total = m.remaining(n, how)
	}
	if how == "add" && n < 0 && total+n < 0 {
		return testredis.ReplyError("LATCHKEY_RANGE")
	}
	if !m.set {
		m.set, m.total, m.ends = true, total, 0
		if o.arg(3) != "" {
			m.ends = m.w.ms() + numeral(o.arg(3))
		}
	}
	if how == "add" {
		m.total += n
	} else {
		m.total = n
	}
	return m.notes.done(o, int64(1))
}

// remaining returns how many ids remained of a semaphore that was gone when its permits were set.
// By now some of the new permits may be held by those that waited.
func (m *permitModel) remaining(n int64, how string) int64 {
	words := m.w.State(m.keys.Names.Key, keyspace.PermitIDsKey(m.keys.Names.Key))
	held := int64(len(words[1].List))
	if how == "add" && words[0].Kind == "string" {
		return numeral(words[0].Text) + held - n
	}
	return held
}

// newPool returns the semaphore of a client.
func newPool(c *core.Parts) *semaphore.Pool {
	s := semaphore.NewPool(c, modelName)
	return &s
}

func (m *permitModel) change(d dice) {
	o, ctx := m.operators[d[0]%len(m.operators)], context.Background()
	if o.settle != nil {
		return
	}
	s, n := newPool(o.client), 1+d[1]%7
	switch d[2] % 4 {
	case 0, 1:
		o.perform(fmt.Sprintf("sets %d permits if none are", n), repeated, false, func() { _, _ = s.TrySet(ctx, n, nil) }, d.fate())
	case 2:
		o.perform(fmt.Sprintf("sets %d permits", n), repeated, false, func() { _ = s.Set(ctx, n) }, d.fate())
	default:
		o.perform(fmt.Sprintf("adds %d permits", n-3), repeated, false, func() { _ = s.Add(ctx, n-3) }, d.fate())
	}
}

// release releases a permit of another party.
func (m *permitModel) release(d dice) {
	o, p := m.operators[d[0]%len(m.operators)], m.parties[d[1]%len(m.parties)]
	if o.settle != nil || p.t == nil || p.phase != ownership.Held {
		return
	}
	s, id := newPool(o.client), p.t.Wire
	p.excused = true
	o.perform("releases that of "+p.name, repeated, true, func() { _, _ = s.Release(context.Background(), []string{id}) }, d.fate())
}

func (m *permitModel) expire(d dice) {
	o, ctx := m.operators[d[0]%len(m.operators)], context.Background()
	if o.settle != nil {
		return
	}
	s := newPool(o.client)
	switch d[1] % 3 {
	case 0:
		o.perform("has it expire after 5000 ms", voided, true, func() { _, _ = s.SetTTL(ctx, 5*time.Second) }, d.fate())
	case 1:
		o.perform("has it not expire", voided, true, func() { _, _ = s.SetTTL(ctx, lease.NoExpiry) }, d.fate())
	default:
		o.perform("deletes it", voided, true, func() { _, _ = s.Delete(ctx) }, d.fate())
	}
}

func (m *permitModel) retryOne(o *operator, fate int) {
	if o.settle != nil {
		o.retry(fate)
	}
}

// damage deletes everything.
func (m *permitModel) damage(dice) {
	m.w.say("all is deleted")
	m.w.Must("FLUSHALL")
	m.gone()
	clear(m.notes.notes)
}

func (m *permitModel) javaActs(d dice) {
	if !m.set {
		return
	}
	key := m.keys.Names.Key
	switch {
	case d[0]%4 == 0:
		m.w.javaPermits("counts", javaPermitCount, key, 1000)
	case d[0]%4 == 1 && len(m.java) > 0:
		m.w.javaPermits("releases", javaPermitRelease, key, 0, m.java[0])
		m.java = m.java[1:]
	default:
		n := 1 + d[1]%2
		args := []string{strconv.FormatInt(m.w.ms()+5000, 10)}
		for range n {
			m.ids++
			args = append(args, identity.RawID(fmt.Sprintf("%032x", m.ids)))
		}
		if m.w.javaPermits(fmt.Sprintf("acquires %d", n), javaPermitAcquire, key, n, args...) == int64(1) {
			m.java = append(m.java, args[1:]...)
		}
	}
}

func (m *permitModel) check() {
	words := m.w.State(m.keys.Names.Key, keyspace.PermitIDsKey(m.keys.Names.Key))
	permits, ids := words[0], words[1]
	if m.set != (permits.Kind == "string") {
		m.w.fail("the semaphore is there: %v, and has to be: %v", permits.Kind != "none", m.set)
	}
	if all := numeral(permits.Text) + int64(len(ids.List)); m.set && all != m.total {
		m.w.fail("there are %s permits and %d are held, and in all there are %d", permits.Text, len(ids.List), m.total)
	}
	for _, p := range m.parties {
		p.end()
		if !p.holds() {
			continue
		}
		for _, t := range p.together() {
			score, there := ids.Fields[identity.RawID(t.Wire)]
			if !there || numeral(score) < p.sent+p.granted {
				m.w.fail("the lease of %s ends at %q, and it relies on it until %d", p.name, score, p.sent+p.granted)
			}
		}
	}
}

func (m *permitModel) finish() {
	for _, o := range m.operators {
		m.retryOne(o, 0)
	}
	m.w.settleAll(m.parties, nil)
	free, held := m.free()
	if m.set && free != m.total {
		m.w.fail("all is given back, and there are %d of %d, %d are held", free, m.total, held)
	}
	m.w.nothingLeft(m.keys.Names.Key, keyspace.PermitIDsKey(m.keys.Names.Key), keyspace.NumberKindKey(m.keys.Names.Key))
}
