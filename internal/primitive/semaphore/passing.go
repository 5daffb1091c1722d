package semaphore

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/report"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/engine/turns"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
)

// Release releases permits to the first waiters of this client, and the rest to the server.
func (s *Semaphore) Release(ctx context.Context, n int) error {
	left := s.passOn(n)
	if left < n {
		s.observeReleased(ctx, n-left)
	}
	if left == 0 && n > 0 {
		return nil
	}
	_, err := s.releasePermits(ctx, "release", "release", left)
	return err
}

// ReleaseIfExists releases permits to the server unless the semaphore does not exist, and reports
// whether it did.
func (s *Semaphore) ReleaseIfExists(ctx context.Context, n int) (bool, error) {
	return s.releasePermits(ctx, "release if exists", "release if set", n)
}

// passOn passes permits to the first waiters of this client, and returns how many are left.
func (s *Semaphore) passOn(n int) (left int) {
	if s.Names.Invalid != nil || n < 1 || s.Client.Begin(context.Background()) != nil {
		return n
	}
	defer s.Client.Done()
	key := line.Key{Kind: keyspace.KindSemaphore, Key: s.Names.Key}
	l, standing := semLinesOf(s.Client).Known(key), s.Client.Lines.Known(key).Standing()
	if l == nil || standing == turns.Even {
		return n
	}
	return l.pass(n, standing == turns.Short)
}

// releasePermits releases permits that are not passed on, and reports whether it has.
func (s *Semaphore) releasePermits(ctx context.Context, verb, how string, n int) (bool, error) {
	if err := request.CheckNumber("%d permits", n, 1); err != nil {
		return false, fault.Op(verb, s.Names.Name, err)
	}
	key := line.Key{Kind: keyspace.KindSemaphore, Key: s.Names.Key}
	if l := semLinesOf(s.Client).Known(key); l != nil {
		l.returns(n)
	}
	isShort := ""
	q := s.Client.Lines.Known(key)
	if q.Standing() == turns.Short {
		isShort = "1"
	}
	a, err := s.SendUntilDone(s.Client.Sender.Detached(ctx), verb, func(o *undo.Operation) script.Call {
		return s.releaseCall(o, how, n, isShort)
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
	s.Client.Reporter.Observe(s.Client.Reporter.Parent(ctx), report.Event{
		Type: report.Released, Kind: s.Kind, Name: s.Names.Name, Count: n,
	})
}

// endTurns makes permits that are passed on return to the server, because the semaphore has
// changed.
func (c *Count) endTurns() {
	if l := semLinesOf(c.Client).Known(line.Key{Kind: keyspace.KindSemaphore, Key: c.Names.Key}); l != nil {
		l.endTurns()
	}
}
