package semaphore

import (
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/engine/script"
)

// Stats is the state of a semaphore at one moment.
type Stats struct {
	Available  int
	Total      int
	TotalKnown bool
	TTL        time.Duration
}

// PoolStats is the state of a semaphore whose permits have ids at one moment.
type PoolStats struct {
	Available int
	Acquired  int
	Total     int
	TTL       time.Duration
}

// Stats returns how many permits there are.
func (s *Semaphore) Stats(ctx context.Context) (Stats, error) {
	parts, err := s.readStats(ctx, script.NewCall(script.SemStats, []string{s.Names.Key, s.SecondKey, s.KindKey()}))
	if err != nil {
		return Stats{}, err
	}
	free, err1 := parts[0].AsInt64()
	ttl, err2 := parts[1].AsInt64()
	stats := Stats{Available: int(free), TTL: script.FromPTTL(ttl), TotalKnown: !parts[2].IsNil()}
	if stats.TotalKnown {
		var total int64
		total, err = parts[2].AsInt64()
		stats.Total = int(total)
	}
	if err := errors.Join(err, err1, err2); err != nil {
		return Stats{}, fault.Op("stats", s.Names.Name, script.ErrReply, err)
	}
	return stats, nil
}

// Stats returns how many permits there are and how many are acquired.
func (s *Pool) Stats(ctx context.Context) (PoolStats, error) {
	parts, err := s.readStats(ctx, script.NewCall(script.PermitStats, []string{s.Names.Key, s.SecondKey, s.KindKey()}))
	if err != nil {
		return PoolStats{}, err
	}
	free, err1 := parts[0].AsInt64()
	held, err2 := parts[1].AsInt64()
	ttl, err3 := parts[2].AsInt64()
	if err := errors.Join(err1, err2, err3); err != nil {
		return PoolStats{}, fault.Op("stats", s.Names.Name, script.ErrReply, err)
	}
	return PoolStats{Available: int(free), Acquired: int(held), Total: int(free + held), TTL: script.FromPTTL(ttl)}, nil
}

// readStats queries a semaphore and returns the three parts of the reply.
func (c *Count) readStats(ctx context.Context, each script.Call) ([]rueidis.RedisMessage, error) {
	a, err := c.Query(ctx, "stats", each)
	if err != nil {
		return nil, err
	}
	parts, err := a.Message.ToArray()
	if err != nil || len(parts) != 3 {
		return nil, fault.Op("stats", c.Names.Name, script.ErrReply, err)
	}
	return parts, nil
}
