package model

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/primitive/election"
	"github.com/latchkey-go/latchkey/internal/testredis"
)

func init() { models["election"] = newElectionModel }

// electionModel is the lock of an election, and the values that leaders announce: late, twice, and
// after they no longer lead.
type electionModel struct {
	*lockModel

	record    string
	terms     map[string]int64 // of all leaders, by their owners
	revisions map[string]int64 // how many values each leader has announced
	last      int64            // the term of the last leader seen
}

func newElectionModel(w *world) model {
	m := &electionModel{
		lockModel: newLockModel(w, always(election.Spec)),
		terms:     map[string]int64{}, revisions: map[string]int64{},
	}
	m.record = keyspace.LeaderKey(keyspace.Tag(m.lock.Names.Key))
	return m
}

func (m *electionModel) actions() []modelAction {
	return append(m.lockModel.actions(),
		modelAction{"announce", 30, m.announce},
		modelAction{"retire", 8, m.retire})
}

// announce makes a leader or a former leader announce its next value, or repeat the last one.
func (m *electionModel) announce(d dice) {
	owner := m.tokenOf
	if others := slices.Sorted(maps.Keys(m.terms)); d[0]%4 == 0 && len(others) > 0 {
		owner = others[d[1]%len(others)]
	} else if m.terms[owner] == 0 && m.token > 0 {
		m.terms[owner] = m.token
	}
	if m.terms[owner] == 0 {
		return // nobody has won, or the counter was lost
	}
	if d[2]%4 > 0 || m.revisions[owner] == 0 {
		m.revisions[owner]++
	}
	term, revision := strconv.FormatInt(m.terms[owner], 10), strconv.FormatInt(m.revisions[owner], 10)
	value := "value " + revision + " of " + term
	var leads bool
	var lock, record testredis.Entry
	m.w.send(&message{
		what: fmt.Sprintf("%s announces %q", owner, value),
		words: m.w.words(script.NewCall(script.ElectionAnnounce, m.keys(),
			owner, term, revision, value, "PUBLISH", election.Channel(m.lock.Names.Key), "label of "+owner)),
		before:   func() { lock, record = m.state(); leads = m.leads(lock, owner, term) },
		seen:     func(reply any) { m.announced(lock, record, leads, reply, owner, term, revision, value) },
		answered: func(any) {}, silent: func() {},
	}, d.fate())
}

func (m *electionModel) keys() []string {
	return []string{m.lock.Names.Key, m.record, m.lock.Names.Token()}
}

// leads reports whether an owner holds the lock and its term was the last to be counted.
func (m *electionModel) leads(lock testredis.Entry, owner, term string) bool {
	last := m.w.State(m.lock.Names.Token())[0]
	return lock.Count(owner) > 0 && (last.Kind == "none" || last.Text == term)
}

func (m *electionModel) state() (lock, record testredis.Entry) {
	both := m.w.State(m.lock.Names.Key, m.record)
	return both[0], both[1]
}

// announced checks the effect of an announcement: it takes effect if its owner leads and has
// announced nothing later, and otherwise changes nothing.
func (m *electionModel) announced(lock, before testredis.Entry, leads bool, reply any, owner, term, revision, value string) {
	_, after := m.state()
	want := maps.Clone(before.Fields)
	switch known, _ := strconv.Atoi(before.Fields["revision"]); {
	case outOfMemory(reply):
	case lock.Kind != "hash" && lock.Kind != "none":
		if !testredis.HasCode(reply, "WRONGTYPE") {
			m.w.fail("an announcement beside a %s replies %s", lock.Kind, show(reply))
		}
	case leads != (reply == int64(1)) || !leads != (reply == int64(0)):
		m.w.fail("an announcement replies %s, and its owner leads: %v", show(reply), leads)
	case leads && (before.Fields["owner"] != owner || known < asInt(revision)):
		since := strconv.FormatInt(m.w.ms(), 10)
		if before.Fields["owner"] == owner {
			since = before.Fields["since"]
		}
		want = map[string]string{"owner": owner, "term": term, "since": since, "revision": revision, "value": value, "label": "label of " + owner}
	}
	if !maps.Equal(want, after.Fields) {
		m.w.fail("the record is %v and has to be %v", after.Fields, want)
	}
}

func asInt(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}

// retire makes a former leader remove its value.
func (m *electionModel) retire(d dice) {
	var over []string
	for _, owner := range slices.Sorted(maps.Keys(m.terms)) {
		if !slices.ContainsFunc(m.parties, func(p *party) bool { return p.t != nil && p.t.Wire == owner }) {
			over = append(over, owner)
		}
	}
	if len(over) > 0 {
		m.retires(over[d[0]%len(over)], d.fate())
	}
}

func (m *electionModel) retires(owner string, fate int) {
	var before testredis.Entry
	m.w.send(&message{
		what:   owner + " retires",
		words:  m.w.words(script.NewCall(script.ElectionRetire, []string{m.record}, owner, "PUBLISH", election.Channel(m.lock.Names.Key))),
		light:  true,
		before: func() { _, before = m.state() },
		seen: func(any) {
			_, after := m.state()
			if gone := before.Fields["owner"] == owner; gone != (before.Kind != after.Kind) {
				m.w.fail("after the record %v and the end of %s there is %v", before.Fields, owner, after.Fields)
			}
		},
		answered: func(any) {}, silent: func() {},
	}, fate)
}

// check reads who leads. The leader must be the owner of the lock, with its own term and value, or
// nobody.
func (m *electionModel) check() {
	m.lockModel.check()
	lost := m.token == 0 // without the counter, the next term may be smaller than that of the leader
	if lost {
		m.last = 0
	}
	lock, record := m.state()
	reply := m.w.Do(m.w.words(script.NewCall(script.ElectionLook, m.keys()))...)
	if lock.Kind != "hash" && lock.Kind != "none" {
		return
	}
	owner := record.Fields["owner"]
	if owner == "" || !m.leads(lock, owner, record.Fields["term"]) {
		if reply != nil {
			m.w.fail("%s leads, and nobody does", show(reply))
		}
		return
	}
	age := m.w.ms() - int64(asInt(record.Fields["since"]))
	want := []any{owner, strconv.FormatInt(m.terms[owner], 10), record.Fields["since"],
		strconv.FormatInt(age, 10), strconv.FormatInt(lock.TTL, 10), record.Fields["value"], record.Fields["label"]}
	if got, _ := reply.([]any); !slices.Equal(got, want) {
		m.w.fail("%s leads, and it is %v", show(reply), want)
	}
	if m.terms[owner] < m.last {
		m.w.fail("the term %d follows %d", m.terms[owner], m.last)
	}
	if !lost {
		m.last = m.terms[owner]
	}
}

func (m *electionModel) finish() {
	m.w.settleAll(m.parties, m.java)
	for owner := range m.terms {
		m.retires(owner, 0)
	}
	m.w.nothingLeft(m.lock.Names.Token())
}
