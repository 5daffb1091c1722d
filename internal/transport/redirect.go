package transport

import (
	"context"
	"slices"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// connSender sends commands one after the other over one connection.
type connSender func(ctx context.Context, commands ...rueidis.Completed) []rueidis.RedisResult

// senderTo returns a sender to the node that serves a key. It follows no redirection, because that
// would separate commands that belong together. A blocking command has a connection of its own
// anyway; only the client of a cluster would split the commands, so there it is the client of the
// node. A dedicated connection is not used, because its release would unsubscribe: see
// docs/explain/rueidis.md.
func (s *Sender) senderTo(key string) connSender {
	if !s.Topology.Cluster {
		return s.Client.DoMulti
	}
	if node := s.Client.Nodes()[s.Topology.Serving(keyspace.Slot(key)).Address()]; node != nil {
		return node.DoMulti
	}
	if all := s.Topology.Peers(s.Client); len(all) > 0 { // any node knows the right one
		return all[0].Client.DoMulti
	}
	return func(_ context.Context, commands ...rueidis.Completed) []rueidis.RedisResult {
		return slices.Repeat([]rueidis.RedisResult{rueidis.NewErrorResult(rueidis.ErrNoSlot)}, len(commands))
	}
}

// redirected reports whether another node of the cluster has the key.
func redirected(err error) bool { return outcome.HasCode(err, "MOVED") || outcome.HasCode(err, "ASK") }

// elsewhere returns a sender to the node that err names as the owner of the key, or nil. The client
// itself learns of a moved slot only after up to a second, and never of keys that have moved before
// their slot. It learns of a new node by a command that it follows there.
func (s *Sender) elsewhere(ctx context.Context, key string, err error) connSender {
	address, asks, redirected := outcome.Redirection(err)
	if !redirected {
		return nil
	}
	s.keepKnown(true)
	node := s.Client.Nodes()[address]
	if node == nil {
		s.Client.Do(ctx, s.Client.B().Exists().Key(key).Build())
		node = s.Client.Nodes()[address]
	}
	switch {
	case node == nil:
		return nil
	case asks:
		return asking(node)
	}
	return node.DoMulti
}

// asking sends to a node that already has keys of a slot that it does not serve yet.
func asking(node rueidis.Client) connSender {
	return func(ctx context.Context, commands ...rueidis.Completed) (results []rueidis.RedisResult) {
		all := make([]rueidis.Completed, 0, 2*len(commands))
		for _, c := range commands {
			all = append(all, node.B().Asking().Build(), c)
		}
		for i, result := range node.DoMulti(ctx, all...) {
			if i%2 == 1 {
				results = append(results, result)
			}
		}
		return results
	}
}
