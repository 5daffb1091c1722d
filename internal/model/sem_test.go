package model

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/primitive/semaphore"
	"github.com/latchkey-go/latchkey/internal/testredis"
)

func init() { models["semaphore"] = newSemaphoreModel }

// semaphoreModel is the semaphore: a number on which every operation counts once.
type semaphoreModel struct {
	w       *world
	notes   opReference
	clients []*semaphoreClient
	keys    *semaphore.Semaphore // for its keys

	set   bool  // somebody has set the permits
	free  int64 // how many are available
	total int64 // in all, or unknown
	ends  int64 // ms, 0: never
	knows int64 // ms until which the total is known, 0: forever

	before semaphoreState
}

// semaphoreState is what the server stores of those that wait.
type semaphoreState struct {
	queue, calls, bar testredis.Entry

	at int64 // when it was read, in ms
}

// unknown stands for a total that only Redisson knows.
const unknown = math.MinInt64

// semaphoreClient performs one operation at a time.
type semaphoreClient struct {
	operator

	semaphore *semaphore.Semaphore
	wanted    *semaphore.Place // an acquisition that waits, or is being given up
}

// newSemaphore returns the semaphore of a client.
func newSemaphore(c *core.Parts) *semaphore.Semaphore {
	s := semaphore.New(c, modelName)
	return &s
}

func newSemaphoreModel(w *world) model {
	w.withPoller()
	m := &semaphoreModel{w: w, notes: opReference{w, map[string]opNote{}}, total: unknown}
	for i, c := range w.clients {
		s := &semaphoreClient{semaphore: newSemaphore(c)}
		s.operator = operator{w: w, name: fmt.Sprintf("G%d", i+1), client: c, execute: m.execute}
		m.clients = append(m.clients, s)
	}
	m.keys = m.clients[0].semaphore
	w.elapsed = m.lapse
	return m
}

func (m *semaphoreModel) actions() []modelAction {
	return []modelAction{
		{"set", 6, m.change},
		{"acquire", 30, m.acquire},
		{"release", 20, m.release},
		{"drain", 3, m.drain},
		{"expire", 2, m.expire},
		{"retry", 20, func(d dice) { m.retryOne(m.client(d), d.fate()) }},
		{"late", 10, func(d dice) { m.w.deliver(d[0]) }},
		{"wait", 10, func(d dice) { m.w.advance(modelPause(d)) }},
		{"crash", 2, func(d dice) { m.client(d).forget() }},
		{"damage", 2, m.damage},
		{"java", 12, m.javaActs},
		{"foreign", 3, func(d dice) { m.w.intrude(d, m.keys.Names.Key, "counter") }},
		{"patience", 2, m.patience},
	}
}

func (m *semaphoreModel) client(d dice) *semaphoreClient { return m.clients[d[0]%len(m.clients)] }

func (s *semaphoreClient) idle() bool { return s.settle == nil && s.wanted == nil }

func (s *semaphoreClient) forget() { s.settle, s.wanted = nil, nil }

// lapse ends the semaphore when its time is over.
func (m *semaphoreModel) lapse() {
	if m.knows > 0 && m.w.expired(m.knows) {
		m.total, m.knows = unknown, 0
	}
	if m.set && m.ends > 0 && m.w.expired(m.ends) {
		m.set, m.free, m.ends = false, 0, 0
	}
}

// forgetAll is the state of a semaphore that does not exist.
func (m *semaphoreModel) forgetAll() {
	m.set, m.free, m.ends, m.total, m.knows = false, 0, 0, unknown, 0
}

// execute is the reference of the scripts.
func (m *semaphoreModel) execute(o modelOperation) any {
	switch o.script {
	case "shared/op_void":
		return m.notes.void(o)
	case "semaphore/undo":
		return m.undone(o)
	}
	return m.notes.once(o, func() any {
		n := numeral(o.arg(1))
		switch o.script {
		case "semaphore/release":
			return m.released(o, n, o.arg(9))
		case "semaphore/set":
			return m.changed(o, n, o.arg(8), o.arg(9))
		case "semaphore/drain":
			if !m.set {
				return testredis.ReplyError("LATCHKEY_UNSET")
			}
			drained := m.free
			m.free = 0
			return m.notes.done(o, drained)
		case "semaphore/expire":
			was, ms := m.set, o.arg(1)
			if ms == "0" {
				m.forgetAll()
			}
			if !was {
				return m.notes.done(o, int64(0))
			}
			if ms == "0" {
				return m.notes.done(o, int64(1))
			}
			m.ends = 0
			if o.arg(1) != "" {
				m.ends = m.w.ms() + n
			}
			if m.knows = m.ends; m.total == unknown {
				m.knows = 0
			}
			return m.notes.done(o, int64(1))
		}
		panic("model: no reference of " + o.script)
	})
}

func numeral(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

func (m *semaphoreModel) released(o modelOperation, n int64, how string) any {
	switch {
	case !m.set && how == "release if set":
		return m.notes.done(o, int64(0))
	case !m.set:
		m.forgetAll()
		m.set, m.free = true, n
	default:
		m.free += n
	}
	return m.notes.done(o, int64(1))
}

func (m *semaphoreModel) changed(o modelOperation, n int64, ttl, how string) any {
	switch {
	case m.set && how == "try":
		return m.notes.done(o, int64(0))
	case how == "add" && n < 0 && (!m.set || m.total != unknown && m.total+n < 0):
		return testredis.ReplyError("LATCHKEY_RANGE")
	case m.set && how == "add":
		m.free += n
		if m.total != unknown {
			m.total += n
		}
	case m.set && m.total == unknown:
		return testredis.ReplyError("LATCHKEY_UNSET")
	case m.set:
		m.free += n - m.total
		m.total = n
	default:
		m.forgetAll()
		m.set, m.free, m.total = true, n, n
		if ttl != "" {
			m.ends = m.w.ms() + numeral(ttl)
			m.knows = m.ends
		}
	}
	return m.notes.done(o, int64(1))
}

func (m *semaphoreModel) undone(o modelOperation) any {
	result, past := m.notes.recall(o)
	if past {
		return int64(0)
	}
	m.notes.remember(o, nil)
	back, _ := result.(int64)
	if !m.set {
		return int64(0)
	}
	m.free += back
	return back
}

func (m *semaphoreModel) change(d dice) {
	s, ctx := m.client(d), context.Background()
	if !s.idle() {
		return
	}
	n := 1 + d[1]%10
	var what string
	var light bool
	var send func()
	switch d[2] % 4 {
	case 0:
		what, send = fmt.Sprintf("sets %d permits if none are", n), func() { _, _ = s.semaphore.TrySet(ctx, n, nil) }
	case 1:
		what = fmt.Sprintf("sets %d permits for 5000 ms if none are", n)
		send = func() { _, _ = s.semaphore.TrySet(ctx, n, []request.Setting{{Kind: request.TTL, D: 5 * time.Second}}) }
	case 2:
		what, send = fmt.Sprintf("sets %d permits", n), func() { _ = s.semaphore.Set(ctx, n) }
	default:
		n -= 5
		what, light, send = fmt.Sprintf("adds %d permits", n), true, func() { _ = s.semaphore.Add(ctx, n) }
	}
	s.perform(what, repeated, light, send, d.fate())
}

func (m *semaphoreModel) release(d dice) {
	s, ctx := m.client(d), context.Background()
	if !s.idle() {
		return
	}
	n := 1 + d[1]%3
	what, send := fmt.Sprintf("releases %d", n), func() { _ = s.semaphore.Release(ctx, n) }
	if d[2]%4 == 0 {
		what, send = what+" if set", func() { _, _ = s.semaphore.ReleaseIfExists(ctx, n) }
	}
	s.perform(what, repeated, true, send, d.fate())
}

func (m *semaphoreModel) drain(d dice) {
	if s := m.client(d); s.idle() {
		s.perform("drains", undone, false, func() { _, _ = s.semaphore.Drain(context.Background()) }, d.fate())
	}
}

func (m *semaphoreModel) expire(d dice) {
	s, ctx := m.client(d), context.Background()
	if !s.idle() {
		return
	}
	switch d[1] % 3 {
	case 0:
		s.perform("has it expire after 5000 ms", voided, true, func() { _, _ = s.semaphore.SetTTL(ctx, 5*time.Second) }, d.fate())
	case 1:
		s.perform("has it not expire", voided, true, func() { _, _ = s.semaphore.SetTTL(ctx, lease.NoExpiry) }, d.fate())
	default:
		s.perform("deletes it", voided, true, func() { _, _ = s.semaphore.Delete(ctx) }, d.fate())
	}
}

// acquire begins an acquisition, continues it, or gives it up.
func (m *semaphoreModel) acquire(d dice) {
	s := m.client(d)
	switch {
	case s.settle != nil:
	case s.wanted == nil:
		sizes := []int64{1, 1, 2, 3, 7, 100}
		m.want(s, sizes[d[1]%len(sizes)], d[2]%3 > 0, d.fate())
	case d[1]%6 == 0:
		m.w.say("%s gives up", s.name)
		m.conclude(s)
	default:
		m.attempt(s, d.fate())
	}
}

func (m *semaphoreModel) want(s *semaphoreClient, n int64, waits bool, fate int) {
	s.wanted = s.semaphore.NewPlace(int(n), waits, "", func() {})
	m.attempt(s, fate)
}

// attempt makes one attempt.
func (m *semaphoreModel) attempt(s *semaphoreClient, fate int) {
	p := s.wanted
	words := m.w.record(func() { _ = p.Ask(context.Background()) })
	o := m.w.operationOf(words)
	msg := &message{what: fmt.Sprintf("%s acquires %d", s.name, p.Count), words: words}
	msg.seen = func(reply any) { m.acquired(msg.what, o, p, reply) }
	msg.silent = func() { p.Doubt = true }
	msg.answered = func(reply any) {
		if refusal, is := reply.([]any); is && p.Waits {
			m.refused(p, o, refusal)
			return
		}
		if reply == "OK" {
			p.Ends()
			s.wanted = nil
			return
		}
		m.conclude(s)
	}
	m.w.send(msg, fate)
}

// refused notes what a waiter learns. A copy of its request may have acquired the permits since.
func (m *semaphoreModel) refused(p *semaphore.Place, o modelOperation, refusal []any) {
	if ticket := refusal[3].(string); ticket != "0" {
		p.Ticket = ticket
	}
	p.Aside = refusal[4] == int64(semaphore.Aside)
	p.Queued = p.Queued || !p.Aside
	acquired, _ := m.notes.recall(o)
	if waits := slices.Contains(m.state().queue.List, p.Entry()); acquired == nil && waits == p.Aside {
		m.w.fail("%s is told that it is aside: %v", p.Entry(), p.Aside)
	}
}

// conclude ends an acquisition that is not granted.
func (m *semaphoreModel) conclude(s *semaphoreClient) {
	p := s.wanted
	if p.Doubt || p.Queued {
		s.settle = s.settling(fmt.Sprintf("acquires %d", p.Count), undone, modelOperation{
			script: "semaphore/acquire", note: p.Op.Record,
			number: uint64(numeral(p.Op.Number)), args: []string{p.Op.Number, p.Entry()},
		})
		s.settle.answered = func(any) {
			s.settle = nil
			p.Ends()
		}
	} else {
		p.Ends()
	}
	s.wanted = nil
}

// acquired is the reference of lua/semaphore/acquire.lua.
func (m *semaphoreModel) acquired(what string, o modelOperation, p *semaphore.Place, reply any) {
	if outOfMemory(reply) {
		return
	}
	n := int64(p.Count)
	result, past := m.notes.recall(o)
	switch {
	case past:
		m.w.expect(what, reply, testredis.ReplyError("LATCHKEY_PAST"))
	case result != nil:
		m.w.expect(what, reply, "OK")
	case !m.set:
		m.w.expect(what, reply, testredis.ReplyError("LATCHKEY_UNSET"))
	case m.mayTake(p.Entry(), o.arg(9), n):
		m.w.expect(what, reply, "OK")
		m.free -= n
		m.notes.remember(o, n)
	default:
		if _, refused := reply.([]any); !refused {
			m.w.fail("%s gets %s, and others go first: there are %d", what, show(reply), m.free)
		}
	}
}

func (m *semaphoreModel) state() semaphoreState {
	s := m.w.State(m.keys.Names.SemQueueKeys()...)
	return semaphoreState{s[0], s[1], s[2], m.w.ms()}
}

// wantedBy returns how many permits an entry wants.
func wantedBy(entry string) int64 {
	_, n, _ := strings.Cut(entry, " ")
	return numeral(n)
}

// kept returns how many permits are kept for others.
func (m *semaphoreModel) kept(entry string) (n int64) {
	for each, score := range m.before.calls.Fields {
		if left := numeral(score) - m.w.ms(); each != entry && 0 < left && left <= script.Millis(m.keys.Client.Config.StaleWaiterTimeout/5) {
			n += wantedBy(each)
		}
	}
	return n
}

// mayTake is the reference of lua/semaphore/serve.lua: whether an operation may take its permits,
// with the ticket that it names.
func (m *semaphoreModel) mayTake(entry, ticket string, n int64) bool {
	_, called := m.before.calls.Fields[entry]
	switch alone := len(m.before.calls.List)+len(m.before.queue.List) == 0; {
	case m.free <= 0, m.free < n:
		return false
	case called, alone:
		return true
	}
	spare, passed := m.free-m.kept(entry), 0
	queue := m.queueWith(entry, ticket)
	for spare > 0 && passed < 16 && passed < len(queue) {
		first := queue[passed]
		want := wantedBy(first)
		switch {
		case want <= spare && first == entry:
			return true
		case strings.HasPrefix(first, "~"): // there are no more entries
			return false
		case want <= spare:
			switch m.turnOf(first, queue) {
			case "passed over":
				passed++
				continue
			case "called":
				spare -= want
			}
			queue = slices.Delete(queue, passed, passed+1)
		case m.total != unknown && want > m.total:
			queue = slices.Delete(queue, passed, passed+1)
		case m.isBarred(first) && m.turnOf(first, queue) != "gone":
			return false
		default:
			passed++
		}
	}
	return false
}

// turnOf says what comes of an entry whose permits are free, if it is not the asker's.
func (m *semaphoreModel) turnOf(entry string, queue []string) string {
	if !m.w.polls(entry) {
		return "called"
	}
	name, _, _ := strings.Cut(entry, " ")
	at, is := m.before.queue.Fields["~"+name]
	left := numeral(at) - 1<<52 - m.w.now
	waited := m.w.now - numeral(m.before.queue.Fields[entry])
	switch {
	case !is || left < -1_000_000:
		return "gone"
	case left > min(5000+max(0, waited)/8/int64(len(queue)), 100_000):
		return "passed over"
	}
	return "called"
}

// queueWith returns the queue after an operation has joined it.
func (m *semaphoreModel) queueWith(entry, ticket string) []string {
	since := map[string]int64{}
	for each, score := range m.before.queue.Fields {
		since[each] = numeral(score)
	}
	known, there := since[entry]
	switch {
	case ticket == "" && !there:
		since[entry] = m.w.now
	case ticket != "" && (!there || numeral(ticket) < known):
		since[entry] = numeral(ticket)
	}
	return slices.SortedFunc(maps.Keys(since), func(a, b string) int {
		return cmp.Or(cmp.Compare(since[a], since[b]), strings.Compare(a, b))
	})
}

// isBarred reports whether an entry holds up the others.
func (m *semaphoreModel) isBarred(entry string) bool {
	ms, of, _ := strings.Cut(m.before.bar.Text, " ")
	return of == entry && m.before.bar.TTL-(m.w.ms()-m.before.at) > numeral(ms)
}

// patience makes a client try for one permit again and again while others wait. If one is always
// available, the client gets it in the end.
func (m *semaphoreModel) patience(d dice) {
	s := m.client(d)
	if !s.idle() {
		return
	}
	steady := m.w.steady
	m.w.steady = true
	defer func() { m.w.steady = steady }()
	for range 200 {
		m.w.advance(1000)
		m.check()
		if !m.set || m.free < 1 {
			return
		}
		for _, other := range m.clients {
			if other.wanted != nil {
				m.attempt(other, 0)
				m.check()
			}
		}
		free := m.free
		if free < 1 {
			return
		}
		m.want(s, 1, false, 0)
		if m.free < free {
			return
		}
	}
	m.w.fail("%s wants 1 permit, and for 200 s gets none of %d", s.name, m.free)
}

func (m *semaphoreModel) retryOne(s *semaphoreClient, fate int) {
	if s.settle != nil {
		s.retry(fate)
	}
}

// damage deletes keys.
func (m *semaphoreModel) damage(d dice) {
	queue := m.keys.Names.SemQueueKeys()
	switch i := d[0] % 6; i {
	case 0:
		m.w.say("the permits are deleted")
		m.w.Must("DEL", m.keys.Names.Key)
		m.set, m.free, m.ends = false, 0, 0
	case 1:
		m.w.say("the total is deleted")
		m.w.Must("DEL", m.keys.SecondKey)
		m.total, m.knows = unknown, 0
	case 2:
		m.w.say("all is deleted")
		m.w.Must("FLUSHALL")
		m.forgetAll()
		clear(m.notes.notes)
	default:
		m.w.say("%s is deleted", queue[i-3])
		m.w.Must("DEL", queue[i-3])
	}
}

func (m *semaphoreModel) javaActs(d dice) {
	n := int64(1 + d[1]%3)
	switch d[0] % 8 {
	case 0:
		m.w.java("drains", javaDrain, m.keys.Names.Key)
		m.free = 0
		if m.set {
			m.ends = 0
		}
	case 1:
		if n = int64(1 + d[1]%10); m.w.java(fmt.Sprintf("sets %d permits", n), javaSetOnce, m.keys.Names.Key, n) == int64(1) {
			m.set, m.free, m.ends = true, n, 0
		}
	case 2:
		m.w.java(fmt.Sprintf("adds %d", n), javaAdd, m.keys.Names.Key, n)
		m.set, m.free, m.ends = true, m.free+n, 0
	case 3, 4:
		m.w.java(fmt.Sprintf("releases %d", n), javaRelease, m.keys.Names.Key, n)
		m.set, m.free = true, m.free+n
	default:
		if m.w.java(fmt.Sprintf("tries to acquire %d", n), javaAcquire, m.keys.Names.Key, n) == int64(1) {
			m.free -= n
		}
	}
}

func (m *semaphoreModel) check() {
	e := m.w.State(m.keys.Names.Key)[0]
	if m.set != (e.Kind == "string") {
		m.w.fail("the semaphore is there: %v, and has to be: %v", e.Kind != "none", m.set)
	}
	if m.set && numeral(e.Text) != m.free {
		m.w.fail("there are %s permits, and have to be %d", e.Text, m.free)
	}
	m.before = m.state()
	if m.set && e.TTL != max(m.ends-m.w.ms(), -1) && !(m.ends == 0 && e.TTL == -1) {
		m.w.fail("the semaphore lives for %d ms, and has to for %d", e.TTL, m.ends-m.w.ms())
	}
}

// serveAll makes more permits available than anybody wants. Everybody who waits gets some.
func (m *semaphoreModel) serveAll() {
	m.w.java("releases 1000", javaRelease, m.keys.Names.Key, 1000)
	m.set, m.free = true, m.free+1000
	m.check()
	waits := func(s *semaphoreClient) bool { return s.wanted != nil }
	for round := 0; slices.ContainsFunc(m.clients, waits); round++ {
		for _, s := range m.clients {
			if waits(s) {
				m.attempt(s, 0)
				m.check()
			}
		}
		m.w.advance(1000)
		if m.check(); round > 200 {
			m.w.fail("somebody waits, and there are %d: %v", m.free, m.before.queue.List)
		}
	}
}

func (m *semaphoreModel) finish() {
	m.serveAll()
	for _, s := range m.clients {
		if s.wanted != nil {
			m.conclude(s)
		}
		m.retryOne(s, 0)
	}
	for len(m.w.late) > 0 {
		m.w.deliver(0)
	}
	m.w.advance(3600_000)
	m.check()
	m.w.nothingLeft(m.keys.Names.Key, m.keys.SecondKey, m.keys.KindKey())
}
