package model

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/primitive/barrier"
	"github.com/latchkey-go/latchkey/internal/testredis"
)

func init() { models["barrier"] = newBarrierModel }

// barrierModel is the barrier: its generations complete or break, and its parties learn which.
type barrierModel struct {
	w       *world
	notes   opReference
	parties []*barrierParty
	keys    *barrier.Barrier

	last    int64                 // number of the last generation, 0 if the server knows none
	n       int                   // parties of the barrier, 0 if not fixed
	open    *barrierGeneration    // the generation in which parties wait, or nil
	waiting map[string]int64      // ms at which the lease of each party ends
	done    map[string]bool       // parties whose function has returned
	past    []*barrierGeneration  // the generations that the server remembers
	all     []*barrierGeneration  // all generations so far
	ends    map[string]int64      // ms at which a key expires
	placed  map[int64]map[int]any // who was let through, by generation and index
}

// barrierGeneration is a generation as it really was.
type barrierGeneration struct {
	number  int64
	stage   string // of a Do, or ""
	n       int
	arrived int
	how     string
	who     string
}

// barrierParty performs one Await or Do after another.
type barrierParty struct {
	m       *barrierModel
	name    string
	barrier *barrier.Barrier
	await   *barrier.Party // or nil
	leaving *message       // or nil
	arrival *message       // until it is answered; the second of a Do too
}

const modelBarrierLease = 5000 // ms

// newBarrier returns the barrier of a client.
func newBarrier(c *core.Parts, parties int) *barrier.Barrier {
	b := barrier.New(c, modelName, parties)
	return &b
}

func newBarrierModel(w *world) model {
	m := &barrierModel{w: w, notes: opReference{w, map[string]opNote{}}, ends: map[string]int64{}, waiting: map[string]int64{}, done: map[string]bool{}, placed: map[int64]map[int]any{}}
	for i := range 5 {
		c := w.clients[i%len(w.clients)]
		m.parties = append(m.parties, &barrierParty{m: m, name: fmt.Sprintf("P%d", i+1), barrier: newBarrier(c, 3)})
	}
	m.keys = m.parties[0].barrier
	w.elapsed = m.lapse
	return m
}

func (m *barrierModel) actions() []modelAction {
	return []modelAction{
		{"arrive", 40, func(d dice) { m.party(d).arrive(m.stage(d), 3-d[1]%20/19, d.fate()) }},
		{"return", 25, func(d dice) { m.party(d).comeBack(d.fate()) }},
		{"retry", 20, func(d dice) { m.party(d).retry(d.fate()) }},
		{"look", 25, func(d dice) { m.party(d).look(d.fate()) }},
		{"renew", 15, func(d dice) { m.renew(d) }},
		{"leave", 6, func(d dice) {
			m.party(d).leave([]string{barrier.Left, barrier.Timeout, barrier.Closed}[d[1]%3], d.fate())
		}},
		{"crash", 4, func(d dice) { m.party(d).forget() }},
		{"reset", 3, m.reset},
		{"late", 12, func(d dice) { m.w.deliver(d[0]) }},
		{"wait", 15, func(d dice) { m.w.advance(modelPause(d)) }},
		{"damage", 1, m.damage},
		{"foreign", 2, func(d dice) { m.w.intrude(d, m.keys.Names.Key, "barrier") }},
	}
}

func (m *barrierModel) party(d dice) *barrierParty { return m.parties[d[0]%len(m.parties)] }

// lapse removes keys whose time is over.
func (m *barrierModel) lapse() {
	for key, at := range m.ends {
		if m.w.expired(at) {
			m.forget(key)
		}
	}
}

// forget updates the reference after the loss of a key.
func (m *barrierModel) forget(key string) {
	delete(m.ends, key)
	switch key {
	case m.keys.Names.Key:
		m.last, m.n, m.open = 0, 0, nil
	case m.keys.Past:
		m.past = nil
	default:
		m.nobody()
	}
}

// nobody forgets all parties.
func (m *barrierModel) nobody() {
	clear(m.waiting)
	clear(m.done)
}

func (m *barrierModel) outlive(key string) {
	m.ends[key] = max(m.ends[key], m.w.ms()+600_000+modelBarrierLease)
}

// end ends the generation.
func (m *barrierModel) end(how, who string) {
	m.record(how, who)
	m.open = nil
	m.nobody()
	m.ends[m.keys.Names.Key] = m.w.ms() + 600_000
	delete(m.ends, m.keys.Waiting)
}

// record notes how the generation ended.
func (m *barrierModel) record(how, who string) {
	m.open.how, m.open.who = how, who
	m.past = append(m.past, m.open)
	m.ends[m.keys.Past] = m.w.ms() + 600_000
}

// sync is the beginning of most scripts.
func (m *barrierModel) sync() {
	if m.open == nil {
		return
	}
	if len(m.waiting)+len(m.done) != m.open.arrived+m.open.inside() {
		m.end("lost", "")
		return
	}
	if first := m.first(); m.waiting[first] <= m.w.ms() {
		m.end(barrier.Crashed, first)
	}
}

// first returns the party whose lease ends first.
func (m *barrierModel) first() string {
	names := slices.Sorted(maps.Keys(m.waiting))
	slices.SortStableFunc(names, func(a, b string) int { return int(m.waiting[a] - m.waiting[b]) })
	return names[0]
}

func (m *barrierModel) untilFirstEnd() int64 { return max(0, m.waiting[m.first()]-m.w.ms()) }

// report returns what a script reports about a generation.
func (m *barrierModel) report(number int64, index string) any {
	how, who, ms := "lost", "", int64(-1)
	if m.open != nil && m.open.number == number {
		how, ms = barrier.Waiting, m.untilFirstEnd()
	}
	for _, g := range m.past {
		if g.number == number {
			how, who = g.how, g.who
			if m.runs() && who == strconv.FormatInt(m.last, 10) {
				ms = m.untilFirstEnd()
			}
		}
	}
	return []any{how, who, strconv.FormatInt(number, 10), index, strconv.FormatInt(ms, 10)}
}

// arrived is the reference of lua/barrier/arrive.lua.
func (m *barrierModel) arrived(words []string) any {
	o := m.w.operationOf(words)
	party, n := o.arg(1), int(numeral(o.arg(2)))
	before, past := m.notes.recall(o)
	if past {
		return testredis.ReplyError("LATCHKEY_PAST")
	}
	m.sync()
	seen := numeral(o.arg(6))
	if before != nil {
		at := before.([2]int64)
		if m.open != nil {
			if ms, waits := m.waiting[party]; waits {
				m.waiting[party] = max(ms, m.w.ms()+modelBarrierLease)
			}
		}
		return m.report(at[0], strconv.FormatInt(at[1], 10))
	}
	if m.n > 0 && m.n != n {
		return testredis.ReplyError("LATCHKEY_PARTIES")
	}
	if m.open != nil && m.last <= seen {
		m.end("lost", "")
	}
	stage := o.arg(7)
	switch {
	case m.runs():
		return []any{barrier.Busy, "", strconv.FormatInt(m.last, 10), "", strconv.FormatInt(m.untilFirstEnd(), 10)}
	case m.open != nil && m.open.stage != stage:
		return testredis.ReplyError("LATCHKEY_MIXED")
	case m.open == nil:
		m.n = n
		m.begin(stage, max(m.w.ms()*1000, m.last+1, seen+1))
		m.nobody()
		delete(m.ends, m.keys.Waiting)
	}
	g := m.open
	index := g.arrived
	m.notes.remember(o, [2]int64{g.number, int64(index)})
	g.arrived++
	switch {
	case g.arrived < n:
		m.join(party)
	case stage == barrier.Enter:
		m.run(party)
	default:
		m.end(barrier.Done, "")
	}
	return m.report(g.number, strconv.Itoa(index))
}

// begin begins a generation.
func (m *barrierModel) begin(stage string, number int64) {
	m.last = number
	m.open = &barrierGeneration{number: number, stage: stage, n: m.n}
	m.all = append(m.all, m.open)
}

// join adds a party to the generation.
func (m *barrierModel) join(party string) {
	m.waiting[party] = m.w.ms() + modelBarrierLease
	m.outlive(m.keys.Names.Key)
	m.outlive(m.keys.Waiting)
}

// looked is the reference of lua/barrier/look.lua.
func (m *barrierModel) looked(number int64, party string, counted bool) any {
	m.sync()
	if m.open != nil && m.open.number == number && (m.waiting[party] == 0 || counted && !m.done[party]) {
		m.end("lost", "")
	}
	return m.report(number, "")
}

// left is the reference of lua/barrier/leave.lua.
func (m *barrierModel) left(words []string) any {
	keys, _ := strconv.Atoi(words[2])
	args := words[3+keys:]
	party, number, index, why := args[0], numeral(args[1]), "", args[3]
	if args[1] == "" {
		o := modelOperation{note: words[6]}
		o.number, _ = strconv.ParseUint(args[2], 10, 64)
		before, past := m.notes.recall(o)
		if before == nil {
			if !past {
				m.notes.remember(o, nil)
			}
			return []any{why, party, "0", "0", "-1"}
		}
		at := before.([2]int64)
		number, index = at[0], strconv.FormatInt(at[1], 10)
	}
	m.sync()
	if m.runs() && m.waiting[party] > 0 {
		number = m.last
	}
	if m.open != nil && m.open.number == number {
		if _, waits := m.waiting[party]; waits {
			if args[1] != "" {
				index = strconv.Itoa(m.open.arrived)
			}
			m.end(why, party)
		}
	}
	return m.report(number, index)
}

// message returns a command, and compares each of its executions with the reference.
func (p *barrierParty) message(what string, c script.Call, light bool, reference func(words []string) any) *message {
	words := p.m.w.words(c)
	m := &message{what: p.name + " " + what, words: words, light: light, silent: func() {}, answered: func(any) {}}
	m.seen = func(reply any) {
		if !outOfMemory(reply) {
			p.m.expect(m.what, reply, reference(words))
		}
	}
	return m
}

func (m *barrierModel) expect(what string, reply, want any) {
	if code, is := want.(testredis.ReplyError); is && testredis.HasCode(reply, string(code)) {
		return
	}
	if fmt.Sprint(reply) != fmt.Sprint(want) {
		m.w.fail("%s gets %v, and has to get %v", what, show(reply), show(want))
	}
}

func (p *barrierParty) arrive(stage string, n, fate int) {
	if p.await != nil {
		return
	}
	p.barrier.Parties = n
	p.await = p.barrier.NewParty("await", stage, &request.Request{Lease: fromMS(modelBarrierLease)})
	p.await.Ownership.Protocol = barrier.Protocol{Of: p.barrier}
	await := p.await
	p.arrival = p.message("arrives", p.await.Arriving(), false, p.m.arrived)
	p.arrival.answered = func(reply any) {
		if p.await != await || isBusy(reply) {
			return
		}
		p.await.Known = !isReplyError(reply)
		p.heard(reply)
	}
	p.m.w.send(p.arrival, fate)
}

// heard gives the party the outcome of its generation.
func (p *barrierParty) heard(reply any) {
	if isReplyError(reply) { // it is not counted
		p.over()
		return
	}
	words := reply.([]any)
	v := barrier.View{How: words[0].(string), Who: words[1].(string), Generation: words[2].(string), Index: words[3].(string)}
	if v.Index == "" {
		v.Index = p.await.View.Index
	}
	p.await.View = v
	p.arrival = nil
	if v.How == barrier.Done {
		p.m.goesOn(p, v)
	}
	switch {
	case v.How == barrier.Waiting:
	case p.await.GoesOn():
		p.enter(numeral(v.Generation))
	default:
		p.barrier.GenerationEnded(numeral(v.Generation))
		p.over()
	}
}

// goesOn checks that all have arrived when a party goes on, and that no other has its index.
func (m *barrierModel) goesOn(p *barrierParty, v barrier.View) {
	number, index := numeral(v.Generation), int(numeral(v.Index))
	for _, g := range m.all {
		if g.number == number && g.arrived != g.n {
			m.w.fail("%s goes on, and %d of %d have arrived", p.name, g.arrived, g.n)
		}
	}
	if v.Index == "" { // of a Do that is over
		return
	}
	if m.placed[number] == nil {
		m.placed[number] = map[int]any{}
	}
	if other := m.placed[number][index]; other != nil {
		m.w.fail("%s has the place %d of %s", p.name, index, other)
	}
	m.placed[number][index] = p.name
}

func (p *barrierParty) over() {
	if p.await.Stage != barrier.Run {
		p.await.Sent.Done()
	}
	p.forget()
}

// forget is a crash, or the end of an Await.
func (p *barrierParty) forget() { p.await, p.arrival, p.leaving = nil, nil, nil }

func (p *barrierParty) retry(fate int) {
	switch {
	case p.leaving != nil:
		p.m.w.send(p.leaving, fate)
	case p.arrival != nil:
		p.m.w.send(p.arrival, fate)
	}
}

func (p *barrierParty) waits() bool { return p.await != nil && p.await.Known && p.leaving == nil }

func (p *barrierParty) look(fate int) {
	if !p.waits() {
		return
	}
	number, wire, counted := numeral(p.await.View.Generation), p.await.Ownership.Wire, p.await.Counted
	m := p.message("looks", p.await.Looking(), true, func([]string) any { return p.m.looked(number, wire, counted) })
	m.answered = p.heard
	p.m.w.send(m, fate)
}

func (p *barrierParty) leave(why string, fate int) {
	if p.await == nil || p.leaving != nil {
		return
	}
	await := p.await
	p.leaving = p.message("leaves, "+why, p.await.Leaving(why), true, p.m.left)
	p.leaving.answered = func(reply any) {
		if p.await == await {
			p.heard(reply)
		}
	}
	p.m.w.send(p.leaving, fate)
}

// renew renews the waiting parties of one client with one command.
func (m *barrierModel) renew(d dice) {
	first := m.party(d)
	var c script.Call
	var names []string
	for _, p := range m.parties {
		if p.barrier.Client == first.barrier.Client && p.waits() {
			c.Add(barrier.Protocol{Of: p.barrier}.RenewalCall(p.await.Ownership, fromMS(modelBarrierLease)))
			names = append(names, p.await.Ownership.Wire)
		}
	}
	if names == nil {
		return
	}
	m.w.send(first.message("and others are renewed", c, true, func([]string) any { return m.renewed(names) }), d.fate())
}

// renewed is the reference of lua/barrier/renew.lua.
func (m *barrierModel) renewed(names []string) any {
	reply := make([]any, len(names))
	for i, name := range names {
		reply[i] = int64(0)
		if ms, waits := m.waiting[name]; waits && ms > m.w.ms() {
			m.waiting[name] = m.w.ms() + modelBarrierLease
			if m.last > 0 {
				m.outlive(m.keys.Names.Key)
			}
			m.outlive(m.keys.Waiting)
			reply[i] = int64(1)
		}
	}
	return reply
}

func (m *barrierModel) reset(d dice) {
	p, number := m.party(d), m.last
	c := script.NewCall(script.BarrierReset, p.barrier.All(), strconv.FormatInt(number, 10), p.barrier.Client.Publish, p.barrier.Names.Channel)
	m.w.send(p.message("resets", c, true, func([]string) any {
		m.sync()
		if m.last != number {
			return int64(0)
		}
		if m.open != nil {
			m.end(barrier.WasReset, "")
		}
		m.n = 0
		return int64(1)
	}), d.fate())
}

// damage deletes keys.
func (m *barrierModel) damage(d dice) {
	keys := m.keys.All()
	if d[0]%4 < 3 {
		m.w.say("%s is deleted", keys[d[0]%4])
		m.w.Must("DEL", keys[d[0]%4])
		m.forget(keys[d[0]%4])
	} else {
		m.w.say("all is deleted")
		m.w.Must("FLUSHALL")
		for _, key := range keys {
			m.forget(key)
		}
		clear(m.notes.notes)
	}
	m.w.advance(1) // a number of this ms may be in use
}

func (m *barrierModel) check() {
	e := m.w.State(m.keys.All()...)
	waiting := 0
	if m.open != nil {
		waiting = m.open.arrived
	}
	if e[0].Count("arrived") != waiting || e[0].Count("parties") != m.n || numeral(e[0].Fields["generation"]) != m.last {
		m.w.fail("the barrier is %v, and has to have %d of %d in generation %d", e[0], waiting, m.n, m.last)
	}
	if stage := e[0].Fields["stage"]; m.open == nil && stage != "" || m.open != nil && stage != m.open.stage {
		m.w.fail("the stage is %q", stage)
	}
	for name := range m.done {
		if e[1].Fields[barrier.Returned+name] != "inf" {
			m.w.fail("%s does not count as returned in %v", name, e[1].Fields)
		}
	}
	for name, ms := range m.waiting {
		if numeral(e[1].Fields[name]) != ms {
			m.w.fail("the lease of %s ends at %s, and has to at %d", name, e[1].Fields[name], ms)
		}
	}
	if len(e[1].Fields) != len(m.waiting)+len(m.done) {
		m.w.fail("%v wait, and %v have to, %v having returned", e[1].Fields, m.waiting, m.done)
	}
	for i, key := range m.keys.All() {
		if at := m.ends[key]; at > 0 && e[i].TTL != at-m.w.ms() {
			m.w.fail("%s lives for %d ms, and has to for %d", key, e[i].TTL, at-m.w.ms())
		}
	}
}

func (m *barrierModel) finish() {
	for _, p := range m.parties {
		p.retry(0)
		p.look(0)
		p.leave(barrier.Left, 0)
	}
	for len(m.w.late) > 0 {
		m.w.deliver(0)
	}
	m.check()
	m.w.advance(time.Hour.Milliseconds())
	m.w.nothingLeft()
}
