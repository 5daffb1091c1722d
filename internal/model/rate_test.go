package model

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/primitive/rate"
	"github.com/latchkey-go/latchkey/internal/testredis"
)

func init() { models["rate"] = newRateModel }

// rateModel is the rate limiter: in no window of time do more requests go than the burst and the
// rate allow, and what is given back is given back once. The reference computes with fractions.
type rateModel struct {
	w       *world
	notes   opReference
	clients []*rateClient
	key     string

	there bool
	set   bool
	rate  keyspace.Rate
	level *big.Rat
	at    int64 // µs at which that was so
	place int64

	steady bool        // the rate has not changed, and nothing was lost
	going  []rateGrant // requests that have gone or will go, while it is steady
}

// rateGrant is a number of requests that go at one time.
type rateGrant struct{ n, at, place int64 }

// rateClient performs one operation at a time, and has reservations.
type rateClient struct {
	operator

	limiter  rate.Limiter
	reserved []rateGrant
}

var (
	ownRate   = keyspace.Rate{N: 7, Per: 2 * time.Second, Burst: 4}
	otherRate = keyspace.Rate{N: 5, Per: 10 * time.Second, Burst: 6}
)

func newRateModel(w *world) model {
	m := &rateModel{w: w, notes: opReference{w, map[string]opNote{}}, level: new(big.Rat), steady: true}
	for i, c := range w.clients {
		own := ownRate
		if i == 2 {
			own = otherRate
		}
		r := &rateClient{limiter: rate.New(c, modelName, own)}
		r.operator = operator{w: w, name: fmt.Sprintf("G%d", i+1), client: c}
		r.execute = func(o modelOperation) any { return m.execute(own, o) }
		m.clients = append(m.clients, r)
	}
	m.key = m.clients[0].limiter.Names.Key
	return m
}

func (m *rateModel) actions() []modelAction {
	return []modelAction{
		{"take", 50, m.take},
		{"cancel", 20, m.cancel},
		{"set", 1, m.setRate},
		{"retry", 10, func(d dice) {
			if c := m.client(d); c.settle != nil {
				c.retry(d.fate())
			}
		}},
		{"late", 8, func(d dice) { m.w.deliver(d[0]) }},
		{"wait", 20, func(d dice) { m.w.advance([]int64{1, 10, 100, 285, 286, 500, 1000, 3000, 62_000}[d[0]%9]) }},
		{"crash", 2, func(d dice) { c := m.client(d); c.settle, c.reserved = nil, nil }},
		{"damage", 1, func(dice) {
			m.w.Must("DEL", m.key)
			m.w.say("the limiter is deleted")
			m.there, m.steady = false, false
		}},
		{"foreign", 2, func(d dice) { m.w.intrude(d, m.key, "") }},
	}
}

// client returns a client: the one with another rate rarely.
func (m *rateModel) client(d dice) *rateClient {
	if d[0]%40 == 39 {
		return m.clients[2]
	}
	return m.clients[d[0]%2]
}

// own returns the rate of a client.
func (m *rateModel) own(c *rateClient) keyspace.Rate {
	if c == m.clients[2] {
		return otherRate
	}
	return ownRate
}

// drained returns how many requests drain in so many µs.
func drained(r keyspace.Rate, micros int64) *big.Rat {
	return new(big.Rat).Mul(big.NewRat(micros, 1), big.NewRat(int64(r.N), r.Per.Microseconds()))
}

// read is the reference of lua/rate/read.lua.
func (m *rateModel) read(own keyspace.Rate) {
	m.expire()
	if m.there {
		m.level.Sub(m.level, drained(m.rate, m.w.now-m.at))
	}
	if !m.there || m.level.Sign() <= 0 {
		m.level, m.place = new(big.Rat), m.w.now
	}
	m.at = m.w.now
	if !m.there || !m.set && m.rate != own {
		m.steady = m.steady && (!m.there || m.rate == own) && own == ownRate
		m.set, m.rate = false, own
	}
}

// expire learns whether the key has expired, which it may only when the limiter is full again and
// has to after the time that lua/rate/write.lua says, which the server rounds.
func (m *rateModel) expire() {
	if !m.there {
		return
	}
	kept := time.Minute
	if m.set {
		kept = 30 * 24 * time.Hour
	}
	micros, _ := new(big.Rat).Quo(m.level, drained(m.rate, 1)).Float64()
	ends := m.at + int64(micros) + kept.Microseconds()
	switch exists := m.w.State(m.key)[0].Kind == "string"; {
	case !exists && m.w.now < ends-2000:
		m.w.fail("the limiter is gone %d µs too early", ends-m.w.now)
	case exists && m.w.now > ends+3000:
		m.w.fail("the limiter should have expired %d µs ago", m.w.now-ends)
	case !exists:
		m.there, m.level, m.set = false, new(big.Rat), false
	}
}

// take makes a client ask for requests.
func (m *rateModel) take(d dice) {
	c := m.client(d)
	n, longest := int64(1+d[1]%m.own(c).Burst), []time.Duration{0, 0, time.Second, time.Hour}[d[2]%4]
	var got *rateGrant
	heard := func(reply any) {
		if g := granted(reply, n); g != nil && m.w.now < g.at {
			c.reserved = append(c.reserved, *g)
		}
	}
	m.w.send(&message{
		what:     fmt.Sprintf("%s asks for %d within %v", c.name, n, longest),
		words:    m.w.words(c.limiter.TakingCall(int(n), longest)),
		seen:     func(reply any) { got = m.taken(m.own(c), n, longest.Microseconds(), reply) },
		answered: heard, silent: func() { _ = got },
	}, d.fate())
}

// granted reads the reply of lua/rate/take.lua.
func granted(reply any, n int64) *rateGrant {
	words, is := reply.([]any)
	if !is {
		return nil
	}
	return &rateGrant{n, words[1].(int64), words[2].(int64)}
}

// taken is the reference of lua/rate/take.lua. It computes exactly, the script to a µs.
func (m *rateModel) taken(own keyspace.Rate, n, longest int64, reply any) *rateGrant {
	if outOfMemory(reply) {
		return nil
	}
	was := *m
	was.level = new(big.Rat).Set(m.level)
	m.read(own)
	if n > int64(m.rate.Burst) {
		m.w.expect("a request above the burst", reply, testredis.ReplyError("LATCHKEY_BURST"))
		if !testredis.HasCode(reply, "LATCHKEY_BURST") {
			m.w.fail("more than the burst of %d gets %s", m.rate.Burst, show(reply))
		}
		*m = was
		return nil
	}
	over := new(big.Rat).Add(m.level, big.NewRat(n-int64(m.rate.Burst), 1))
	exact := 0.0
	if over.Sign() > 0 {
		exact, _ = new(big.Rat).Quo(over, drained(m.rate, 1)).Float64()
	}
	g := granted(reply, n)
	var wait int64
	if g != nil {
		wait = reply.([]any)[0].(int64)
	} else {
		wait, _ = reply.(int64)
	}
	if float64(wait) < exact-0.01 || float64(wait) > exact+1.01 || (g != nil) != (wait <= longest) {
		m.w.fail("%d requests, which may wait for %d µs, get %s, and have to wait for %.2f µs", n, longest, show(reply), exact)
	}
	if g == nil {
		*m = was // nothing is written
		return nil
	}
	if g.at != m.w.now+wait || g.place != m.place+n && !(m.level.Cmp(big.NewRat(1, 1_000_000)) < 0 && g.place == m.w.now+n) {
		m.w.fail("%d requests after the place %d get %s", n, m.place, show(reply))
	}
	m.there, m.place = true, g.place
	m.level.Add(m.level, big.NewRat(n, 1))
	m.going = append(m.going, *g)
	return g
}

// cancel makes a client give up a reservation.
func (m *rateModel) cancel(d dice) {
	c := m.client(d)
	if len(c.reserved) == 0 || c.settle != nil {
		return
	}
	i := d[1] % len(c.reserved)
	g := c.reserved[i]
	c.reserved = slices.Delete(c.reserved, i, i+1)
	if at := slices.Index(m.going, g); at >= 0 && m.w.now < g.at {
		m.going = slices.Delete(m.going, at, at+1)
	}
	reservation := c.limiter.Reserved(rate.Grant{N: int(g.n), Due: time.Now().Add(time.Hour), At: g.at, Place: g.place})
	c.perform(fmt.Sprintf("cancels %d", g.n), repeated, true, func() { _ = reservation.Cancel(context.Background()) }, d.fate())
}

func (m *rateModel) setRate(d dice) {
	c := m.client(d)
	if c.settle != nil {
		return
	}
	to := []keyspace.Rate{{}, {N: 1, Per: time.Second, Burst: 2}, {N: 100, Per: time.Second, Burst: 9}}[d[1]%3]
	c.perform(fmt.Sprintf("sets %v", to), repeated, false, func() { _ = c.limiter.SetRate(context.Background(), to) }, d.fate())
}

// execute is the reference of lua/rate/cancel.lua and lua/rate/set.lua.
func (m *rateModel) execute(own keyspace.Rate, o modelOperation) any {
	return m.notes.once(o, func() any {
		if o.script == "rate/set" {
			m.expire()
			stored := m.rate
			m.read(own)
			m.steady = false
			if o.arg(2) == "" {
				m.set = false
				if m.there {
					m.rate = stored
				}
			} else {
				m.there, m.set = true, true
				var micros int
				_, _ = fmt.Sscanf(o.arg(2), "%d/%d/%d", &m.rate.N, &micros, &m.rate.Burst)
				m.rate.Per = time.Duration(micros) * time.Microsecond
			}
			return m.notes.done(o, int64(1))
		}
		was := *m
		was.level = new(big.Rat).Set(m.level)
		m.read(own)
		n, at, last := numeral(o.arg(2)), numeral(o.arg(3)), numeral(o.arg(4))
		back := int64(0)
		if m.w.now < at && m.place >= last {
			back = max(0, n-(m.place-last))
		}
		if back == 0 {
			*m = was // nothing is written
			return m.notes.done(o, int64(0))
		}
		m.there = true
		least := big.NewRat(m.place-last, 1) // those that were reserved since
		if m.place == last {
			m.place -= n
		}
		if m.level.Cmp(least) < 0 {
			least.Set(m.level)
		}
		if m.level.Sub(m.level, big.NewRat(back, 1)); m.level.Cmp(least) < 0 {
			m.level = least
		}
		return m.notes.done(o, back)
	})
}

// check compares the level, and looks for a window in which more requests go than they may.
func (m *rateModel) check() {
	m.expire()
	e := m.w.State(m.key)[0]
	if m.there != (e.Kind == "string") {
		m.w.fail("the limiter is there: %v, and has to be: %v", e.Kind != "none", m.there)
	}
	if m.there {
		s, is := keyspace.ReadLimiter(e.Text)
		exact, _ := m.level.Float64()
		if !is || s.Rate != m.rate || s.Set != m.set || s.Level < exact-1e-6 || s.Level > exact+1e-6 {
			m.w.fail("%q is stored, and has to be %v, set %v, level %v", e.Text, m.rate, m.set, exact)
		}
		left, _ := new(big.Rat).Sub(big.NewRat(int64(m.rate.Burst), 1), m.levelNow()).Float64()
		if got := float64(s.Available(time.Duration(e.TTL) * time.Millisecond)); got > left+0.02 || got < left-1.02 {
			m.w.fail("%v seem to be available of %q with %d ms left, and %v are", got, e.Text, e.TTL, left)
		}
	}
	if !m.steady {
		m.going = nil
		return
	}
	m.checkWindows()
}

func (m *rateModel) levelNow() *big.Rat {
	now := new(big.Rat).Sub(m.level, drained(m.rate, m.w.now-m.at))
	if now.Sign() < 0 {
		return new(big.Rat)
	}
	return now
}

// checkWindows passes all requests through a bucket in the order in which they go. Each of them may
// go a µs later than it exactly could.
func (m *rateModel) checkWindows() {
	going := slices.Clone(m.going)
	slices.SortStableFunc(going, func(a, b rateGrant) int { return int(a.at - b.at) })
	bucket, last := new(big.Rat), int64(0)
	most := new(big.Rat).Add(big.NewRat(int64(ownRate.Burst), 1), drained(ownRate, 2))
	for _, g := range going {
		if bucket.Sub(bucket, drained(ownRate, g.at-last)); bucket.Sign() < 0 {
			bucket = new(big.Rat)
		}
		last = g.at
		if bucket.Add(bucket, big.NewRat(g.n, 1)); bucket.Cmp(most) > 0 {
			m.w.fail("at %s too many requests go: %v", strconv.FormatInt(g.at-testredis.Epoch, 10), going)
		}
	}
}

func (m *rateModel) finish() {
	for _, c := range m.clients {
		if c.settle != nil {
			c.retry(0)
		}
	}
	for len(m.w.late) > 0 {
		m.w.deliver(0)
	}
	m.w.advance(31 * 24 * 3600_000)
	m.check()
	m.w.nothingLeft()
}
