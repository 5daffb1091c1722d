package rig

import (
	"fmt"
	"time"
)

// On the backends cluster and sentinel, a client finds the servers by querying. The shared server
// is then a whole topology. A server that a test starts for itself is a topology of one process, so
// that pausing, killing and reconfiguring it mean the same as everywhere. No server is ever
// considered dead, however busy the machine is: tests of failovers use topologies of their own
// ([NewCluster], [NewSentinel]).

// nobodyDies is a period of silence that is never reached.
const nobodyDies = time.Hour

const sharedMasters = 3

func startSharedCluster() (*Server, error) {
	nodes, err := startCluster(sharedMasters, 1, nobodyDies, nil)
	if err != nil {
		return nil, err
	}
	s := clusterOf(nodes)
	part(nodes)
	s.stop = func() { stopAll(nodes) }
	return s, nil
}

// clusterOf returns the nodes of a cluster as one server.
func clusterOf(nodes []*node) *Server {
	s := nodes[0].Server
	return &Server{
		kind:    kindCluster,
		detail:  fmt.Sprintf("%s, %d masters, %[2]d replicas", serverVersion(), sharedMasters),
		url:     s.url,
		nodes:   addressesOf(nodes),
		masters: sharedMasters,
		able:    s.able &^ (Topology | Single),
	}
}

func freshCluster(settings []string) (*Server, error) {
	p, err := startAlone(settings)
	if err != nil {
		return nil, err
	}
	s := p.server()
	s.kind, s.nodes, s.masters = kindCluster, []string{s.Addr()}, 1
	s.able &^= Topology | Single
	return s, nil
}

func startSharedSentinel() (*Server, error) {
	nodes, watchers, err := startSentinel(1, 3, nobodyDies, nil)
	if err != nil {
		return nil, err
	}
	s := watchedServer(nodes, watchers)
	s.process = nil
	s.detail += ", 1 replica"
	return s, nil
}

func freshSentinel(settings []string) (*Server, error) {
	nodes, watchers, err := startSentinel(0, 1, nobodyDies, settings)
	if err != nil {
		return nil, err
	}
	for _, w := range watchers {
		w.keepQuiet()
	}
	return watchedServer(nodes, watchers), nil
}

func watchedServer(nodes, watchers []*node) *Server {
	s := nodes[0].Server
	all := append(watchers, nodes...)
	part(nodes)
	return &Server{
		kind:    kindSentinel,
		detail:  fmt.Sprintf("%s, %d Sentinels", serverVersion(), len(watchers)),
		url:     *watchersURL(watchers),
		nodes:   addressesOf(nodes),
		masters: 1,
		able:    s.able &^ (Topology | Single),
		process: s.process,
		stop:    func() { stopAll(all) },
	}
}

// keepQuiet makes a Sentinel send nothing of its own to the master, so that a test sees only the
// commands that it sends itself.
func (n *node) keepQuiet() {
	const never = "86400000"
	_ = n.do("SENTINEL", "DEBUG", "INFO-PERIOD", never, "PING-PERIOD", never, "PUBLISH-PERIOD", never).Error()
}

// part closes the connections of the rig to the nodes.
func part(nodes []*node) {
	for _, n := range nodes {
		n.client.Close()
	}
}

func addressesOf(nodes []*node) (addresses []string) {
	for _, n := range nodes {
		addresses = append(addresses, n.Addr())
	}
	return addresses
}

func stopAll(nodes []*node) {
	for _, n := range nodes {
		n.close()
	}
}
