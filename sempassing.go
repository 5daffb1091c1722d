package latchkey

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// A release of permits passes them on inside this client (waitqueue_permits.go), or gives them back
// to the server, whose answer says which other clients want some (waitqueue_turns.go).

// passOn passes permits to the first waiters of this client, and reports whether it did.
func (s *Semaphore) passOn(n int) bool {
	if s.invalid != nil || n < 1 || s.client.begin(context.Background()) != nil {
		return false
	}
	defer s.client.working.Done()
	q := s.client.waitQueues.useKnown(lineKey{KindSemaphore, s.key})
	if q == nil {
		return false
	}
	defer q.done()
	return q.passPermits(n)
}

// releasePermits implements Release and ReleaseIfExists for permits that are not passed on.
func (s *Semaphore) releasePermits(ctx context.Context, verb, how string, n int) (bool, error) {
	if err := checkCount(n); err != nil {
		return false, fail(verb, s.name, err)
	}
	returned := func(listeners) {}
	if q := s.client.waitQueues.useKnown(lineKey{KindSemaphore, s.key}); q != nil {
		defer q.done()
		q.permitsReturn(n)
		returned = func(l listeners) { q.permitsReturned(n, l) }
	}
	a, err := s.sendUntilDone(s.client.sender.Detached(ctx), verb, func(o *operation) call {
		return s.release(o, how, n)
	})
	l := s.listenersOf(a, err)
	returned(l)
	there := l.known
	if !there {
		there, err = boolOf(a, err)
	}
	if there && err == nil {
		s.observeReleased(ctx, n)
	}
	return there, err
}

// observeReleased tells the observer that permits were released.
func (s *Semaphore) observeReleased(ctx context.Context, n int) {
	s.client.observe(s.client.parentOf(ctx), Event{Type: EventReleased, Kind: s.kind, Name: s.name, Count: n})
}

// listenersOf reads from the answer to a release how many clients received its message, if the
// answer says so.
func (s *Semaphore) listenersOf(a transport.Answer, err error) (l listeners) {
	if err != nil {
		return l
	}
	reply, err := a.Message.ToArray()
	if err != nil || len(reply) != 2 {
		return l
	}
	count, err1 := reply[0].AsInt64()
	clients, err2 := reply[1].AsInt64()
	return listeners{count, clients, err1 == nil && err2 == nil, s.client.handover.counted == "1"}
}

// noteGranted notes that the server has granted permits. They may be passed on.
func (s *Semaphore) noteGranted(n int) {
	if q := s.client.waitQueues.useKnown(lineKey{KindSemaphore, s.key}); q != nil {
		defer q.done()
		q.permitsGranted(n, s.client.options.Turn)
	}
}

// endTurns makes permits that are passed on return to the server soon, because the semaphore has
// been changed.
func (c *permitCount) endTurns() {
	if q := c.client.waitQueues.useKnown(lineKey{KindSemaphore, c.key}); q != nil {
		defer q.done()
		q.permitsChanged()
	}
}
