package transport

import (
	"context"
	"time"

	"github.com/redis/rueidis"
)

const (
	// topologyAge is how long a client relies on what it knows of a cluster, and troubledAge is the
	// same while a node is in trouble. They affect only which callers have to wait for each other.
	topologyAge = 10 * time.Second
	troubledAge = time.Second
	// topologyPatience is how long to wait for an answer.
	topologyPatience = time.Second
)

// keepKnown queries the nodes of a cluster in the background if it is time to.
func (s *Sender) keepKnown(troubled bool) {
	if now, _ := s.now(); s.isDue(now.Mono, troubled) {
		s.Background(func() { s.Learn(context.Background()) })
	}
}

// isDue reports whether it is time for a query. If so, the caller has to call Learn.
func (s *Sender) isDue(now time.Duration, troubled bool) bool {
	age := topologyAge
	if troubled || !s.Topology.Known() {
		age = troubledAge
	}
	return now-time.Duration(s.queriedAt.Load()) > age && s.querying.CompareAndSwap(false, true)
}

// Learn queries the nodes of a cluster for the owners of the slots, for at most a second, and
// reports whether one answered. If none does, the previous knowledge stays.
func (s *Sender) Learn(ctx context.Context) (learned bool) {
	defer s.querying.Store(false)
	now, _ := s.now()
	s.queriedAt.Store(int64(now.Mono))
	ctx, cancel := context.WithTimeout(ctx, topologyPatience)
	defer cancel()
	address, reply := s.QueryAnyNode(ctx, func(ctx context.Context, client rueidis.Client) rueidis.RedisResult {
		return client.Do(ctx, client.B().ClusterSlots().Build())
	})
	return s.Topology.Learn(address, reply, s.Client)
}
