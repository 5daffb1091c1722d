package rig

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// clusterTimeout is how long a node of a test's own cluster may be silent before the others
	// consider it dead.
	clusterTimeout = 1500 * time.Millisecond
	// healPatience is how long a topology may take to be whole again.
	healPatience = time.Minute
)

// Cluster is a Redis Cluster of three masters, for one test.
type Cluster struct {
	ensemble

	// moving is held while keys move: a node that is sending a key serves nobody, so two nodes that
	// send keys to each other would deadlock.
	moving *sync.Mutex
}

// NewCluster starts a cluster in which each master has a replica, and waits until all of its nodes
// agree.
func NewCluster(tb testing.TB) *Cluster {
	tb.Helper()
	return newCluster(tb, 1, clusterTimeout)
}

// NewStubbornCluster starts a cluster without replicas in which no node is ever considered dead: a
// paused master keeps its slots.
func NewStubbornCluster(tb testing.TB) *Cluster {
	tb.Helper()
	return newCluster(tb, 0, nobodyDies)
}

func newCluster(tb testing.TB, replicas int, timeout time.Duration) *Cluster {
	tb.Helper()
	Need(tb, Topology)
	nodes, err := startCluster(3, replicas, timeout, nil)
	if err != nil {
		tb.Fatalf("rig: cluster: %v", err)
	}
	tb.Cleanup(func() { closeNodes(nodes) })
	return &Cluster{newEnsemble(tb, nodes), new(sync.Mutex)}
}

// In returns the cluster for a subtest, which then ends when one of the cluster's methods fails.
func (c *Cluster) In(tb testing.TB) *Cluster { return &Cluster{newEnsemble(tb, c.nodes), c.moving} }

// startCluster returns the nodes of a cluster that is ready to serve, the masters first.
func startCluster(masters, replicas int, timeout time.Duration, settings []string) (nodes []*node, err error) {
	for range startTries {
		if nodes, err = tryCluster(masters, replicas, timeout, settings); err == nil {
			return nodes, nil
		}
		closeNodes(nodes)
	}
	return nil, err
}

func tryCluster(masters, replicas int, timeout time.Duration, settings []string) (nodes []*node, err error) {
	plan, placeholders, err := seats(masters, replicas)
	if err != nil {
		return nil, err
	}
	for _, s := range plan {
		n, err := s.start(plan, placeholders, settings)
		if err != nil {
			return nodes, err
		}
		nodes = append(nodes, n)
	}
	err = replacePlaceholders(nodes, masters, placeholders)
	for _, n := range nodes {
		if err == nil {
			err = n.setTimeout(timeout)
		}
	}
	return nodes, err
}

// setTimeout sets how long others may be silent before the node considers them dead. Until the
// cluster is whole that is for ever: on a busy machine a start takes longer than the timeout, and
// the placeholders would count as dead.
func (n *node) setTimeout(timeout time.Duration) error {
	const name = "cluster-node-timeout"
	millis := strconv.FormatInt(timeout.Milliseconds(), 10)
	n.process.args = append(n.process.args, "--"+name, millis) // for a restart
	return until(n.Addr()+" has its timeout", func() error { return n.do("CONFIG", "SET", name, millis).Error() })
}

// replacePlaceholders makes the first nodes take over from the placeholders, makes all nodes forget
// the placeholders, and waits until all nodes serve.
func replacePlaceholders(nodes []*node, masters int, placeholders []*seat) error {
	for _, n := range nodes[:masters] {
		if err := n.takeOver(); err != nil {
			return err
		}
	}
	if err := until("the replicas follow their masters", func() error { return led(nodes, masters) }); err != nil {
		return err
	}
	for _, n := range nodes {
		for _, placeholder := range placeholders {
			if err := n.forget(placeholder); err != nil {
				return err
			}
		}
	}
	return until("the cluster is whole", func() error { return clusterWhole(nodes, masters) })
}

// takeOver makes a replica the master, once it serves.
func (n *node) takeOver() error {
	err := until("a replica serves", n.serving)
	if err == nil {
		err = until("a replica takes over", func() error {
			if fields, err := n.replication(); err == nil && fields["role"] == "master" {
				return nil
			}
			_, err := n.ask("CLUSTER", "FAILOVER", "TAKEOVER")
			return err
		})
	}
	return err
}

// forget makes the node forget another one.
func (n *node) forget(other *seat) error {
	return until(n.Addr()+" forgets", func() error {
		_, err := n.ask("CLUSTER", "FORGET", other.id)
		if err != nil && strings.Contains(err.Error(), "Unknown node") { // an earlier try was late, not lost
			return nil
		}
		return err
	})
}

// serving returns nil if the node is ready to serve.
func (n *node) serving() error {
	info, err := n.ask("CLUSTER", "INFO")
	if err == nil && !strings.Contains(info, "cluster_state:ok") {
		err = fmt.Errorf("%s does not serve: %s", n.Addr(), info)
	}
	return err
}

// led returns nil if every node sees that the planned masters have the slots, and the replicas
// follow them. A node that forgot a placeholder before it knows its successor would miss slots.
func led(nodes []*node, masters int) error {
	for i, n := range nodes {
		fields, err := n.replication()
		if err != nil {
			return err
		}
		leader := nodes[i%masters].process.port
		if i >= masters && fields["master_port"] != strconv.Itoa(leader) {
			return fmt.Errorf("%s does not follow %d", n.Addr(), leader)
		}
		view, err := n.view()
		if err != nil {
			return err
		}
		for _, peer := range view {
			if peer.placeholder() && len(peer.slots) > 0 {
				return fmt.Errorf("%s knows nobody who has taken over %v", n.Addr(), peer.slots)
			}
		}
	}
	return nil
}

// clusterWhole returns nil if every node serves and sees that the others serve.
func clusterWhole(nodes []*node, masters int) error {
	serving, err := leaders(nodes)
	if err == nil && len(serving) != masters {
		err = fmt.Errorf("%d masters", len(serving))
	}
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if err := n.content(len(nodes), masters); err != nil {
			return fmt.Errorf("%s: %w", n.Addr(), err)
		}
	}
	return nil
}

// content returns nil if the node serves, knows that many nodes, all of them well, and knows that
// many masters with slots.
func (n *node) content(nodes, masters int) error {
	if err := n.serving(); err != nil {
		return err
	}
	view, err := n.view()
	if err != nil {
		return err
	}
	serving := 0
	for _, peer := range view {
		if err := peer.well(); err != nil {
			return err
		}
		if len(peer.slots) > 0 {
			serving++
		}
	}
	if len(view) != nodes || serving != masters {
		return fmt.Errorf("it knows %d nodes, %d of them with slots", len(view), serving)
	}
	return nil
}

// URL names all nodes.
func (c *Cluster) URL() string { return clusterURL(c.nodes).String() }

// Server returns the cluster as a single server, like that of the cluster backend.
func (c *Cluster) Server() *Server { return clusterOf(c.nodes) }

func clusterURL(nodes []*node) *url.URL {
	query := url.Values{}
	for _, n := range nodes[1:] {
		query.Add("addr", n.Addr())
	}
	return &url.URL{Scheme: "redis", Host: nodes[0].Addr(), RawQuery: query.Encode()}
}

// ServePartly lets the masters continue to serve while one of them is gone.
func (c *Cluster) ServePartly() {
	c.tb.Helper()
	for _, n := range c.nodes {
		c.order(n, "CONFIG", "SET", "cluster-require-full-coverage", "no")
	}
}

// Serving returns the master that serves a key, and a connection to it.
func (c *Cluster) Serving(key string) (*Server, *Admin) {
	c.tb.Helper()
	n := c.owner(key)
	return n.Server, c.admin(n)
}

// Replica returns the replica of the master that serves a key, and a connection to it.
func (c *Cluster) Replica(key string) (*Server, *Admin) {
	c.tb.Helper()
	n := c.follower(c.owner(key))
	return n.Server, c.admin(n)
}

// Failover promotes the replica of the master that serves a key, with the agreement of that master,
// and waits until all nodes know.
func (c *Cluster) Failover(key string) {
	c.tb.Helper()
	from := c.owner(key)
	next := c.follower(from)
	c.insist("a failover", func() error { return next.do("CLUSTER", "FAILOVER").Error() }, func() error {
		_, err := c.find(key, from.Server)
		return err
	})
	c.await()
}

// Kill ends the master that serves a key without warning, and returns it.
func (c *Cluster) Kill(key string) *Server { c.tb.Helper(); return c.kill(c.owner(key)) }

// Pause suspends the process of the master that serves a key, and returns it.
func (c *Cluster) Pause(key string) *Server { c.tb.Helper(); return c.pause(c.owner(key)) }

// Successor waits until a server other than of serves a key, and returns it.
func (c *Cluster) Successor(key string, of *Server) *Server {
	c.tb.Helper()
	return c.search("a failover", func() (*node, error) { return c.find(key, of) }).Server
}

// Heal restarts killed nodes, resumes paused ones, and waits until the cluster is whole.
func (c *Cluster) Heal() {
	c.tb.Helper()
	c.revive()
	c.await()
}

func (c *Cluster) await() {
	c.tb.Helper()
	Eventually(c.tb, healPatience, "the cluster is whole", func() error { return clusterWhole(c.nodes, 3) })
}

// owner returns the master that serves a key.
func (c *Cluster) owner(key string) *node {
	c.tb.Helper()
	return c.search("a master", func() (*node, error) { return c.find(key, nil) })
}

// find returns the master that serves a key. It ignores the server but.
func (c *Cluster) find(key string, but *Server) (*node, error) {
	slot := Slot(key)
	n := c.first(func(n *node) bool { return n.Server != but && n.serves(slot) })
	if n == nil {
		return nil, fmt.Errorf("nobody serves %q", key)
	}
	return n, nil
}

// follower returns the replica of a master.
func (c *Cluster) follower(of *node) *node {
	c.tb.Helper()
	return c.search("a replica", func() (*node, error) {
		n := c.first(func(n *node) bool {
			fields, err := n.replication()
			return err == nil && fields["role"] == "slave" && fields["master_port"] == strconv.Itoa(of.process.port)
		})
		if n == nil {
			return nil, fmt.Errorf("%s has no replica", of.Addr())
		}
		return n, nil
	})
}
