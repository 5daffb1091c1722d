package transport

import (
	"context"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

const (
	// topologyAge is how long a client relies on what it knows of a cluster, and troubledAge is the
	// same while a node is in trouble. They affect only which callers have to wait for each other.
	topologyAge = 10 * time.Second
	troubledAge = time.Second
	// topologyPatience is how long to wait for an answer.
	topologyPatience = time.Second
)

// Node is a server that receives commands. Nodes do not affect each other: each has its own limits
// for commands in flight.
type Node struct {
	address     string
	connections connTracker
	ordinary    *inflight
	reserved    *inflight // for renewals, releases and undo
	lines       sync.Map  // a *NodeLine for each owner
	grouping    grouping
	texts       sync.Map // the scripts that it has received as text, each by its *rueidis.Lua
}

// firstAsText returns a command in the form to send to the node now: a script goes as text the
// first time, because the server may not know it, and a digest would then cost a second request.
// Others that send it at the same moment send the digest, which usually arrives after the text. A
// server that has lost its scripts, or another in its place, requests the text.
func (n *Node) firstAsText(cmd Command) Command {
	if cmd.lua != nil {
		_, sent := n.texts.LoadOrStore(cmd.lua, true)
		cmd.asText = !sent
	}
	return cmd
}

func (t *Topology) newNode(address string) *Node {
	return &Node{
		address:     address,
		connections: connTracker{all: &t.breaks},
		ordinary:    newInflight(t.limit),
		reserved:    newInflight(reservedSlots),
	}
}

// slotsFor returns the slots from which a command takes one. Acquisitions cannot take the slots
// that existing holds need.
func (n *Node) slotsFor(cmd Command) *inflight {
	if cmd.reserved {
		return n.reserved
	}
	return n.ordinary
}

// steady reports whether a command that is sent now finds a connection on which nothing is overdue.
// It returns the current generation, with which the answer has to be noted.
func (n *Node) steady() (now Generation, steady bool) {
	now, steady = n.connections.look()
	return now, steady && !n.ordinary.anyAbandoned.Load() && !n.reserved.anyAbandoned.Load()
}

// Topology knows the nodes, and which of them serves which slot of a cluster, so that a silent node
// does not delay callers of another. Without a cluster there is one node. Behind Sentinel the
// master may change, but it stays the same Node.
type Topology struct {
	Cluster bool // whether the servers are a cluster; never changes
	// fixed means that the client opens all connections to one address and nobody tells it when
	// another server takes over: only a new connection shows that.
	fixed  atomic.Bool
	limit  int
	common *Node        // serves everything while nothing else is known
	breaks atomic.Int64 // of connections to any node

	mu        sync.Mutex
	nodes     map[string]*Node // by address
	owners    atomic.Pointer[slotOwners]
	querying  atomic.Bool
	queriedAt atomic.Int64 // the time of the last query, as a time.Duration on the monotonic clock
}

// slotOwners says which node serves each slot.
type slotOwners struct {
	nodes []*Node
	of    [1 << 14]uint16
}

// NewTopology returns a topology with one node, which serves everything. limit bounds the commands
// in flight to each node.
func NewTopology(cluster bool, limit int) *Topology {
	t := &Topology{Cluster: cluster, limit: limit, nodes: map[string]*Node{}}
	t.common = t.newNode("")
	return t
}

// heed looks at a reply of the node. If only a new connection can help, it closes those that there
// are.
func (t *Topology) heed(n *Node, result rueidis.RedisResult) {
	if t.fixed.Load() && outcome.IsAway(result.Error()) {
		n.connections.replace(result.Error())
	}
}

// node returns the node with an address.
func (t *Topology) node(address string) *Node {
	if !t.Cluster {
		return t.common
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.nodes[address]
	if n == nil {
		n = t.newNode(address)
		t.nodes[address] = n
	}
	return n
}

// Address returns the address of the node. It is empty while that is unknown, and without a
// cluster.
func (n *Node) Address() string { return n.address }

// Serving returns the node that serves a slot. While that is unknown, and without a cluster, it is
// the same node for all slots.
func (t *Topology) Serving(slot uint16) *Node {
	owners := t.owners.Load()
	if owners == nil {
		return t.common
	}
	return owners.nodes[owners.of[slot]]
}

// SlotOf returns the slot of a key in a cluster, and 0 elsewhere.
func (t *Topology) SlotOf(key string) uint16 {
	if !t.Cluster {
		return 0
	}
	return keyspace.Slot(key)
}

// peer is a node that can be queried.
type peer struct {
	*Node
	client rueidis.Client
}

// peers returns the nodes of a cluster in the order in which to query them: connected masters
// first, nodes that may be silent last.
func (t *Topology) peers(client rueidis.Client) []peer {
	var all []peer
	for address, each := range client.Nodes() {
		all = append(all, peer{t.node(address), each})
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	owners := t.owners.Load()
	rank := func(p peer) (rank int) {
		if _, steady := p.steady(); !steady {
			rank += 2
		}
		if owners != nil && !slices.Contains(owners.nodes, p.Node) {
			rank++
		}
		return rank
	}
	slices.SortStableFunc(all, func(a, b peer) int { return rank(a) - rank(b) })
	return all
}

// due reports whether it is time for a query. If so, the caller has to call Learn.
func (t *Topology) due(now time.Duration, troubled bool) bool {
	age := topologyAge
	if troubled || t.owners.Load() == nil {
		age = troubledAge
	}
	return now-time.Duration(t.queriedAt.Load()) > age && t.querying.CompareAndSwap(false, true)
}

// keepKnown queries the nodes of a cluster in the background if it is time to.
func (s *Sender) keepKnown(troubled bool) {
	if now, _ := s.now(); s.Topology.due(now.Mono, troubled) {
		s.Background(func() { s.Learn(context.Background()) })
	}
}

// Learn queries the nodes of a cluster for the owners of the slots, for at most a second, and
// reports whether one answered. If none does, the previous knowledge stays.
func (s *Sender) Learn(ctx context.Context) (learned bool) {
	t := s.Topology
	defer t.querying.Store(false)
	now, _ := s.now()
	t.queriedAt.Store(int64(now.Mono))
	ctx, cancel := context.WithTimeout(ctx, topologyPatience)
	defer cancel()
	address, reply := s.QueryAnyNode(ctx, func(ctx context.Context, client rueidis.Client) rueidis.RedisResult {
		return client.Do(ctx, client.B().ClusterSlots().Build())
	})
	ranges, err := reply.ToArray()
	if err != nil {
		return false
	}
	owners := t.read(ranges, address)
	if owners == nil {
		return false
	}
	t.owners.Store(owners)
	t.forget(s.Client.Nodes(), owners)
	return true
}

// forget drops the nodes that no longer exist.
func (t *Topology) forget(there map[string]rueidis.Client, owners *slotOwners) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for address, n := range t.nodes {
		if there[address] == nil && !slices.Contains(owners.nodes, n) {
			delete(t.nodes, address)
		}
	}
}

// read parses the reply to CLUSTER SLOTS: for each range of slots the first, the last, and its
// nodes, the master first. It returns nil for anything else.
func (t *Topology) read(ranges []rueidis.RedisMessage, from string) *slotOwners {
	owners := &slotOwners{nodes: []*Node{t.common}}
	for _, r := range ranges {
		parts, err := r.ToArray()
		if err != nil || len(parts) < 3 {
			return nil
		}
		first, err1 := parts[0].AsInt64()
		last, err2 := parts[1].AsInt64()
		master, err3 := parts[2].ToArray()
		if err1 != nil || err2 != nil || err3 != nil || len(master) < 2 || first < 0 || last >= int64(len(owners.of)) {
			return nil
		}
		number := owners.number(t.node(addressOf(master, from)))
		for slot := first; slot <= last; slot++ {
			owners.of[slot] = number
		}
	}
	return owners
}

// addressOf returns the address of a node, as rueidis writes it. If a node does not know its own
// host, that is the host of the node that answered.
func addressOf(node []rueidis.RedisMessage, from string) string {
	host, _ := node[0].ToString()
	port, _ := node[1].AsInt64()
	if host == "" {
		host, _, _ = net.SplitHostPort(from)
	}
	return net.JoinHostPort(host, strconv.FormatInt(port, 10))
}

func (o *slotOwners) number(n *Node) uint16 {
	i := slices.Index(o.nodes, n)
	if i < 0 {
		i = len(o.nodes)
		o.nodes = append(o.nodes, n)
	}
	return uint16(i)
}
