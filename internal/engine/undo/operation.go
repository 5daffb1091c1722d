package undo

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// Memory is how long the server remembers an operation (see lua/shared/op.lua): as long as a late
// copy may arrive.
const Memory = LateDelivery

// margin is how much earlier the background gives up an operation: it must not send one that the
// server may have forgotten.
const margin = time.Minute

// Operation is an operation that changes a counter, so that executing it twice would count twice.
// The server records the last operation of each session. A session belongs to this client and one
// object, and serves one operation at a time, with growing numbers.
type Operation struct {
	of       *Sessions
	key      string // of the object
	session  int
	Number   string
	Record   string      // the key of the server's record
	Began    lease.Stamp // before it is sent; the caller sets it anew if it is sent again
	FollowUp script.Call // what settles it if its outcome is unknown: itself, or its undo
}

// Sessions has the sessions in use, by the key of the object. An operation takes the first
// free one, so the server has as many records for an object as operations were in flight on it at
// once.
type Sessions struct {
	undoer  *Undoer
	client  string              // its id
	number  func() uint64       // returns a number that the client has not used yet
	givenUp func(record string) // reports an operation whose outcome stays unknown

	mu   sync.Mutex
	busy map[string][]bool
}

// NewSessions returns the sessions of a client. number returns numbers that the client has not used
// yet, in growing order. givenUp is called for an operation whose outcome stays unknown.
func NewSessions(u *Undoer, client string, number func() uint64, givenUp func(record string)) *Sessions {
	return &Sessions{undoer: u, client: client, number: number, givenUp: givenUp, busy: map[string][]bool{}}
}

// reserve returns a session that no other operation of this client uses. x and {x} share theirs.
func (s *Sessions) reserve(key string) int {
	key = keyspace.Tag(key)
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

func (s *Sessions) free(key string, session int) {
	key = keyspace.Tag(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	busy := s.busy[key]
	busy[session-1] = false
	if !slices.Contains(busy, true) {
		delete(s.busy, key)
	}
}

// Begin begins an operation on the object with that key. Call Done when its outcome is known.
func (s *Sessions) Begin(key string) *Operation {
	session := s.reserve(key)
	return &Operation{
		of:      s,
		key:     key,
		session: session,
		Began:   s.undoer.clock(),
		Number:  strconv.FormatUint(s.number(), 10),
		Record:  keyspace.ClientKey(key, s.client, strconv.Itoa(session)),
	}
}

// Done ends an operation whose outcome is known.
func (o *Operation) Done() { o.of.free(o.key, o.session) }

// SettleLater leaves it to the background to settle the operation.
func (o *Operation) SettleLater() { o.of.undoer.Add(o, Plan{Key: o.Record, Lease: Memory}) }

// SettleNow is SettleLater for a call that has to report the outcome, and reports whether it is
// settled.
func (o *Operation) SettleNow() bool { return o.of.undoer.Now(o.Undo) }

// Undo implements [Undoable]. It gives up while the server is still certain to remember the
// operation.
func (o *Operation) Undo(ctx context.Context, stop <-chan struct{}) outcome.Outcome {
	u := o.of.undoer
	if u.clock().Since(o.Began) > Memory-margin-2*u.sender.Patience {
		o.of.givenUp(o.Record)
		o.Done()
		return outcome.Refused
	}
	a, err := u.sender.Call(ctx, stop, o.FollowUp)
	switch got := outcome.Classify(err); {
	case got == outcome.Refused && a.Doubt:
		return outcome.TryLater // an earlier attempt may have been executed
	case !got.Final():
		return got
	}
	o.Done()
	return outcome.Answered
}
