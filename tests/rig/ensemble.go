package rig

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
)

// ensemble is the data nodes of a topology that belongs to one test.
type ensemble struct {
	tb    place
	nodes []*node
}

func newEnsemble(tb testing.TB, nodes []*node) ensemble { return ensemble{here(tb), nodes} }

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

// search waits until find finds a node: on a busy machine a node may answer late.
func (e *ensemble) search(what string, find func() (*node, error)) *node {
	e.tb.Helper()
	found := e.nodes[0] // for a caller that continues after a failure
	Eventually(e.tb, healPatience, what, func() error {
		n, err := find()
		if err == nil {
			found = n
		}
		return err
	})
	return found
}

// order has a node execute a command that may be executed twice, and repeats it until the node
// answers.
func (e *ensemble) order(n *node, words ...string) {
	e.tb.Helper()
	var refusal error
	Eventually(e.tb, healPatience, n.Addr()+": "+strings.Join(words, " "), func() error {
		err := n.do(words...).Error()
		if reply, answered := rueidis.IsRedisErr(err); answered && !strings.HasPrefix(reply.Error(), "IOERR") {
			refusal = err
			return nil
		}
		return err
	})
	if refusal != nil {
		e.tb.Fatalf("rig: %s: %s: %v", n.Addr(), strings.Join(words, " "), refusal)
	}
}

// orderAgainAfter is more than a server takes to carry out an order, or to give up.
const orderAgainAfter = 10 * time.Second

// insist gives an order, and repeats it after a while until it is carried out: on a busy machine a
// server may not answer, or may give up what it was told to do.
func (e *ensemble) insist(what string, order, done func() error) {
	e.tb.Helper()
	var last time.Time
	var answer error
	Eventually(e.tb, healPatience, what, func() error {
		err := done()
		if err != nil && time.Since(last) > orderAgainAfter {
			answer, last = order(), time.Now()
		}
		if err == nil {
			return nil
		}
		return errors.Join(err, answer)
	})
}

// closeNodes ends nodes in any state.
func closeNodes(nodes []*node) {
	for _, n := range nodes {
		n.close()
	}
}
