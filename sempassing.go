package latchkey

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/report"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
)

// passOn passes permits to the first waiters of this client, and returns how many are left.
func (s *Semaphore) passOn(n int) (left int) {
	if s.names.Invalid != nil || n < 1 || s.client.Begin(context.Background()) != nil {
		return n
	}
	defer s.client.Done()
	key := line.Key{Kind: keyspace.KindSemaphore, Key: s.names.Key}
	l, standing := s.client.semLines().Known(key), s.client.Lines.Known(key).Standing()
	if l == nil || standing == line.Even {
		return n
	}
	return l.pass(n, standing == line.Short)
}

// releasePermits implements Release and ReleaseIfExists for permits that are not passed on.
func (s *Semaphore) releasePermits(ctx context.Context, verb, how string, n int) (bool, error) {
	if err := request.CheckNumber("%d permits", n, 1); err != nil {
		return false, fault.Op(verb, s.names.Name, err)
	}
	key := line.Key{Kind: keyspace.KindSemaphore, Key: s.names.Key}
	if l := s.client.semLines().Known(key); l != nil {
		l.returns(n)
	}
	isShort := ""
	q := s.client.Lines.Known(key)
	if q.Standing() == line.Short {
		isShort = "1"
	}
	a, err := s.sendUntilDone(s.client.Sender.Detached(ctx), verb, func(o *undo.Operation) script.Call {
		return s.release(o, how, n, isShort)
	})
	if err != nil {
		return false, err
	}
	reply, err := script.Int(a)
	q.SharesWith(reply - 1)
	if reply > 0 && err == nil {
		s.observeReleased(ctx, n)
	}
	return reply > 0, err
}

// observeReleased tells the observer that permits were released.
func (s *Semaphore) observeReleased(ctx context.Context, n int) {
	s.client.Reporter.Observe(s.client.Reporter.Parent(ctx), report.Event{Type: report.Released, Kind: s.kind, Name: s.names.Name, Count: n})
}

// endTurns makes permits that are passed on return to the server, because the semaphore has changed.
func (c *permitCount) endTurns() {
	if l := c.client.semLines().Known(line.Key{Kind: keyspace.KindSemaphore, Key: c.names.Key}); l != nil {
		l.endTurns()
	}
}
