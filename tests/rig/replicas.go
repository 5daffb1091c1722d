package rig

import (
	"fmt"
	"strconv"
)

// startReplicated returns the nodes, the master first.
func startReplicated(replicas int, settings []string) (nodes []*node, err error) {
	settings = append([]string{"--repl-diskless-sync-delay", "0"}, settings...)
	for i := range 1 + replicas {
		words := settings
		if i > 0 {
			words = append(words, "--replicaof", "127.0.0.1", strconv.Itoa(nodes[0].process.port))
		}
		n, err := startNode(words)
		if err != nil {
			closeNodes(nodes)
			return nil, err
		}
		nodes = append(nodes, n)
	}
	return nodes, until("the replicas have links", func() error { return replicated(nodes) })
}

func startNode(settings []string) (*node, error) {
	p, err := startSomewhere(settings)
	if err != nil {
		return nil, err
	}
	n, err := newNode(p)
	if err != nil {
		p.remove()
	}
	return n, err
}

// replicated returns nil if one node is the master, and all others have a link to it.
func replicated(nodes []*node) error {
	masters, err := leaders(nodes)
	if err == nil && len(masters) != 1 {
		err = fmt.Errorf("%d masters", len(masters))
	}
	if err != nil {
		return err
	}
	fields, err := masters[0].replication()
	if want := strconv.Itoa(len(nodes) - 1); err == nil && fields["connected_slaves"] != want {
		err = fmt.Errorf("%s replicas of %s", fields["connected_slaves"], masters[0].Addr())
	}
	return err
}
