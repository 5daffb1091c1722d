package pubsub

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/transport"
	"github.com/latchkey-go/latchkey/internal/transport/nodes"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
	"github.com/latchkey-go/latchkey/internal/transport/retry"
)

// Sharded messages (Redis 7) stay on the node that owns the slot of the channel, so there is a
// listener for each node. The nodes themselves say which one that is: a wrong node answers MOVED,
// and a node that gives a slot away ends its subscriptions.

// MeetCluster reads the topology of a cluster, and decides how messages travel, by the rule that
// Redisson follows: sharded on a cluster whose servers know them, unless the program wants classic
// ones. A client is opened once, so a short budget must not make this call fail.
func MeetCluster(c *transport.Sender, classic bool, budget time.Duration) (sharded bool, err error) {
	if !c.Topology.Cluster {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), max(budget, nodes.DialTimeout))
	defer cancel()
	c.Learn(ctx)
	if classic {
		return false, nil
	}
	err = transport.UntilAnswered(ctx, func() error {
		_, reply := c.QueryAnyNode(ctx, func(ctx context.Context, client rueidis.Client) rueidis.RedisResult {
			return client.Do(ctx, client.B().PubsubShardnumsub().Build())
		})
		return reply.Error()
	})
	switch got := outcome.Classify(err); {
	case got == outcome.Answered:
		return true, nil
	case got != outcome.Refused:
		return false, err
	}
	return false, nil
}

// nodes returns the nodes on which a channel may be subscribed: none for classic messages. It may
// wait for a client that is being opened, so the caller must not hold n.mu.
func (n *Notifier) nodes() map[string]rueidis.Client {
	if !n.Sharded {
		return nil
	}
	return n.sender.Client.Nodes()
}

// node returns the address on which to subscribe to a channel: "" for classic messages, which reach
// every node. n.mu is held.
func (n *Notifier) node(nodes map[string]rueidis.Client, channel string) string {
	if !n.Sharded {
		return ""
	}
	slot := keyspace.Slot(channel)
	if address, known := n.owners[slot]; known && nodes[address] != nil {
		return address
	}
	if address := n.sender.Topology.Serving(slot).Address(); nodes[address] != nil {
		return address
	}
	for address := range nodes {
		return address // any node will do: it knows the right one
	}
	return ""
}

// client returns the client to open the link with, or nil if the node is gone.
func (l *listener) client() rueidis.Client {
	if !l.Sharded {
		return l.sender.Client
	}
	return l.sender.Client.Nodes()[l.address]
}

// movePause prevents a tight loop of requests to a cluster whose nodes contradict each other.
const movePause = 50 * time.Millisecond

// redirect moves a subscription to the node that a MOVED error names, and reports whether it names
// one.
func (l *listener) redirect(channel string, err error) bool {
	address, asks, redirected := outcome.Redirection(err)
	if asks || !redirected {
		return false
	}
	slot := keyspace.Slot(channel)
	l.Notifier.mu.Lock()
	contradicts := l.owners[slot] == l.address
	l.owners[slot] = address
	l.Notifier.mu.Unlock()
	if contradicts {
		_ = retry.Rest(context.Background(), l.closed, rand.N(movePause))
	}
	for _, s := range l.find(channel) {
		l.move(s)
	}
	return true
}

// subscribed is called when the node has accepted a subscription: it owns the slot of the channel.
// The node may be a replica. Without the record, the next channel of the slot, or the next lock
// with the same channel, might use the master instead.
func (l *listener) subscribed(channel string) {
	l.Notifier.mu.Lock()
	defer l.Notifier.mu.Unlock()
	l.owners[keyspace.Slot(channel)] = l.address
}

// move hands a subscription to the listener of the node that owns it now. That may be this listener
// again, until the nodes agree.
func (l *listener) move(s *Subscription) {
	if !l.forget(s) {
		return
	}
	l.mu.Lock()
	s.requestedOn = 0
	l.mu.Unlock()
	l.Add(s)
}

// unsubscribed is called when the node has ended a subscription because it gave the slot away.
func (l *listener) unsubscribed(s *Subscription) {
	l.mu.Lock()
	l.ended = append(l.ended, s)
	l.mu.Unlock()
	async.Signal(l.signals)
}

// moveEnded looks for the new owners of slots that the node has given away.
func (l *listener) moveEnded() {
	l.mu.Lock()
	ended := l.ended
	l.ended = nil
	l.mu.Unlock()
	for _, s := range ended {
		l.forgetSlot(keyspace.Slot(s.Channel))
		l.move(s)
	}
}

// lookForMaster gives the link up if another node is the master of a slot that it listens to. After
// a failover, the former master may replicate from the new one without ending subscriptions: it
// forwards all messages, but the new master does not count its subscribers. See recount.
func (l *listener) lookForMaster(ctx context.Context, k *link) {
	if !l.sender.Learn(ctx) {
		return
	}
	nodes := l.nodes()
	for _, s := range l.snapshot() {
		master := l.sender.Topology.Serving(keyspace.Slot(s.Channel)).Address()
		if s.Live() && master != l.address && nodes[master] != nil {
			l.giveUp(k)
			return
		}
	}
}

// forgetSlot deletes the record that the node owns a slot.
func (l *listener) forgetSlot(slot uint16) {
	l.Notifier.mu.Lock()
	defer l.Notifier.mu.Unlock()
	if l.owners[slot] == l.address {
		delete(l.owners, slot)
	}
}

// moveAll moves all subscriptions away from a node whose link has broken: the node may be down for
// good, and another may have its slots.
func (l *listener) moveAll() {
	if !l.Sharded {
		return
	}
	for _, s := range l.snapshot() {
		l.forgetSlot(keyspace.Slot(s.Channel))
		l.move(s)
	}
}
