package transport

import (
	"context"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/transport/nodes"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
	"github.com/latchkey-go/latchkey/internal/transport/retry"
)

// Masters returns the servers that accept writes; together they have all keys. In a cluster it
// queries the nodes until one answers, with the limits of Call.
func (s *Sender) Masters(ctx context.Context, stop <-chan struct{}) ([]nodes.Master, error) {
	began, _ := s.now()
	for pause := retry.FirstPause; ; pause = min(2*pause, retry.LongPause) {
		err := outcome.ErrSilent
		if !s.Topology.Cluster || s.Learn(ctx) {
			var all []nodes.Master
			if all, err = s.Topology.Masters(s.Client); err == nil {
				return all, nil
			}
		}
		now, _ := s.now()
		if err = restBeforeRetry(ctx, stop, pause, s.Patience-now.Since(began), err); err != nil {
			return nil, err
		}
	}
}

// QueryMaster sends a query to a master until there is a definite answer, as Call does.
func (s *Sender) QueryMaster(ctx context.Context, stop <-chan struct{}, m nodes.Master, q Query) (rueidis.RedisResult, error) {
	began, _ := s.now()
	for pause := retry.FirstPause; ; pause = min(2*pause, retry.LongPause) {
		if ctx.Err() != nil {
			return rueidis.RedisResult{}, outcome.Unavailable(fault.ContextError(ctx))
		}
		result := s.queryNode(ctx, m.Peer, q)
		err := silentOr(ctx, result.Error())
		switch outcome.Classify(err) {
		case outcome.Answered:
			return result, nil
		case outcome.Refused:
			return result, err
		}
		now, _ := s.now()
		if err = restBeforeRetry(ctx, stop, pause, s.Patience-now.Since(began), outcome.Explained(err)); err != nil {
			return result, err
		}
	}
}
