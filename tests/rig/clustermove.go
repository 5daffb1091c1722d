package rig

import (
	"fmt"
	"net"
	"strconv"
)

// MoveSlot moves the slot of a key, with the keys in it, to the next master.
func (c *Cluster) MoveSlot(key string) {
	c.tb.Helper()
	moveKeys, finish := c.BeginMove(key)
	moveKeys(EveryKey)
	finish()
}

// EveryKey selects all keys of a slot.
func EveryKey(string) bool { return true }

// BeginMove is MoveSlot in steps: moveKeys moves the selected keys of those that are left, and
// finish ends the move once all have been moved.
func (c *Cluster) BeginMove(key string) (moveKeys func(which func(key string) bool), finish func()) {
	c.tb.Helper()
	slot := strconv.Itoa(Slot(key))
	from := c.owner(key)
	to := c.after(from)
	c.order(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", c.id(from))
	c.order(from, "CLUSTER", "SETSLOT", slot, "MIGRATING", c.id(to))
	host, port, _ := net.SplitHostPort(to.Addr())
	moveKeys = func(which func(key string) bool) {
		c.tb.Helper()
		c.moving.Lock()
		defer c.moving.Unlock()
		for _, moving := range c.admin(from).Strings("CLUSTER", "GETKEYSINSLOT", slot, "1000") {
			if which(moving) {
				c.order(from, "MIGRATE", host, port, moving, "0", "5000", "REPLACE") // what an earlier try has left
			}
		}
	}
	finish = func() {
		c.tb.Helper()
		c.moving.Lock() // a node that gives one slot away while it receives another may claim both
		defer c.moving.Unlock()
		Eventually(c.tb, healPatience, "the slot has moved", func() error { return c.handOver(slot, to) })
	}
	return moveKeys, finish
}

// Disagree makes two masters, one of which owns the slot of a key, each consider the other the
// owner, until agree is called.
func (c *Cluster) Disagree(key string) (agree func()) {
	c.tb.Helper()
	slot, owner := strconv.Itoa(Slot(key)), c.owner(key)
	other := c.after(owner)
	c.order(other, "CLUSTER", "SETSLOT", slot, "NODE", c.id(owner))
	c.order(owner, "CLUSTER", "SETSLOT", slot, "NODE", c.id(other))
	return func() {
		c.tb.Helper()
		Eventually(c.tb, healPatience, "the nodes agree", func() error { return c.handOver(slot, owner) })
	}
}

// handOver tells all masters who owns a slot, and returns nil once they know. While several slots
// move, an outdated claim may make a node forget one of them.
func (c *Cluster) handOver(slot string, to *node) error {
	masters, err := leaders(c.nodes)
	if err != nil {
		return err
	}
	id, err := to.id()
	if err != nil {
		return err
	}
	for _, n := range append([]*node{to}, masters...) {
		if err := n.do("CLUSTER", "SETSLOT", slot, "NODE", id).Error(); err != nil {
			return err
		}
	}
	return settled(masters, slot, to)
}

// settled returns nil if the given master owns the slot, and no other master does.
func settled(masters []*node, slot string, to *node) error {
	number, err := strconv.Atoi(slot)
	for _, n := range masters {
		if n.serves(number) != (n == to) {
			err = fmt.Errorf("%s is wrong about slot %s", n.Addr(), slot)
		}
	}
	return err
}

func (n *node) id() (string, error) { return n.ask("CLUSTER", "MYID") }

func (c *Cluster) id(n *node) (id string) {
	c.tb.Helper()
	Eventually(c.tb, healPatience, "the id of "+n.Addr(), func() (err error) {
		id, err = n.id()
		return err
	})
	return id
}

// after returns the next master after n.
func (c *Cluster) after(n *node) *node {
	c.tb.Helper()
	return c.search("the next master", func() (*node, error) {
		masters, err := leaders(c.nodes)
		for i, master := range masters {
			if master == n {
				return masters[(i+1)%len(masters)], nil
			}
		}
		return nil, fmt.Errorf("%s is no master: %w", n.Addr(), err)
	})
}
