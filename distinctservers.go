package latchkey

import (
	"context"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// distinctServers detects two members on one server, which would count one vote twice. It
// queries each server until the server has returned its id. Only the first acquisition waits
// for that, and not for silent servers.
type distinctServers struct {
	members []member
	need    int
	ready   chan struct{} // closed when enough is known that calls no longer wait

	mu        sync.Mutex
	ids       map[int]string // by the indexes of the members; "" for a server that does not tell
	querying  bool
	readyOnce sync.Once
	duplicate error
}

func newDistinctServers(members []member, need int) *distinctServers {
	return &distinctServers{members: members, need: need, ready: make(chan struct{}), ids: map[int]string{}}
}

// check returns an ErrInvalid once two members are known to be on one server. A server
// that does not tell its id counts as distinct.
func (s *distinctServers) check(ctx context.Context) error {
	if indexes := s.beginQueries(); indexes != nil {
		go s.query(indexes)
	}
	select {
	case <-s.ready:
	case <-ctx.Done():
		return transport.ContextError(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.duplicate
}

// beginQueries returns the indexes of the members whose servers neither this lock nor their clients
// know. It returns nil if there are none, or another call already queries them.
func (s *distinctServers) beginQueries() (indexes []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.querying {
		return nil
	}
	silent := 0
	for i, l := range s.members {
		if _, known := s.ids[i]; known {
			continue
		}
		if id, known := knownServerOf(l); known {
			s.record(i, id)
			continue
		}
		indexes = append(indexes, i)
		if p, is := l.(*primitive); is && p.client.serverIdentity.overdue() {
			silent++
		}
	}
	s.querying = indexes != nil
	switch {
	case len(s.ids) < s.need:
	case silent == len(indexes): // earlier calls have waited for them
		s.markReady()
	default:
		time.AfterFunc(minMemberTimeout, s.markReady)
	}
	return indexes
}

func (s *distinctServers) query(indexes []int) {
	ctx, cancel := context.WithTimeout(context.Background(), maxMemberTimeout)
	defer cancel()
	inParallel(len(indexes), indexes, func(i int) { s.queryOne(ctx, i) })
	s.mu.Lock()
	s.querying = false
	s.mu.Unlock()
	s.markReady()
}

func (s *distinctServers) markReady() { s.readyOnce.Do(func() { close(s.ready) }) }

// queryOne queries one server. When a majority has answered, the others get minMemberTimeout
// more.
func (s *distinctServers) queryOne(ctx context.Context, i int) {
	id, known := serverOf(ctx, s.members[i])
	if !known {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record(i, id)
	if len(s.ids) == s.need {
		time.AfterFunc(minMemberTimeout, s.markReady)
	}
}

// record records the id of a member's server. The caller holds s.mu.
func (s *distinctServers) record(i int, id string) {
	for other, known := range s.ids {
		if id != "" && id == known {
			s.duplicate = invalid("%q and %q are on one server", s.members[other].Name(), s.members[i].Name())
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
