package latchkey

import (
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/engine/script"
)

// SemaphoreStats is the state of a [Semaphore] at one moment.
type SemaphoreStats struct {
	// Available is the number of permits that can be acquired. It is negative if permits are owed,
	// which [Semaphore.SetPermits] and [Semaphore.AddPermits] can cause.
	Available int
	// Total is the number of all permits, as this library has set and added them; Total - Available
	// are acquired. It is 0 if TotalKnown is false.
	Total int
	// TotalKnown is false for a semaphore that Redisson made, because Redisson stores no total.
	TotalKnown bool
	// TTL is the time until the semaphore ends, or NoExpiry.
	TTL time.Duration
}

// PermitStats is the state of a [PermitSemaphore] at one moment.
type PermitStats struct {
	// Available is the number of permits that can be acquired, including those whose lease is over.
	// It is negative if more are acquired than there are in all, which [PermitSemaphore.SetPermits]
	// can cause.
	Available int
	// Acquired is the number of permits that are held.
	Acquired int
	// Total is the number of all permits: Available + Acquired.
	Total int
	// TTL is the time until the semaphore and its permits end, or NoExpiry.
	TTL time.Duration
}

// Stats returns how many permits there are, all read at the same moment in one round trip. It
// changes nothing. The answer may be out of date when it arrives: to act only if there are permits,
// acquire them.
//
// The error matches ErrNotSet if the semaphore does not exist, ErrWrongKind if the key is something
// else, ErrInvalid for a bad name (nothing was sent), ErrClosed, or ErrUnavailable if the server
// did not answer within Options.RetryBudget.
func (s *Semaphore) Stats(ctx context.Context) (SemaphoreStats, error) {
	parts, err := s.stats(ctx, script.NewCall(script.SemStats, []string{s.names.Key, s.secondKey, s.kindKey()}))
	if err != nil {
		return SemaphoreStats{}, err
	}
	free, err1 := parts[0].AsInt64()
	ttl, err2 := parts[1].AsInt64()
	stats := SemaphoreStats{Available: int(free), TTL: script.FromPTTL(ttl), TotalKnown: !parts[2].IsNil()}
	if stats.TotalKnown {
		var total int64
		total, err = parts[2].AsInt64()
		stats.Total = int(total)
	}
	if err := errors.Join(err, err1, err2); err != nil {
		return SemaphoreStats{}, fault.Op("stats", s.names.Name, script.ErrReply, err)
	}
	return stats, nil
}

// Stats returns how many permits there are and how many are acquired, all read at the same moment
// in one round trip. It changes nothing. The answer may be out of date when it arrives: to act only
// if there is a permit, acquire it.
//
// The errors are those of [Semaphore.Stats].
func (s *permitPool) Stats(ctx context.Context) (PermitStats, error) {
	parts, err := s.stats(ctx, script.NewCall(script.PermitStats, []string{s.names.Key, s.secondKey, s.kindKey()}))
	if err != nil {
		return PermitStats{}, err
	}
	free, err1 := parts[0].AsInt64()
	held, err2 := parts[1].AsInt64()
	ttl, err3 := parts[2].AsInt64()
	if err := errors.Join(err1, err2, err3); err != nil {
		return PermitStats{}, fault.Op("stats", s.names.Name, script.ErrReply, err)
	}
	return PermitStats{Available: int(free), Acquired: int(held), Total: int(free + held), TTL: script.FromPTTL(ttl)}, nil
}

// stats queries a semaphore and returns the three parts of the reply.
func (o *synchronizer) stats(ctx context.Context, c script.Call) ([]rueidis.RedisMessage, error) {
	a, err := o.query(ctx, "stats", c)
	if err != nil {
		return nil, err
	}
	parts, err := a.Message.ToArray()
	if err != nil || len(parts) != 3 {
		return nil, fault.Op("stats", o.names.Name, script.ErrReply, err)
	}
	return parts, nil
}
