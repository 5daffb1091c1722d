package model

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/primitive/once"
	"github.com/latchkey-go/latchkey/internal/testredis"
)

func init() {
	models["once"] = newOnceModel
	foreigners["once"] = onceOperations
}

// onceModel is the Once: at most one owner runs, whoever has succeeded is the last, and its result
// is that of all others until it is forgotten.
type onceModel struct {
	w       *world
	keys    []string
	channel string
	callers []*onceCaller
	state   onceState // what the server must have
	token   int64     // the largest so far
	number  int       // of the last owner
}

// onceState is the reference of the key.
type onceState struct {
	token, runner, result string
	done                  bool
	ends                  int64 // ms, -1: never
}

// onceCaller calls Do again and again. Each call has its owner.
type onceCaller struct {
	m       *onceModel
	name    string
	owner   string
	phase   oncePhase
	token   string
	reliant int64    // until when it relies on its run, ms
	last    *message // that was not answered, to be sent again; or nil
}

type oncePhase int

const (
	onceIdle    oncePhase = iota
	onceRuns              // it runs
	onceEnding            // it has sent the end of its run
	onceLeaving           // it has given up a call that may have begun a run
)

const (
	onceLease = 5000
	onceTTL   = 20000
)

func newOnceModel(w *world) model {
	names := keyspace.OfKey(modelName, modelName)
	m := &onceModel{w: w, keys: names.Alone(), channel: once.Channel(modelName)}
	for i := range 5 {
		m.callers = append(m.callers, &onceCaller{m: m, name: fmt.Sprintf("G%d", i+1)})
	}
	return m
}

func (m *onceModel) actions() []modelAction {
	return []modelAction{
		{"act", 60, func(d dice) { m.callers[d[0]%len(m.callers)].act(d) }},
		{"renew", 10, func(d dice) { m.callers[d[0]%len(m.callers)].renew(d.fate()) }},
		{"forget", 4, m.forget},
		{"late", 10, func(d dice) { m.w.deliver(d[0]) }},
		{"wait", 12, func(d dice) { m.w.advance(modelPause(d)) }},
		{"crash", 3, func(d dice) { m.callers[d[0]%len(m.callers)].crash() }},
		{"damage", 1, m.damage},
		{"foreign", 3, func(d dice) { m.w.intrude(d, m.keys[0], "once") }},
	}
}

// now returns the state after what has expired.
func (m *onceModel) now() *onceState {
	if m.state.token != "" && m.state.ends >= 0 && m.w.expired(m.state.ends) {
		m.state = onceState{}
	}
	return &m.state
}

// send sends a command. Each of its executions must reply what the reference replies.
func (m *onceModel) send(of *message, fate int, want func() any) {
	of.seen = func(reply any) {
		if outOfMemory(reply) {
			return
		}
		if expected := want(); fmt.Sprint(reply) != fmt.Sprint(expected) {
			m.w.fail("%s gets %s, and has to get %s", of.what, show(reply), show(expected))
		}
	}
	m.w.send(of, fate)
}

func (c *onceCaller) act(d dice) {
	switch {
	case c.last != nil && (c.phase != onceIdle || d[1]%3 > 0):
		c.m.w.send(c.last, d.fate())
	case c.last != nil:
		c.phase = onceLeaving
		c.end("gives up", "", d)
	case c.phase == onceIdle:
		c.ask(d.fate())
	case d[1]%3 == 0:
		c.phase = onceEnding
		c.end("fails", "", d)
	case c.m.w.ms() < c.reliant: // the client stores nothing after a loss
		c.phase = onceEnding
		c.end("succeeds", "result of "+c.owner, d)
	default:
		c.idle()
	}
}

func (c *onceCaller) idle() { c.phase, c.token, c.reliant, c.last = onceIdle, "", 0, nil }

// crash ends a process. The server learns nothing of it.
func (c *onceCaller) crash() { c.idle() }

// ask begins a run, or gets the result.
func (c *onceCaller) ask(fate int) {
	m := c.m
	m.number++
	c.owner = fmt.Sprintf("99999999-0000-4000-8000-000000000000:%d", m.number)
	owner := c.owner
	ask := &message{
		what: c.name + " asks as " + strconv.Itoa(m.number), words: m.w.words(script.NewCall(script.OnceAcquire, m.keys, owner, strconv.Itoa(onceLease))),
		silent: func() {},
	}
	var sent int64
	ask.before = func() { sent = m.w.ms() }
	ask.answered = func(reply any) {
		token, runs := reply.(string)
		if c.owner != owner || c.phase != onceIdle || !runs {
			c.last = nil
			return
		}
		c.phase, c.token, c.last, c.reliant = onceRuns, token, nil, sent+onceLease*9/10
	}
	c.last = ask
	m.send(ask, fate, func() any { return m.asked(owner) })
}

// asked is the reference of lua/once/acquire.lua.
func (m *onceModel) asked(owner string) any {
	s := m.now()
	switch {
	case s.done:
		return []any{s.result}
	case s.token == "":
		*s = onceState{token: strconv.FormatInt(m.w.now, 10), runner: owner, ends: m.w.ms() + onceLease}
		if m.w.now <= m.token {
			m.w.fail("the token %d follows %d", m.w.now, m.token)
		}
		m.token = m.w.now
	case s.runner != owner:
		return []any{s.ends - m.w.ms(), s.runner}
	}
	s.ends = max(s.ends, m.w.ms()+onceLease)
	return s.token
}

// end ends the run, with a result or without one.
func (c *onceCaller) end(how, result string, d dice) {
	m, owner, token := c.m, c.owner, c.token
	ttl := []string{"", strconv.Itoa(onceTTL), "1"}[d[2]%3]
	call := script.NewCall(script.OnceRelease, m.keys, owner, m.channel, "PUBLISH")
	want := func() any { return m.released(owner) }
	if result != "" {
		call = script.NewCall(script.OnceFinish, m.keys, owner, m.channel, "PUBLISH", token, ttl, result)
		want = func() any { return m.finished(owner, token, ttl, result) }
	}
	end := &message{what: c.name + " " + how, words: m.w.words(call), light: true, silent: func() {}}
	end.answered = func(any) {
		if c.owner == owner {
			c.idle()
		}
	}
	c.reliant, c.last = 0, end
	m.send(end, d.fate(), want)
}

func (m *onceModel) released(owner string) any {
	if s := m.now(); s.done || s.runner != owner {
		return nil
	}
	m.state = onceState{}
	return int64(0)
}

// finished is the reference of lua/once/finish.lua.
func (m *onceModel) finished(owner, token, ttl, result string) any {
	s := m.now()
	switch {
	case s.token != token && s.token != "" && !s.done && s.runner == owner: // begun by a late copy
		*s = onceState{}
		return nil
	case s.token != token || token == "" || !s.done && s.runner != owner:
		return nil
	case s.done:
		return int64(0)
	}
	ms, err := strconv.ParseInt(ttl, 10, 64)
	*s = onceState{token: token, done: true, result: result, ends: m.w.ms() + ms}
	if err != nil {
		s.ends = -1
	}
	return int64(0)
}

// renew renews the run of a caller, or one that is over.
func (c *onceCaller) renew(fate int) {
	m, owner := c.m, c.owner
	if owner == "" {
		return
	}
	var sent int64
	m.send(&message{
		what: c.name + " renews", words: m.w.words(script.NewCall(script.Renew, m.keys, "hash", owner, "", strconv.Itoa(onceLease))), light: true,
		before: func() { sent = m.w.ms() },
		answered: func(reply any) {
			switch {
			case c.owner != owner || c.phase != onceRuns || m.w.ms() >= c.reliant: // a client does not renew what it has lost
			case fmt.Sprint(reply) == "[1]":
				c.reliant = max(c.reliant, sent+onceLease*9/10)
			default:
				c.idle()
			}
		},
		silent: func() {},
	}, fate, func() any {
		s := m.now()
		if s.done || s.runner != owner {
			return []any{int64(0)}
		}
		s.ends = max(s.ends, m.w.ms()+onceLease)
		return []any{int64(1)}
	})
}

// forget forgets the success that it finds, or one of before.
func (m *onceModel) forget(d dice) {
	token := m.now().token
	if d[0]%4 == 0 && m.token > 0 {
		token = strconv.FormatInt(m.token, 10)
	}
	if token == "" {
		return
	}
	m.send(&message{
		what: "somebody forgets " + token, words: m.w.words(script.NewCall(script.OnceForget, m.keys, token)), light: true,
		answered: func(any) {}, silent: func() {},
	}, d.fate(), func() any {
		if s := m.now(); !s.done || s.token != token {
			return int64(0)
		}
		m.state = onceState{}
		return int64(1)
	})
}

func (m *onceModel) damage(dice) {
	m.w.say("all is deleted")
	m.w.Must("FLUSHALL")
	m.state = onceState{}
	for _, c := range m.callers {
		c.reliant = 0
	}
}

// check compares the key with the reference. Whoever relies on a run is the one that runs.
func (m *onceModel) check() {
	s, key := m.now(), m.w.State(m.keys[0])[0]
	got := onceState{token: key.Fields["once"], ends: -1}
	for field, value := range key.Fields {
		switch {
		case field == "result":
			got.result, got.done = value, true
		case strings.Contains(field, ":"):
			got.runner = field
		}
	}
	if key.TTL >= 0 {
		got.ends = m.w.ms() + key.TTL
	}
	if key.Kind == "none" {
		got = onceState{}
	}
	if got != *s {
		m.w.fail("the key is %+v and has to be %+v", got, *s)
	}
	for _, c := range m.callers {
		if c.phase == onceRuns && m.w.ms() < c.reliant && (s.runner != c.owner || s.token != c.token || s.ends < c.reliant) {
			m.w.fail("%s relies on its run until %d, and the key is %+v", c.name, c.reliant, *s)
		}
	}
	looked := m.w.Do(m.w.words(script.NewCall(script.OnceLook, m.keys))...)
	if want := map[bool]string{true: fmt.Sprint([]any{s.token, s.result}), false: "<nil>"}[s.done]; fmt.Sprint(looked) != want {
		m.w.fail("a look shows %s, and has to show %s", show(looked), want)
	}
}

// finish lets a caller succeed, and then forgets that.
func (m *onceModel) finish() {
	m.w.advance(2 * max(onceLease, onceTTL))
	c := m.callers[0]
	c.idle()
	c.ask(0)
	if c.phase == onceRuns {
		c.end("succeeds", "the last", dice{})
	}
	if !m.now().done {
		m.w.fail("nobody can succeed: %+v", m.state)
	}
	m.forget(dice{1})
	m.check()
	m.w.nothingLeft()
}

// onceOperations are those of a Once on the key of another kind of object.
func onceOperations(c *core.Parts) []func() {
	p := acquire.LockOf(c, once.Spec, keyspace.OfKey(modelName, modelName))
	send := func(cmd script.Call) func() {
		return func() { cmd.Cmd.Send(context.Background(), c.Rueidis, cmd.Keys, cmd.Args) }
	}
	return append(lockOperations(p),
		send(script.NewCall(script.OnceFinish, p.Names.Alone(), testredis.OwnerA, "channel", "PUBLISH", "1", "", "result")),
		send(script.NewCall(script.OnceForget, p.Names.Alone(), "1")),
		send(script.NewCall(script.OnceLook, p.Names.Alone())))
}
