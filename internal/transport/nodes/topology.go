package nodes

import (
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
)

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

	mu     sync.Mutex
	nodes  map[string]*Node // by address
	owners atomic.Pointer[slotOwners]
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

// Peer is a node, with a client that reaches it.
type Peer struct {
	*Node
	Client rueidis.Client
}

// Peers returns the nodes of a cluster in the order in which to query them: connected masters
// first, nodes that may be silent last.
func (t *Topology) Peers(client rueidis.Client) []Peer {
	var all []Peer
	for address, each := range client.Nodes() {
		all = append(all, Peer{t.node(address), each})
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	owners := t.owners.Load()
	rank := func(p Peer) (rank int) {
		if _, steady := p.Steady(); !steady {
			rank += 2
		}
		if owners != nil && !slices.Contains(owners.nodes, p.Node) {
			rank++
		}
		return rank
	}
	slices.SortStableFunc(all, func(a, b Peer) int { return rank(a) - rank(b) })
	return all
}

// Known reports whether it is known which nodes serve the slots of a cluster.
func (t *Topology) Known() bool { return t.owners.Load() != nil }

// Learn reads the reply of a node to CLUSTER SLOTS, and reports whether it says who serves the
// slots. If not, the previous knowledge stays.
func (t *Topology) Learn(from string, reply rueidis.RedisResult, client rueidis.Client) (learned bool) {
	ranges, err := reply.ToArray()
	if err != nil {
		return false
	}
	owners := t.read(ranges, from)
	if owners == nil {
		return false
	}
	t.owners.Store(owners)
	t.forget(client.Nodes(), owners)
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
