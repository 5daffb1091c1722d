package latchkey

import (
	"context"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// redServers detects two members on one server, which would count one vote twice. It
// queries each server until the server has returned its id. Only the first acquisition waits
// for that, and not for silent servers.
type redServers struct {
	members []member
	need    int
	heard   chan struct{} // closed when enough is known that calls no longer wait

	mu      sync.Mutex
	ids     map[int]string // by the indexes of the members; "" for a server that does not tell
	looking bool
	hearing sync.Once
	twice   error
}

func newRedServers(members []member, need int) *redServers {
	return &redServers{members: members, need: need, heard: make(chan struct{}), ids: map[int]string{}}
}

// check returns an ErrInvalid once two members are known to be on one server. A server
// that does not tell its id counts as distinct.
func (s *redServers) check(ctx context.Context) error {
	if indexes := s.startLooking(); indexes != nil {
		go s.look(indexes)
	}
	select {
	case <-s.heard:
	case <-ctx.Done():
		return transport.ContextError(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.twice
}

// startLooking returns the members whose servers neither this lock nor their clients
// know. It returns nil if there are none, or another call is already looking.
func (s *redServers) startLooking() (indexes []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.looking {
		return nil
	}
	silent := 0
	for i, l := range s.members {
		if _, known := s.ids[i]; known {
			continue
		}
		if id, known := knownServerOf(l); known {
			s.note(i, id)
			continue
		}
		indexes = append(indexes, i)
		if p, is := l.(*primitive); is && p.client.serverIdentity.overdue() {
			silent++
		}
	}
	s.looking = indexes != nil
	switch {
	case len(s.ids) < s.need:
	case silent == len(indexes): // earlier calls have waited for them
		s.tell()
	default:
		time.AfterFunc(minMemberTimeout, s.tell)
	}
	return indexes
}

func (s *redServers) look(indexes []int) {
	ctx, cancel := context.WithTimeout(context.Background(), maxMemberTimeout)
	defer cancel()
	inParallel(len(indexes), indexes, func(i int) { s.learn(ctx, i) })
	s.mu.Lock()
	s.looking = false
	s.mu.Unlock()
	s.tell()
}

func (s *redServers) tell() { s.hearing.Do(func() { close(s.heard) }) }

// learn queries one server. When a majority has answered, the others get minMemberTimeout
// more.
func (s *redServers) learn(ctx context.Context, i int) {
	id, known := serverOf(ctx, s.members[i])
	if !known {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(i, id)
	if len(s.ids) == s.need {
		time.AfterFunc(minMemberTimeout, s.tell)
	}
}

// note records the id of a member's server. The caller holds s.mu.
func (s *redServers) note(i int, id string) {
	for other, known := range s.ids {
		if id != "" && id == known {
			s.twice = invalid("%q and %q are on one server", s.members[other].Name(), s.members[i].Name())
		}
	}
	s.ids[i] = id
}

func serverOf(ctx context.Context, l member) (id string, known bool) {
	if p, is := l.(*primitive); is {
		return p.client.serverID(ctx)
	}
	return "", true
}

// knownServerOf is serverOf without a query.
func knownServerOf(l member) (id string, known bool) {
	if p, is := l.(*primitive); is {
		return p.client.knownServerID()
	}
	return "", true
}
