package transport

import (
	"context"
	"time"

	"github.com/redis/rueidis"
)

// askPause is how long one node of a cluster may take before another is queried as well.
const askPause = 50 * time.Millisecond

// Question is a query to a node, with a client that reaches the node. It may be sent several times.
type Question func(ctx context.Context, client rueidis.Client) rueidis.RedisResult

// AskAnyNode sends a query to the server. In a cluster it does not wait for a silent node: after
// askPause it queries another one as well, and the first answer counts. It returns the address of
// the node that answered.
func (s *Sender) AskAnyNode(ctx context.Context, q Question) (address string, result rueidis.RedisResult) {
	if !s.Topology.Cluster {
		return "", s.askNode(ctx, peer{s.Topology.common, s.Client}, q)
	}
	type reply struct {
		address string
		result  rueidis.RedisResult
	}
	peers := s.Topology.peers(s.Client)
	replies := make(chan reply, len(peers))
	next := time.NewTimer(0)
	defer next.Stop()
	last := reply{"", rueidis.NewErrorResult(ErrSilent)}
	for asked, heard := 0, 0; heard < len(peers); {
		select {
		case <-next.C:
			if asked == len(peers) {
				continue
			}
			p := peers[asked]
			asked++
			s.Background(func() { replies <- reply{p.address, s.askNode(ctx, p, q)} })
			next.Reset(askPause)
		case last = <-replies:
			heard++
			if Classify(last.result.Error()).Final() {
				return last.address, last.result
			}
			next.Reset(0)
		case <-ctx.Done():
			return "", rueidis.NewErrorResult(ctx.Err())
		}
	}
	return last.address, last.result
}

// askNode sends a query to one node.
func (s *Sender) askNode(ctx context.Context, p peer, q Question) rueidis.RedisResult {
	return s.send(ctx, p.Node, func(ctx context.Context) rueidis.RedisResult { return q(ctx, p.client) })
}

// AskNodeOf sends a query to the node that serves a key, and returns the result. Its limit is the
// sender's patience.
func (s *Sender) AskNodeOf(ctx context.Context, key string, q Question) rueidis.RedisResult {
	return s.askNode(ctx, peer{s.node(key), s.Client}, q)
}
