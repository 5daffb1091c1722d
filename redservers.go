package latchkey

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// redServers finds out whether two members are on one server: that would be one vote
// counted twice. Each server is asked until it has told what it calls itself; only the
// first acquisition waits for that, and not for servers that are silent.
type redServers struct {
	members []Locker
	need    int
	heard   chan struct{} // closed when so much is known that nobody waits any more

	mu      sync.Mutex
	ids     map[int]string // by the places of the members; "" of who does not tell
	looking bool
	hearing sync.Once
	twice   error
}

func newRedServers(members []Locker, need int) *redServers {
	return &redServers{members: members, need: need, heard: make(chan struct{}), ids: map[int]string{}}
}

// check is an ErrInvalid once two members are known to be on one server. Who does not tell
// is believed.
func (s *redServers) check(ctx context.Context) error {
	if places := s.startLooking(); places != nil {
		go s.look(places)
	}
	select {
	case <-s.heard:
	case <-ctx.Done():
		return contextError(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.twice
}

// startLooking returns the members whose servers are not known, nil if somebody is looking
// already.
func (s *redServers) startLooking() (places []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.looking {
		return nil
	}
	for i := range s.members {
		if _, known := s.ids[i]; !known {
			places = append(places, i)
		}
	}
	s.looking = places != nil
	return places
}

func (s *redServers) look(places []int) {
	ctx, cancel := context.WithTimeout(context.Background(), maxMemberTimeout)
	defer cancel()
	_ = atOnce(places, func(i int) error {
		s.learn(ctx, i)
		return nil
	})
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
	for other, known := range s.ids {
		if id != "" && id == known {
			s.twice = invalid("%q and %q are on one server", s.members[other].Name(), s.members[i].Name())
		}
	}
	s.ids[i] = id
	if len(s.ids) == s.need {
		time.AfterFunc(minMemberTimeout, s.tell)
	}
}

func serverOf(ctx context.Context, l Locker) (id string, told bool) {
	if p, is := l.(placed); is {
		return p.base().client.serverID(ctx)
	}
	return "", true
}

// serverID is what a server calls itself while it runs, "" if it does not want to tell. It
// reports false if it may yet tell.
func (c *Client) serverID(ctx context.Context) (id string, told bool) {
	if c.cluster || !c.begin() {
		return "", true
	}
	defer c.working.Done()
	info, err := c.caller.send(ctx, func(ctx context.Context) rueidis.RedisResult {
		return c.rueidis.Do(ctx, c.rueidis.B().Info().Section("server").Build())
	}).ToString()
	_, id, _ = strings.Cut(info, "run_id:")
	id, _, _ = strings.Cut(id, "\r")
	return id, err == nil || judge(err) == refused
}
