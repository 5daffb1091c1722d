package model

import (
	"strconv"
	"strings"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
	"github.com/latchkey-go/latchkey/internal/testredis"
)

// opReference is what the server must remember of operations that count once: the last operation of
// each session, for some time.
type opReference struct {
	w     *world
	notes map[string]opNote
}

type opNote struct {
	number uint64
	result any // nil if it was given up
	at     int64
}

// modelOperation is such an operation, as its command names it.
type modelOperation struct {
	script string
	note   string
	number uint64
	args   []string
}

// arg returns an argument, or "" if the script takes fewer.
func (o modelOperation) arg(i int) string {
	if i < len(o.args) {
		return o.args[i]
	}
	return ""
}

// operationOf parses a command of a script that records its operation.
func (w *world) operationOf(words []string) modelOperation {
	keys, _ := strconv.Atoi(words[2])
	o := modelOperation{script: w.ScriptName(words[1]), args: words[3+keys:]}
	for _, key := range words[3 : 3+keys] {
		if strings.HasPrefix(key, "latchkey_op:") && key != keyspace.NumberKindKey(modelName) {
			o.note = key
		}
	}
	o.number, _ = strconv.ParseUint(o.args[0], 10, 64)
	return o
}

// recall returns what the server knows of an operation: its result, or that it is past.
func (r *opReference) recall(o modelOperation) (result any, past bool) {
	last, noted := r.notes[o.note]
	if !noted || r.w.ms() > last.at+script.Millis(undo.Memory) {
		return nil, false
	}
	if last.number == o.number && last.result != nil {
		return last.result, false
	}
	return nil, last.number >= o.number
}

func (r *opReference) remember(o modelOperation, result any) {
	r.notes[o.note] = opNote{o.number, result, r.w.ms()}
}

// once returns the reply to an operation: the remembered result, or that of perform, which
// remembers its result.
func (r *opReference) once(o modelOperation, perform func() any) any {
	result, past := r.recall(o)
	switch {
	case past:
		return testredis.ReplyError("LATCHKEY_PAST")
	case result != nil:
		return result
	}
	return perform()
}

// done remembers a result and returns it.
func (r *opReference) done(o modelOperation, result any) any {
	r.remember(o, result)
	return result
}

// void is the reference of lua/shared/op_void.lua.
func (r *opReference) void(o modelOperation) any {
	if result, past := r.recall(o); past || result != nil {
		return int64(0)
	}
	r.remember(o, nil)
	return int64(1)
}

// expect compares a reply with the expected one.
func (w *world) expect(what string, reply, want any) {
	if code, is := want.(testredis.ReplyError); is && testredis.HasCode(reply, string(code)) {
		return
	}
	if reply != want {
		w.fail("%s gets %s, and has to get %s", what, show(reply), show(want))
	}
}

// operator is a client that performs one operation after another.
type operator struct {
	w       *world
	name    string
	client  *core.Parts
	settle  *message // what settles its last operation; nil if that is settled
	execute func(o modelOperation) any
}

// settling is how to settle an operation that got no answer.
type settling int

const (
	repeated settling = iota // it is sent again
	voided                   // it is given up
	undone                   // its effect is reversed
)

// perform sends an operation. A light operation works on a server without memory.
func (p *operator) perform(what string, way settling, light bool, send func(), fate int) {
	words := p.w.record(send)
	if words == nil {
		return // answered without a change
	}
	m := p.message(what, words, light)
	m.answered = func(any) { p.settle = nil }
	m.silent = func() {
		if p.settle != nil {
			return
		}
		p.settle = m
		if way != repeated {
			p.settle = p.settling(what, way, p.w.operationOf(words))
		}
	}
	p.w.send(m, fate)
}

// settling returns the message that ends an operation, whatever its outcome.
func (p *operator) settling(what string, way settling, o modelOperation) *message {
	c := script.NewCall(script.OpVoid, []string{o.note}, strconv.FormatUint(o.number, 10))
	if way == undone {
		entry := ""
		if o.script == "semaphore/acquire" {
			entry = o.arg(1)
		}
		c = newSemaphore(p.client).UndoCall(&undo.Operation{Record: o.note, Number: strconv.FormatUint(o.number, 10)}, entry)
	}
	m := p.message("no longer "+what, p.w.words(c), true)
	m.answered = func(any) { p.settle = nil }
	m.silent = func() {}
	return m
}

// message returns a command, and compares each of its executions with the reference.
func (p *operator) message(what string, words []string, light bool) *message {
	o, execute := p.w.operationOf(words), p.execute
	m := &message{what: p.name + " " + what, words: words, light: light}
	m.seen = func(reply any) {
		if outOfMemory(reply) {
			return
		}
		switch want := execute(o).(type) {
		case judged:
			want(reply)
		default:
			p.w.expect(m.what, reply, want)
		}
	}
	return m
}

// judged is the answer of a reference that has to see the reply first.
type judged func(reply any)

// retry sends the message that settles the last operation again.
func (p *operator) retry(fate int) { p.w.send(p.settle, fate) }
