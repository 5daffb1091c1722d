package transport

import (
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/transport/nodes"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
	"github.com/latchkey-go/latchkey/internal/transport/retry"
)

// queryPause is how long one node of a cluster may take before another is queried as well.
const queryPause = 50 * time.Millisecond

// Query is a query to a node, with a client that reaches the node. It may be sent several times.
type Query func(ctx context.Context, client rueidis.Client) rueidis.RedisResult

// QueryAnyNode sends a query to the server. In a cluster it does not wait for a silent node: after
// queryPause it queries another one as well, and the first answer counts. It returns the address of
// the node that answered.
func (s *Sender) QueryAnyNode(ctx context.Context, q Query) (address string, result rueidis.RedisResult) {
	if !s.Topology.Cluster {
		return "", s.queryNode(ctx, nodes.Peer{Node: s.Topology.Serving(0), Client: s.Client}, q)
	}
	peers := s.Topology.Peers(s.Client)
	if len(peers) == 0 {
		return "", rueidis.NewErrorResult(outcome.ErrNoNodes)
	}
	return s.queryInTurn(ctx, peers, q)
}

// queryInTurn queries one node after the other, until one answers or refuses. It does not wait for
// one that does not answer at once.
func (s *Sender) queryInTurn(
	ctx context.Context, peers []nodes.Peer, q Query,
) (address string, result rueidis.RedisResult) {
	type reply struct {
		address string
		result  rueidis.RedisResult
	}
	replies := make(chan reply, len(peers))
	next := time.NewTimer(0)
	defer next.Stop()
	last := reply{"", rueidis.NewErrorResult(outcome.ErrSilent)}
	for sent, answered := 0, 0; answered < len(peers); {
		select {
		case <-next.C:
			if sent == len(peers) {
				continue
			}
			p := peers[sent]
			sent++
			s.Background(func() { replies <- reply{p.Address(), s.queryNode(ctx, p, q)} })
			next.Reset(queryPause)
		case last = <-replies:
			answered++
			if outcome.Classify(last.result.Error()).Final() {
				return last.address, last.result
			}
			next.Reset(0)
		case <-ctx.Done():
			return "", rueidis.NewErrorResult(ctx.Err())
		}
	}
	return last.address, last.result
}

// queryNode sends a query to one node.
func (s *Sender) queryNode(ctx context.Context, p nodes.Peer, q Query) rueidis.RedisResult {
	return s.send(ctx, p.Node, func(ctx context.Context) rueidis.RedisResult { return q(ctx, p.Client) })
}

// QueryNodeOf sends a query to the node that serves a key, and returns the result. Its limit is the
// sender's patience.
func (s *Sender) QueryNodeOf(ctx context.Context, key string, q Query) rueidis.RedisResult {
	return s.queryNode(ctx, nodes.Peer{Node: s.node(key), Client: s.Client}, q)
}

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
func (s *Sender) QueryMaster(
	ctx context.Context, stop <-chan struct{}, m nodes.Master, q Query,
) (rueidis.RedisResult, error) {
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

// UntilAnswered asks what decides for good, until the server answers or refuses, for
// DialTimeout at most: a server may be in trouble, and a proxy may send errors of its own.
func UntilAnswered(ctx context.Context, ask func() error) error {
	began := time.Now()
	for pause := retry.FirstPause; ; pause = min(2*pause, retry.LongPause) {
		err := ask()
		hopeless := errors.Is(err, outcome.ErrNoNodes) || errors.Is(err, rueidis.ErrClosing)
		if outcome.Classify(err).Final() || hopeless || time.Since(began) > nodes.DialTimeout ||
			retry.Rest(ctx, nil, pause) != nil {
			return err
		}
	}
}
