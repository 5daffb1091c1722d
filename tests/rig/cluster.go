package rig

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
)

// Cluster is a Redis Cluster of three masters, for one test.
type Cluster struct {
	tb    testing.TB
	nodes []*clusterNode
}

type clusterNode struct {
	*Server
	admin *Admin
	id    string
}

const clusterSlots = 16384

// NewCluster starts the masters, shares the slots out and waits until all of them
// agree.
func NewCluster(tb testing.TB) *Cluster {
	tb.Helper()
	Need(tb, Process)
	c := &Cluster{tb: tb}
	for range 3 {
		c.start()
	}
	c.join()
	Eventually(tb, startPatience, "the cluster is complete", c.complete)
	return c
}

func (c *Cluster) start() {
	bus, err := freePort()
	if err != nil {
		c.tb.Fatalf("rig: %v", err)
	}
	server := Fresh(c.tb, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-port", strconv.Itoa(bus))
	node := &clusterNode{Server: server, admin: NewAdmin(c.tb, server)}
	node.id = node.admin.Text("CLUSTER", "MYID")
	c.nodes = append(c.nodes, node)
	node.admin.Do("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(len(c.nodes)))
	first := c.nodes[0]
	if node == first {
		return
	}
	host, port, _ := net.SplitHostPort(node.Addr())
	c.must(first.admin.Do("CLUSTER", "MEET", host, port, strconv.Itoa(bus)).Error())
}

func (c *Cluster) join() {
	share := clusterSlots / len(c.nodes)
	for i, node := range c.nodes {
		last := (i+1)*share - 1
		if i == len(c.nodes)-1 {
			last = clusterSlots - 1
		}
		c.must(node.admin.Do("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(i*share), strconv.Itoa(last)).Error())
	}
}

// complete returns nil when every node knows the others and serves.
func (c *Cluster) complete() error {
	for _, node := range c.nodes {
		info := node.admin.Text("CLUSTER", "INFO")
		known := fmt.Sprintf("cluster_known_nodes:%d", len(c.nodes))
		if !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, known) {
			return errors.New(info)
		}
	}
	return nil
}

func (c *Cluster) must(err error) {
	c.tb.Helper()
	if err != nil {
		c.tb.Fatalf("rig: cluster: %v", err)
	}
}

// URL is the address of one node; a client finds the others.
func (c *Cluster) URL() string { return c.nodes[0].URL() }

// ServePartly lets the masters serve on while one of them is gone.
func (c *Cluster) ServePartly() {
	c.tb.Helper()
	for _, node := range c.nodes {
		c.must(node.admin.Do("CONFIG", "SET", "cluster-require-full-coverage", "no").Error())
	}
}

// Serving returns the master that serves a key, and a connection to it.
func (c *Cluster) Serving(key string) (*Server, *Admin) {
	c.tb.Helper()
	node, _ := c.owner(strconv.FormatInt(c.nodes[0].admin.Int("CLUSTER", "KEYSLOT", key), 10))
	return node.Server, node.admin
}

// MoveSlot moves the slot of a key, with the keys in it, to the next master.
func (c *Cluster) MoveSlot(key string) {
	c.tb.Helper()
	slot := strconv.FormatInt(c.nodes[0].admin.Int("CLUSTER", "KEYSLOT", key), 10)
	from, to := c.owner(slot)
	c.must(to.admin.Do("CLUSTER", "SETSLOT", slot, "IMPORTING", from.id).Error())
	c.must(from.admin.Do("CLUSTER", "SETSLOT", slot, "MIGRATING", to.id).Error())
	host, port, _ := net.SplitHostPort(to.Addr())
	for _, moving := range from.admin.Strings("CLUSTER", "GETKEYSINSLOT", slot, "1000") {
		c.must(from.admin.Do("MIGRATE", host, port, moving, "0", "5000").Error())
	}
	for _, node := range []*clusterNode{to, from} {
		c.must(node.admin.Do("CLUSTER", "SETSLOT", slot, "NODE", to.id).Error())
	}
}

// owner finds who serves a slot, and who is to serve it next.
func (c *Cluster) owner(slot string) (from, to *clusterNode) {
	c.tb.Helper()
	for i, node := range c.nodes {
		if node.serves(slot) {
			return node, c.nodes[(i+1)%len(c.nodes)]
		}
	}
	c.tb.Fatalf("rig: nobody serves slot %s", slot)
	return nil, nil
}

// serves reports whether the node's own line in CLUSTER NODES names the slot.
func (n *clusterNode) serves(slot string) bool {
	want, _ := strconv.Atoi(slot)
	for line := range strings.Lines(n.admin.Text("CLUSTER", "NODES")) {
		fields := strings.Fields(line)
		if len(fields) < 8 || !strings.Contains(fields[2], "myself") {
			continue
		}
		for _, span := range fields[8:] {
			low, high, ranged := strings.Cut(span, "-")
			if !ranged {
				high = low
			}
			from, err1 := strconv.Atoi(low)
			to, err2 := strconv.Atoi(high)
			if err1 == nil && err2 == nil && from <= want && want <= to {
				return true
			}
		}
	}
	return false
}
