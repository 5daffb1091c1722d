package rig

import "testing"

// ensemble is the data nodes of a topology that belongs to one test.
type ensemble struct {
	tb    testing.TB
	nodes []*node
}

// pause suspends the process of a node.
func (e *ensemble) pause(n *node) *Server { e.tb.Helper(); n.Pause(e.tb); return n.Server }

func (e *ensemble) kill(n *node) *Server { e.tb.Helper(); n.Kill(e.tb); return n.Server }

// revive restarts every killed node, and resumes the paused ones.
func (e *ensemble) revive() {
	e.tb.Helper()
	for _, n := range e.nodes {
		if n.process.ended() {
			n.Restart(e.tb)
		} else {
			n.Resume(e.tb)
		}
	}
}

// admin inspects a node over the connection that the topology has to it.
func (e *ensemble) admin(n *node) *Admin {
	return &Admin{tb: e.tb, server: n.Server, client: n.client}
}

// first returns the first node for which is returns true. It does not query nodes that cannot
// answer.
func (e *ensemble) first(is func(*node) bool) *node {
	for _, n := range e.nodes {
		if n.up() && is(n) {
			return n
		}
	}
	return nil
}

func (e *ensemble) must(err error) {
	e.tb.Helper()
	if err != nil {
		e.tb.Fatalf("rig: %v", err)
	}
}

// closeNodes ends nodes in any state.
func closeNodes(nodes []*node) {
	for _, n := range nodes {
		n.close()
	}
}
