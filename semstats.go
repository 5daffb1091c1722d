package latchkey

import (
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"
)

// SemaphoreStats is what a [Semaphore] has at one moment.
type SemaphoreStats struct {
	// Available is how many permits can be acquired; negative if it is a debt, which
	// [Semaphore.SetPermits] and [Semaphore.AddPermits] can leave.
	Available int
	// Total is how many permits there are in all, as set and added by this library; those
	// that are acquired are Total - Available. It is 0 if TotalKnown is false.
	Total int
	// TotalKnown is false for a semaphore that Redisson made, which keeps no total.
	TotalKnown bool
	// TTL is the time until the semaphore ends, NoExpiry without an end.
	TTL time.Duration
}

// PermitStats is what a [PermitSemaphore] has at one moment.
type PermitStats struct {
	// Available is how many permits can be acquired, those included whose lease is over;
	// negative if more are acquired than there are, which [PermitSemaphore.SetPermits] can
	// bring about.
	Available int
	// Acquired is how many permits somebody holds.
	Acquired int
	// Total is how many permits there are in all: Available + Acquired.
	Total int
	// TTL is the time until the semaphore and its permits end, NoExpiry without an end.
	TTL time.Duration
}

// Stats reports how many permits there are, in one round trip and of one moment. It changes
// nothing. The answer may be out of date when it arrives: to do something only if there are
// permits, acquire them.
//
// The error matches ErrNotSet if the semaphore is not there, ErrWrongKind if the key is
// something else, ErrInvalid for a bad name (nothing was sent), ErrClosed, or ErrUnavailable
// if the server did not answer within Options.RetryBudget.
func (s *Semaphore) Stats(ctx context.Context) (SemaphoreStats, error) {
	parts, err := s.stats(ctx, call{semStats, []string{s.key, s.beside}, nil})
	if err != nil {
		return SemaphoreStats{}, err
	}
	free, err1 := parts[0].AsInt64()
	ttl, err2 := parts[1].AsInt64()
	stats := SemaphoreStats{Available: int(free), TTL: ttlOf(ttl), TotalKnown: !parts[2].IsNil()}
	if stats.TotalKnown {
		var total int64
		total, err = parts[2].AsInt64()
		stats.Total = int(total)
	}
	if err := errors.Join(err, err1, err2); err != nil {
		return SemaphoreStats{}, fail("stats", s.name, errReply, err)
	}
	return stats, nil
}

// Stats reports how many permits there are and how many are acquired, in one round trip and
// of one moment. It changes nothing. The answer may be out of date when it arrives: to do
// something only if there is a permit, acquire it.
//
// The errors are those of [Semaphore.Stats].
func (s *PermitSemaphore) Stats(ctx context.Context) (PermitStats, error) {
	parts, err := s.stats(ctx, call{permitStats, []string{s.key, s.beside}, nil})
	if err != nil {
		return PermitStats{}, err
	}
	free, err1 := parts[0].AsInt64()
	held, err2 := parts[1].AsInt64()
	ttl, err3 := parts[2].AsInt64()
	if err := errors.Join(err1, err2, err3); err != nil {
		return PermitStats{}, fail("stats", s.name, errReply, err)
	}
	return PermitStats{Available: int(free), Acquired: int(held), Total: int(free + held), TTL: ttlOf(ttl)}, nil
}

// stats asks for the three parts of both replies.
func (o *object) stats(ctx context.Context, c call) ([]rueidis.RedisMessage, error) {
	a, err := o.query(ctx, "stats", c)
	if err != nil {
		return nil, err
	}
	parts, err := a.Message.ToArray()
	if err != nil || len(parts) != 3 {
		return nil, fail("stats", o.name, errReply, err)
	}
	return parts, nil
}
