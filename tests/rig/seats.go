package rig

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

const clusterSlots = 16384

// seat is the place of a node in a cluster that will be started. Every node gets the file in which
// a cluster node stores its state, so that no node has to be introduced to another.
//
// A master that starts waits two seconds before it serves. Therefore all nodes start as replicas of
// masters that do not exist, and the future masters take over from these.
type seat struct {
	id          string
	port, bus   int
	placeholder *seat  // the master that does not exist; nil for a placeholder
	master      bool   // it takes over
	slots       string // of a placeholder
}

// seats plans a cluster: the masters in the order of their slots, then the replicas
// of each.
func seats(masters, replicas int) (nodes, placeholders []*seat, err error) {
	ports, err := freeNodePorts(masters * (1 + replicas))
	if err != nil {
		return nil, nil, err
	}
	for i := range masters {
		first, last := i*clusterSlots/masters, (i+1)*clusterSlots/masters-1
		placeholders = append(placeholders, &seat{id: nodeID(), port: 1, bus: 1, slots: fmt.Sprintf("%d-%d", first, last)})
	}
	for i := range masters * (1 + replicas) {
		nodes = append(nodes, &seat{
			id: nodeID(), port: ports[i], bus: ports[i] + busOffset,
			placeholder: placeholders[i%masters], master: i < masters,
		})
	}
	return nodes, placeholders, nil
}

func nodeID() string {
	return fmt.Sprintf("%016x%016x%08x", rand.Uint64(), rand.Uint64(), rand.Uint32())
}

// line returns the line of a seat in nodes.conf.
func (s *seat) line(flags, master string, epoch int) string {
	return fmt.Sprintf("%s 127.0.0.1:%d@%d%s %s %s 0 0 %d connected %s\n", s.id, s.port, s.bus, s.shard(), flags, master, epoch, s.slots)
}

// shard assigns a node to the shard of its master. Otherwise servers that have shard ids would make
// one up for each node, and for several seconds omit masters from CLUSTER SHARDS, from which
// clients learn where the slots are.
func (s *seat) shard() string {
	if !knowsShards() {
		return ""
	}
	return ",,shard-id=" + cmp.Or(s.placeholder, s).id
}

// configuration returns the nodes.conf of this node.
func (s *seat) configuration(nodes, placeholders []*seat) string {
	var text strings.Builder
	for i, placeholder := range placeholders {
		text.WriteString(placeholder.line("master", "-", i+1))
	}
	for _, n := range nodes {
		flags := "slave"
		if n == s {
			flags = "myself,slave"
		}
		text.WriteString(n.line(flags, n.placeholder.id, 0))
	}
	fmt.Fprintf(&text, "vars currentEpoch %d lastVoteEpoch 0\n", len(placeholders))
	return text.String()
}

// process returns the server of a seat, not started yet.
func (s *seat) process(settings []string) (*localProcess, error) {
	return newProcess(s.port, append([]string{
		"--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1",
		"--cluster-node-timeout", strconv.FormatInt(nobodyDies.Milliseconds(), 10), "--repl-diskless-sync-delay", "0",
	}, settings...)...)
}

// start starts the server of a seat.
func (s *seat) start(nodes, placeholders []*seat, settings []string) (*node, error) {
	p, err := s.process(settings)
	if err != nil {
		return nil, err
	}
	if err = p.write("nodes.conf", s.configuration(nodes, placeholders)); err == nil {
		err = p.start()
	}
	if err == nil {
		var n *node
		if n, err = newNode(p); err == nil {
			return n, nil
		}
	}
	p.remove()
	return nil, err
}
