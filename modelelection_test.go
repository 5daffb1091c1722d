package latchkey

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/primitive/election"
)

func init() { models["election"] = newElectionModel }

// electionModel is the lock of an election, and the values that leaders announce: late, twice, and after they no
// longer lead.
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
	var lock, record entry
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
func (m *electionModel) leads(lock entry, owner, term string) bool {
	last := m.w.state(m.lock.Names.Token())[0]
	return lock.count(owner) > 0 && (last.kind == "none" || last.text == term)
}

func (m *electionModel) state() (lock, record entry) {
	both := m.w.state(m.lock.Names.Key, m.record)
	return both[0], both[1]
}

// announced checks the effect of an announcement: it takes effect if its owner leads and has announced nothing later,
// and otherwise changes nothing.
func (m *electionModel) announced(lock, before entry, leads bool, reply any, owner, term, revision, value string) {
	_, after := m.state()
	want := maps.Clone(before.fields)
	switch known, _ := strconv.Atoi(before.fields["revision"]); {
	case outOfMemory(reply):
	case lock.kind != "hash" && lock.kind != "none":
		if !hasErrorCode(reply, "WRONGTYPE") {
			m.w.fail("an announcement beside a %s replies %s", lock.kind, show(reply))
		}
	case leads != (reply == int64(1)) || !leads != (reply == int64(0)):
		m.w.fail("an announcement replies %s, and its owner leads: %v", show(reply), leads)
	case leads && (before.fields["owner"] != owner || known < asInt(revision)):
		since := strconv.FormatInt(m.w.ms(), 10)
		if before.fields["owner"] == owner {
			since = before.fields["since"]
		}
		want = map[string]string{"owner": owner, "term": term, "since": since, "revision": revision, "value": value, "label": "label of " + owner}
	}
	if !maps.Equal(want, after.fields) {
		m.w.fail("the record is %v and has to be %v", after.fields, want)
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
	var before entry
	m.w.send(&message{
		what:   owner + " retires",
		words:  m.w.words(script.NewCall(script.ElectionRetire, []string{m.record}, owner, "PUBLISH", election.Channel(m.lock.Names.Key))),
		light:  true,
		before: func() { _, before = m.state() },
		seen: func(any) {
			_, after := m.state()
			if gone := before.fields["owner"] == owner; gone != (before.kind != after.kind) {
				m.w.fail("after the record %v and the end of %s there is %v", before.fields, owner, after.fields)
			}
		},
		answered: func(any) {}, silent: func() {},
	}, fate)
}

// check reads who leads. The leader must be the owner of the lock, with its own term and value, or nobody.
func (m *electionModel) check() {
	m.lockModel.check()
	lost := m.token == 0 // without the counter, the next term may be smaller than that of the leader
	if lost {
		m.last = 0
	}
	lock, record := m.state()
	reply := m.w.do(m.w.words(script.NewCall(script.ElectionLook, m.keys()))...)
	if lock.kind != "hash" && lock.kind != "none" {
		return
	}
	owner := record.fields["owner"]
	if owner == "" || !m.leads(lock, owner, record.fields["term"]) {
		if reply != nil {
			m.w.fail("%s leads, and nobody does", show(reply))
		}
		return
	}
	age := m.w.ms() - int64(asInt(record.fields["since"]))
	want := []any{owner, strconv.FormatInt(m.terms[owner], 10), record.fields["since"],
		strconv.FormatInt(age, 10), strconv.FormatInt(lock.ttl, 10), record.fields["value"], record.fields["label"]}
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
