package latchkey

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/report"
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
	client   *Client
	key      string // of the object
	session  int
	number   string
	record   string // the key of the server's record
	began    lease.Stamp
	followUp script.Call // what settles it if its outcome is unknown: itself, or its undo
}

// dedupSessions has the sessions in use, by the key of the object. An operation takes the first
// free one, so the server has as many records for an object as operations were in flight on it at
// once.
type dedupSessions struct {
	mu   sync.Mutex
	busy map[string][]bool
}

func (s *dedupSessions) reserve(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy == nil {
		s.busy = map[string][]bool{}
	}
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

func (s *dedupSessions) free(key string, session int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	busy := s.busy[key]
	busy[session-1] = false
	if !slices.Contains(busy, true) {
		delete(s.busy, key)
	}
}

// newOperation begins an operation on the object with that key. Call done when its outcome is
// known.
func (c *Client) newOperation(key string) *operation {
	session := c.dedupSessions.reserve(key)
	return &operation{
		client:  c,
		key:     key,
		session: session,
		began:   c.clock(),
		number:  strconv.FormatUint(c.registry.number(), 10),
		record:  keyspace.ClientKey(key, c.id, strconv.Itoa(session)),
	}
}

func (o *operation) done() { o.client.dedupSessions.free(o.key, o.session) }

// repeatLater leaves it to the background to settle the operation.
func (o *operation) repeatLater() { o.client.undo.add(o, undoPlan{key: o.record, lease: opMemory}) }

// undo implements [undoable]. It gives up while the server is still certain to remember the
// operation.
func (o *operation) undo(ctx context.Context, stop <-chan struct{}) transport.Outcome {
	if o.client.clock().Since(o.began) > opMemory-opMargin-2*o.client.sender.Patience {
		o.client.reporter.Log(report.NoticeGivenUp, o.record)
		o.done()
		return transport.Refused
	}
	a, err := o.client.sender.Call(ctx, stop, o.followUp.Cmd, o.followUp.Keys, o.followUp.Args)
	switch outcome := transport.Classify(err); {
	case outcome == transport.Refused && a.Doubt:
		return transport.TryLater // an earlier attempt may have been executed
	case !outcome.Final():
		return outcome
	}
	o.done()
	return transport.Answered
}
