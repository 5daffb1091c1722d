package latchkey

import (
	"context"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// redServers finds out whether two members are on one server: that would be one vote
// counted twice. Each server is asked until it has told what it calls itself; only the
// first acquisition waits for that, and not for servers that are silent.
type redServers struct {
	members []member
	need    int
	heard   chan struct{} // closed when so much is known that nobody waits any more

	mu      sync.Mutex
	ids     map[int]string // by the places of the members; "" of a server that does not tell
	looking bool
	hearing sync.Once
	twice   error
}

func newRedServers(members []member, need int) *redServers {
	return &redServers{members: members, need: need, heard: make(chan struct{}), ids: map[int]string{}}
}

// check is an ErrInvalid once two members are known to be on one server. A server that does
// not tell counts as one of its own.
func (s *redServers) check(ctx context.Context) error {
	if places := s.startLooking(); places != nil {
		go s.look(places)
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

// startLooking returns the members whose servers neither this lock nor their clients know,
// nil if there are none, or somebody is looking already.
func (s *redServers) startLooking() (places []int) {
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
		places = append(places, i)
		if p, is := l.(*primitive); is && p.client.serverIdentity.overdue() {
			silent++
		}
	}
	s.looking = places != nil
	switch {
	case len(s.ids) < s.need:
	case silent == len(places): // which have been waited for
		s.tell()
	default:
		time.AfterFunc(minMemberTimeout, s.tell)
	}
	return places
}

func (s *redServers) look(places []int) {
	ctx, cancel := context.WithTimeout(context.Background(), maxMemberTimeout)
	defer cancel()
	inParallel(len(places), places, func(i int) { s.learn(ctx, i) })
	s.mu.Lock()
	s.looking = false
	s.mu.Unlock()
	s.tell()
}

func (s *redServers) tell() { s.hearing.Do(func() { close(s.heard) }) }

// learn asks one server. When a majority has told, the others have a moment more.
func (s *redServers) learn(ctx context.Context, i int) {
	id, told := serverOf(ctx, s.members[i])
	if !told {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(i, id)
	if len(s.ids) == s.need {
		time.AfterFunc(minMemberTimeout, s.tell)
	}
}

// note takes note of what the server of a member calls itself. s.mu is held.
func (s *redServers) note(i int, id string) {
	for other, known := range s.ids {
		if id != "" && id == known {
			s.twice = invalid("%q and %q are on one server", s.members[other].Name(), s.members[i].Name())
		}
	}
	s.ids[i] = id
}

func serverOf(ctx context.Context, l member) (id string, told bool) {
	if p, is := l.(*primitive); is {
		return p.client.serverID(ctx)
	}
	return "", true
}

// knownServerOf is serverOf without asking anybody.
func knownServerOf(l member) (id string, known bool) {
	if p, is := l.(*primitive); is {
		return p.client.knownServerID()
	}
	return "", true
}
