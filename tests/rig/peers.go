package rig

import (
	"fmt"
	"strconv"
	"strings"
)

// peer is what a node of a cluster knows about another node, or about itself: a line of CLUSTER
// NODES.
type peer struct {
	address string
	flags   []string
	master  string // the id of a replica's master, if known
	link    string
	slots   []string // "7" or "0-5460"; slots that are moving are in brackets
}

// view returns everything that a node knows about the cluster.
func (n *node) view() (peers []peer, err error) {
	text, err := n.ask("CLUSTER", "NODES")
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 8 {
			return nil, fmt.Errorf("%s: no line of CLUSTER NODES: %q", n.Addr(), line)
		}
		peers = append(peers, peer{words[1], strings.Split(words[2], ","), words[3], words[7], words[8:]})
	}
	return peers, err
}

func (p peer) is(flag string) bool {
	for _, f := range p.flags {
		if f == flag {
			return true
		}
	}
	return false
}

// well returns nil for a master with slots, or for a replica, without a sign of failure.
func (p peer) well() error {
	for _, flag := range p.flags {
		if flag != "myself" && flag != "master" && flag != "slave" {
			return fmt.Errorf("%s is %s", p.address, flag)
		}
	}
	led := p.is("slave") && p.master != "-" && len(p.slots) == 0
	leads := p.is("master") && len(p.slots) > 0
	if p.link != "connected" || !led && !leads {
		return fmt.Errorf("%s is %v of %s, %s, with slots %v", p.address, p.flags, p.master, p.link, p.slots)
	}
	return nil
}

// placeholder reports whether the peer is a master that does not exist.
func (p peer) placeholder() bool { return strings.HasPrefix(p.address, "127.0.0.1:1@") }

// serves reports whether a slot belongs to the node, according to the node itself.
func (n *node) serves(slot int) bool {
	view, _ := n.view()
	for _, p := range view {
		if p.is("myself") && p.has(slot) {
			return true
		}
	}
	return false
}

func (p peer) has(slot int) bool {
	for _, span := range p.slots {
		low, high, ranged := strings.Cut(span, "-")
		if !ranged {
			high = low
		}
		from, err1 := strconv.Atoi(low)
		to, err2 := strconv.Atoi(high)
		if err1 == nil && err2 == nil && from <= slot && slot <= to {
			return true
		}
	}
	return false
}
