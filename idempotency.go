package latchkey

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// opMemory is how long the server remembers an operation (see lua/shared/op.lua): as long as a late copy may
// arrive.
const opMemory = lateDelivery

// opMargin is how much earlier the background gives up an operation: it must not send one that the
// server may have forgotten.
const opMargin = time.Minute

// operation is an operation that changes a counter, so that executing it twice would count twice.
// The server records the last operation of each session. A session belongs to this client and one
// object, and serves one operation at a time, with growing numbers.
type operation struct {
	of       *sessions
	key      string // of the object
	session  int
	number   string
	record   string // the key of the server's record
	began    lease.Stamp
	followUp script.Call // what settles it if its outcome is unknown: itself, or its undo
}

// sessions has the sessions in use, by the key of the object. An operation takes the first
// free one, so the server has as many records for an object as operations were in flight on it at
// once.
type sessions struct {
	undoer  *undoer
	client  string              // its id
	number  func() uint64       // returns a number that the client has not used yet
	givenUp func(record string) // reports an operation whose outcome stays unknown

	mu   sync.Mutex
	busy map[string][]bool
}

// newSessions returns the sessions of a client. number returns numbers that the client has not used yet, in growing
// order. givenUp is called for an operation whose outcome stays unknown.
func newSessions(u *undoer, client string, number func() uint64, givenUp func(record string)) *sessions {
	return &sessions{undoer: u, client: client, number: number, givenUp: givenUp, busy: map[string][]bool{}}
}

func (s *sessions) reserve(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	busy := s.busy[key]
	session := slices.Index(busy, false)
	if session < 0 {
		session = len(busy)
		busy = append(busy, false)
	}
	busy[session] = true
	s.busy[key] = busy
	return session + 1
}

func (s *sessions) free(key string, session int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	busy := s.busy[key]
	busy[session-1] = false
	if !slices.Contains(busy, true) {
		delete(s.busy, key)
	}
}

// begin begins an operation on the object with that key. Call done when its outcome is known.
func (s *sessions) begin(key string) *operation {
	session := s.reserve(key)
	return &operation{
		of:      s,
		key:     key,
		session: session,
		began:   s.undoer.clock(),
		number:  strconv.FormatUint(s.number(), 10),
		record:  keyspace.ClientKey(key, s.client, strconv.Itoa(session)),
	}
}

// done ends an operation whose outcome is known.
func (o *operation) done() { o.of.free(o.key, o.session) }

// repeatLater leaves it to the background to settle the operation.
func (o *operation) repeatLater() { o.of.undoer.add(o, undoPlan{key: o.record, lease: opMemory}) }

// undoNow is repeatLater for a call that has to report the outcome, and reports whether it is settled.
func (o *operation) undoNow() bool { return o.of.undoer.undoNow(o.Undo) }

// Undo implements [undoable]. It gives up while the server is still certain to remember the
// operation.
func (o *operation) Undo(ctx context.Context, stop <-chan struct{}) transport.Outcome {
	u := o.of.undoer
	if u.clock().Since(o.began) > opMemory-opMargin-2*u.sender.Patience {
		o.of.givenUp(o.record)
		o.done()
		return transport.Refused
	}
	a, err := u.sender.Call(ctx, stop, o.followUp.Cmd, o.followUp.Keys, o.followUp.Args)
	switch outcome := transport.Classify(err); {
	case outcome == transport.Refused && a.Doubt:
		return transport.TryLater // an earlier attempt may have been executed
	case !outcome.Final():
		return outcome
	}
	o.done()
	return transport.Answered
}
