package transport

import (
	"context"
	"errors"

	"github.com/redis/rueidis"
)

// connSender sends commands one after the other over one connection.
type connSender func(ctx context.Context, commands ...rueidis.Completed) []rueidis.RedisResult

// openSender returns a sender that follows no redirection, because that would separate commands
// that belong together. A blocking command has a connection of its own anyway. Only the client of a
// cluster needs a dedicated connection for this; it cleans that up on release, which takes a round
// trip.
func openSender(client rueidis.Client) (send connSender, release func()) {
	if client.Mode() != rueidis.ClientModeCluster {
		return client.DoMulti, func() {}
	}
	conn, release := client.Dedicate()
	return conn.DoMulti, release
}

// errElsewhere means that another node of the cluster has the key.
var errElsewhere = errors.New("latchkey: the slot is on another node")

func redirected(err error) bool { return HasCode(err, "MOVED ") || HasCode(err, "ASK ") }

// elsewhere returns a sender to the node that err names as the owner of the key, or nil. The client
// itself learns of a moved slot only after up to a second, and never of keys that have moved before
// their slot.
func elsewhere(client rueidis.Client, err error) connSender {
	var reply *rueidis.RedisError
	if !errors.As(err, &reply) {
		return nil
	}
	moved, hasMoved := reply.IsMoved()
	asked, importing := reply.IsAsk()
	node := client.Nodes()[moved+asked]
	switch {
	case node != nil && hasMoved:
		return node.DoMulti
	case node != nil && importing:
		return asking(node)
	}
	return nil
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
