package model

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/primitive/latch"
)

func init() { models["latch"] = newLatchModel }

// latchModel is the latch: each of its rounds opens, expires or is deleted, and every caller that
// awaits a round learns which.
type latchModel struct {
	w       *world
	notes   opReference
	clients []*latchClient
	keys    *latch.Latch

	rounds  []*latchRound            // all rounds so far, in order
	current *latchRound              // the closed round, or nil
	known   map[string][]*latchRound // by number; several if Redisson has hidden the change
	newest  string                   // the last number
	counted map[string]bool          // participants, by number and name
	over    map[string]int64         // ms at which a round ends, as reported by a look
	damages int                      // how often keys were deleted
}

// moment says when a client looked.
type moment struct{ rounds, damages int }

// latchRound is a round as it really was.
type latchRound struct {
	java     bool   // Redisson began it
	left     int64  // the count that remains
	ends     int64  // ms, 0: never
	how      string // open, expired or deleted, once it is over
	byJava   bool   // Redisson ended it
	seen     int64  // ms at which this library saw that it was over, 0: not yet
	replaced bool   // the next one began before that
}

// latchClient performs one operation at a time, and awaits a round.
type latchClient struct {
	operator

	latch latch.Latch
	round string // the round that it awaits, or ''
}

func newLatchModel(w *world) model {
	m := &latchModel{w: w, notes: opReference{w, map[string]opNote{}}, known: map[string][]*latchRound{},
		counted: map[string]bool{}, over: map[string]int64{}}
	for i, c := range w.clients {
		l := &latchClient{latch: latch.New(c, modelName)}
		l.operator = operator{w: w, name: fmt.Sprintf("G%d", i+1), client: c}
		m.clients = append(m.clients, l)
	}
	m.keys = &m.clients[0].latch
	w.elapsed = m.lapse
	return m
}

func (m *latchModel) actions() []modelAction {
	return []modelAction{
		{"set", 12, m.set},
		{"count", 30, m.countDown},
		{"delete", 3, m.remove},
		{"await", 25, m.await},
		{"retry", 15, func(d dice) { m.retryOne(m.client(d), d.fate()) }},
		{"late", 10, func(d dice) { m.w.deliver(d[0]) }},
		{"wait", 14, func(d dice) { m.w.advance(modelPause(d)) }},
		{"brink", 5, func(dice) { m.brink() }},
		{"crash", 2, func(d dice) { c := m.client(d); c.settle, c.round = nil, "" }},
		{"damage", 1, m.damage},
		{"java", 20, m.javaActs},
		{"foreign", 3, m.foreign},
	}
}

func (m *latchModel) client(d dice) *latchClient { return m.clients[d[0]%len(m.clients)] }

// brink advances the clock to the last ms of the round.
func (m *latchModel) brink() {
	if m.current != nil && m.current.ends > m.w.ms() {
		m.w.advance(m.current.ends - m.w.ms())
	}
}

// lapse ends the round if its time is over.
func (m *latchModel) lapse() {
	if m.current != nil && m.current.ends > 0 && m.w.expired(m.current.ends) {
		m.end("expired", false)
	}
}

func (m *latchModel) end(how string, byJava bool) {
	m.current.how, m.current.byJava = how, byJava
	m.current = nil
}

func (m *latchModel) begin(r *latchRound) {
	if n := len(m.rounds); n > 0 && m.rounds[n-1].seen == 0 {
		m.rounds[n-1].replaced = true
	}
	m.rounds, m.current = append(m.rounds, r), r
}

// observe is the beginning of every script of this library: it sees what Redisson and time have
// done.
func (m *latchModel) observe() {
	if m.is(m.newest) {
		return // nothing has changed, or Redisson has hidden it
	}
	for _, r := range m.rounds {
		if r.how != "" && r.seen == 0 {
			r.seen = m.w.ms()
		}
	}
}

// is reports whether a number is that of the closed round. It may also be that of a round of
// Redisson that began unseen after a round that Redisson had ended.
func (m *latchModel) is(number string) bool {
	rounds := m.known[number]
	if m.current == nil || len(rounds) == 0 {
		return false
	}
	if slices.Contains(rounds, m.current) {
		return true
	}
	from := slices.Index(m.rounds, rounds[len(rounds)-1])
	hidden := m.rounds[from:]
	for i, r := range hidden {
		if i < len(hidden)-1 && (!r.byJava || r.ends > 0 || r.seen > 0) || i > 0 && !r.java {
			return false
		}
	}
	if number != m.newest {
		return false
	}
	m.known[number] = append(rounds, hidden[1:]...)
	return true
}

// checkRound checks what a client learns about a round that is over: whether it opened.
func (m *latchModel) checkRound(who, number string, opened bool) {
	rounds := m.known[number]
	if len(rounds) == 0 {
		return // damage has made it unknown
	}
	for _, r := range rounds {
		// A script knows only that Redisson ended the round. It does not even know that if the time
		// of the round was over before anybody looked.
		open := r.how == "open" || r.how == "deleted" && r.byJava
		gone := r.how == "expired" || r.how == "deleted" && !r.byJava
		unsure := r.byJava && r.ends > 0 && (r.seen == 0 || r.seen >= r.ends || r.replaced)
		if opened && open || !opened && gone || unsure {
			return
		}
	}
	last := rounds[len(rounds)-1]
	if !opened && len(m.rounds)-slices.Index(m.rounds, last) > 8 {
		return // forgotten
	}
	m.w.fail("%s is told that round %s has opened: %v, but it is %q", who, number, opened, last.how)
}

// set begins a round.
func (m *latchModel) set(d dice) {
	c, n := m.client(d), 1+d[1]%4
	if c.settle != nil {
		return
	}
	var options []request.Setting
	ms := []int64{0, 0, 1000, 500, 10}[d[2]%5]
	what := fmt.Sprintf("sets the count %d", n)
	if ms > 0 {
		options = append(options, request.Setting{Kind: request.TTL, D: fromMS(ms)})
		what += fmt.Sprintf(" for %d ms", ms)
	}
	m.perform(c, what, false, func() { _, _ = c.latch.TrySetCount(context.Background(), n, options) }, d.fate())
}

func (m *latchModel) countDown(d dice) {
	c, n := m.client(d), 1+d[1]%2
	if c.settle != nil {
		return
	}
	if d[2]%2 == 0 {
		who := []string{"A", "B", "C"}[d[2]%3]
		m.perform(c, "counts as "+who, true, func() { _, _ = c.latch.CountDownAs(context.Background(), who) }, d.fate())
		return
	}
	m.perform(c, fmt.Sprintf("counts %d", n), true, func() { _, _ = c.latch.CountDown(context.Background(), n, "") }, d.fate())
}

func (m *latchModel) remove(d dice) {
	if c := m.client(d); c.settle == nil {
		m.perform(c, "deletes", false, func() { _, _ = c.latch.Delete(context.Background()) }, d.fate())
	}
}

// perform sends an operation. The look that precedes it is never lost.
func (m *latchModel) perform(c *latchClient, what string, light bool, send func(), fate int) {
	m.look(c, "", false)
	at := moment{len(m.rounds), m.damages}
	c.execute = func(o modelOperation) any { return m.executed(c, o, at) }
	c.perform(what, repeated, light, send, fate)
}

// executed is the reference of the scripts that change the latch.
func (m *latchModel) executed(c *latchClient, o modelOperation, at moment) any {
	return m.notes.once(o, func() any {
		m.observe()
		switch o.script {
		case "latch/set":
			return m.begun(o, at)
		case "latch/count":
			return m.down(c, o)
		case "latch/delete":
			return m.removed(c, o, at)
		}
		panic("model: no reference of " + o.script)
	})
}

// begun checks the reply to a command that begins a round. The command names the last round that
// its client saw, and does nothing if another has begun since.
func (m *latchModel) begun(o modelOperation, at moment) any {
	return judged(func(reply any) {
		since := m.rounds[at.rounds:]
		unseen := func(r *latchRound) bool { return r.java && r.byJava }
		switch {
		case outOfMemory(reply):
			return
		case reply == int64(1) && m.current != nil:
			m.w.fail("a round begins, and one is closed")
		case at.damages != m.damages:
		case reply == int64(1) && !slices.ContainsFunc(since, func(r *latchRound) bool { return !unseen(r) }):
		case reply == int64(0) && (m.current != nil || len(since) > 0):
		default:
			m.w.fail("a round begins: %s, and %d have begun since its client looked", show(reply), len(since))
		}
		m.notes.remember(o, reply)
		if reply == int64(0) {
			return
		}
		r := &latchRound{left: numeral(o.arg(2))}
		if o.arg(3) != "" {
			r.ends = m.w.ms() + numeral(o.arg(3))
		}
		m.begin(r)
	})
}

func (m *latchModel) down(c *latchClient, o modelOperation) any {
	number, n, who := o.arg(1), numeral(o.arg(2)), o.arg(3)
	if !m.is(number) {
		return m.past(c, o, number)
	}
	if who != "" && m.counted[number+who] {
		return m.notes.done(o, m.current.left)
	}
	m.counted[number+who] = true
	m.current.left = max(0, m.current.left-n)
	left := m.current.left
	if left == 0 {
		m.end("open", false)
	}
	return m.notes.done(o, left)
}

// past checks the reply to a count in a round that is over.
func (m *latchModel) past(c *latchClient, o modelOperation, number string) any {
	return judged(func(reply any) {
		m.checkRound(c.name, number, reply == int64(0))
		m.notes.remember(o, reply)
	})
}

func (m *latchModel) removed(c *latchClient, o modelOperation, at moment) any {
	number := o.arg(1)
	if m.is(number) {
		m.end("deleted", false)
		return m.notes.done(o, int64(1))
	}
	return judged(func(reply any) {
		switch {
		case m.current != nil && reply != int64(-1):
			m.w.fail("%s deletes a later round than the one that it saw", c.name)
		case reply == int64(-1) && at == moment{len(m.rounds), m.damages}:
			m.w.fail("%s deletes nothing, and nothing has begun since it looked", c.name)
		case reply != int64(-1):
			m.notes.remember(o, reply)
		}
	})
}

// look runs lua/latch/look.lua and checks that what it reports is true.
func (m *latchModel) look(c *latchClient, number string, following bool) latch.View {
	m.w.tick()
	v, _, err := c.latch.Look(context.Background(), number, following)
	if err != nil {
		m.w.fail("%s looks: %v", c.name, err)
	}
	m.observe()
	m.w.say("%s looks at %q -> %s %s, %d left, %v", c.name, number, v.What, v.Round, v.Left, v.Ends)
	switch v.What {
	case latch.Closed:
		m.closed(c, v)
	case latch.Open:
		m.checkRound(c.name, v.Round, true)
	case latch.Gone, latch.Expired:
		m.checkRound(c.name, v.Round, false)
	}
	if number == "" && m.current != nil && v.What != latch.Closed {
		m.w.fail("%s sees no closed latch, and it is closed", c.name)
	}
	return v
}

// closed checks a look at a closed round.
func (m *latchModel) closed(c *latchClient, v latch.View) {
	if m.current == nil {
		m.w.fail("%s sees a closed latch, and it is not", c.name)
	}
	if len(m.known[v.Round]) == 0 {
		if v.Round <= m.newest {
			m.w.fail("round %s begins after %s", v.Round, m.newest)
		}
		m.known[v.Round], m.newest = []*latchRound{m.current}, v.Round
	}
	if !m.is(v.Round) {
		m.w.fail("%s takes the round that is closed for %s, which is over", c.name, v.Round)
	}
	if int64(v.Left) != m.current.left {
		m.w.fail("%s sees %d left, and it is %d", c.name, v.Left, m.current.left)
	}
	if over := m.over[v.Round]; over > 0 && m.w.ms() > over {
		m.w.fail("%s is told again that round %s is closed, which was to be over by then: it would ask without end", c.name, v.Round)
	}
	if v.Ends >= 0 {
		m.over[v.Round] = m.w.ms() + v.Ends.Milliseconds() + 1
	}
}

// await makes one query of a client that awaits a round.
func (m *latchModel) await(d dice) {
	c := m.client(d)
	v := m.look(c, c.round, false)
	if c.round == "" && v.What == latch.Closed {
		c.round = v.Round
	} else if v.What != latch.Closed {
		if c.round != "" {
			m.checkRound(c.name, c.round, v.What == latch.Open)
		}
		c.round = ""
	}
}

func (m *latchModel) retryOne(c *latchClient, fate int) {
	if c.settle != nil {
		c.retry(fate)
	}
}

func (m *latchModel) javaActs(d dice) {
	switch n := int64(1 + d[1]%3); {
	case d[0]%8 < 3:
		if m.w.java(fmt.Sprintf("sets the count %d", n), javaSetOnce, m.keys.Names.Key, n) == int64(1) {
			m.begin(&latchRound{java: true, left: n})
		}
	case d[0]%8 < 7:
		m.w.java("counts", javaCountDown, m.keys.Names.Key)
		if m.current != nil {
			if m.current.left--; m.current.left == 0 {
				m.end("open", true)
			}
		}
	default:
		m.w.java("deletes", javaDelete, m.keys.Names.Key)
		if m.current != nil {
			m.end("deleted", true)
		}
	}
}

// damage deletes keys. Without the state, nobody knows the earlier rounds.
func (m *latchModel) damage(d dice) {
	m.damages++
	if d[0]%2 == 0 {
		m.w.say("the state is deleted")
		m.w.Must("DEL", m.keys.State, m.keys.Done)
	} else {
		m.w.say("all is deleted")
		m.w.Must("FLUSHALL")
		clear(m.notes.notes)
		if m.current != nil {
			m.end("deleted", true)
		}
	}
	clear(m.known)
	clear(m.over)
	clear(m.counted)
	m.newest = strconv.FormatInt(m.w.now-1, 10)
}

func (m *latchModel) foreign(d dice) {
	m.look(m.client(d), "", false) // sees what time has done
	m.w.intrude(d, m.keys.Names.Key, "counter")
}

func (m *latchModel) check() {
	e := m.w.State(m.keys.Names.Key)[0]
	switch {
	case m.current == nil && e.Kind != "none":
		m.w.fail("the latch is closed, and has to be open")
	case m.current == nil:
	case e.Text != strconv.FormatInt(m.current.left, 10):
		m.w.fail("%q are left, and have to be %d", e.Text, m.current.left)
	case m.current.ends == 0 && e.TTL != -1, m.current.ends > 0 && e.TTL != m.current.ends-m.w.ms():
		m.w.fail("the round ends after %d ms, and has to at %d", e.TTL, m.current.ends-m.w.ms())
	}
}

func (m *latchModel) finish() {
	for _, c := range m.clients {
		m.retryOne(c, 0)
	}
	for len(m.w.late) > 0 {
		m.w.deliver(0)
	}
	m.perform(m.clients[0], "deletes", false, func() { _, _ = m.keys.Delete(context.Background()) }, 0)
	m.check()
	m.w.advance(time.Hour.Milliseconds())
	m.w.nothingLeft()
}
