package model

import (
	"fmt"

	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/testredis"
)

// keptReference holds what early releases have promised: until when the lock stays taken. Early
// releases of clients and of their guests share it.
type keptReference struct {
	w       *world
	lock    *acquire.Lock
	promise []keptPromise
}

// keptPromise is the promise of one early release.
type keptPromise struct {
	owner string
	until int64 // ms
}

// modelRests are the times, in ms, for which a lock is to stay taken after a release.
var modelRests = []int64{1, 50, 700, 2500, 20000}

// release makes an early release of the only hold of a party. After it the lock stays taken, but no
// longer than the lease that the party is certain of.
func (k *keptReference) release(p *party, d dice) {
	if p.t == nil || p.phase != ownership.Held || len(p.grips) != 1 || !p.holds() {
		return
	}
	if p.lock.CheckAtLeast() != nil {
		return
	}
	t, others, rest, certain := p.t, p.others, min(modelRests[d[1]%len(modelRests)], p.left()), p.holds()
	p.grips, p.phase, t.Holds.Count = nil, ownership.Releasing, 0
	c := t.ReleaseCall(ownership.Release{Keep: fromMS(rest)}, nil)
	m := &message{what: fmt.Sprintf("%s releases, and the lock is to stay taken for %d ms", p.name, rest), words: p.w.words(c), light: true}
	var had testredis.Entry
	m.before = func() { had = k.state() }
	m.seen = func(reply any) { k.seen(t, m.what, reply, rest, had) }
	m.silent = func() { p.unheard, p.owing = true, true }
	m.answered = func(reply any) {
		if isReplyError(reply) {
			p.w.fail("%s gets %v", m.what, reply)
		}
		if reply == nil && certain && !p.excused {
			p.w.fail("%s finds nothing to release before its lease is over", p.name)
		}
		p.toUndo = append(append(p.toUndo, t), others...)
		p.t = nil
	}
	p.w.send(m, d.fate())
}

// seen checks the effect of an early release. A release that finds nothing must change nothing.
func (k *keptReference) seen(t *ownership.Ownership, what string, reply any, rest int64, had testredis.Entry) {
	now := k.state()
	if isReplyError(reply) || reply == nil {
		if fmt.Sprint(now.Fields, now.Text) != fmt.Sprint(had.Fields, had.Text) || now.TTL != had.TTL {
			k.w.fail("%s, finds nothing, and changes %v into %v", what, had, now)
		}
		return
	}
	if now.TTL > max(had.TTL, 1) { // in its last ms a key has a TTL of 0
		k.w.fail("%s, and lengthens its time from %d to %d", what, had.TTL, now.TTL)
	}
	if left := min(rest, had.TTL); now.TTL < left {
		k.w.fail("%s, and the lock ends after %d", what, now.TTL)
	} else if alone := reply != any("HELD") && len(now.Fields) <= 1; alone && had.Count(t.Wire+"@kept") == 0 && now.TTL != max(left, 1) {
		k.w.fail("%s, and it stays for %d", what, now.TTL)
	}
	k.promise = append(k.promise, keptPromise{t.Wire, k.w.ms() + min(rest, had.TTL)})
}

func (k *keptReference) state() testredis.Entry { return k.w.State(k.lock.Names.Key)[0] }

// live returns the promises that still have to be kept.
func (k *keptReference) live() (live []keptPromise) {
	for _, p := range k.promise {
		if !k.w.expired(p.until) && p.until > k.w.ms() {
			live = append(live, p)
		}
	}
	k.promise = live
	return live
}

// forget drops promises that damage has made void.
func (k *keptReference) forget() { k.promise = nil }

// check checks that the lock is taken as promised, and that its state shows it.
func (k *keptReference) check() {
	for _, p := range k.live() {
		now := k.state()
		kept := now.Text == p.owner+identity.KeptSuffix || now.Count(p.owner+identity.KeptSuffix) == 1 || now.Count(p.owner+identity.KeptSuffix+identity.WriteSuffix) == 1
		if !kept && now.Count(p.owner+"@kept") != 1 {
			k.w.fail("the lock is to stay taken for %d ms, and it is %v", p.until-k.w.ms(), now)
		}
		if now.TTL < p.until-k.w.ms() {
			k.w.fail("the lock is to stay taken for %d ms, and ends after %d", p.until-k.w.ms(), now.TTL)
		}
	}
}
