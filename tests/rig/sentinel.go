package rig

import (
	"fmt"
	"net"
	"strconv"
	"testing"
	"time"
)

// sentinelDown is how long a master of a test's own may be silent before its Sentinels consider it
// dead.
const sentinelDown = time.Second

// Sentinel is a master with replicas that three Sentinels watch, for one test.
type Sentinel struct {
	ensemble
	watchers []*node
}

// NewSentinel starts a master with that many replicas and its Sentinels, and waits until the
// Sentinels see all of them.
func NewSentinel(tb testing.TB, replicas int) *Sentinel {
	tb.Helper()
	Need(tb, Topology)
	nodes, watchers, err := startSentinel(replicas, 3, sentinelDown, nil)
	if err != nil {
		tb.Fatalf("rig: Sentinel: %v", err)
	}
	tb.Cleanup(func() { closeNodes(watchers); closeNodes(nodes) })
	return &Sentinel{newEnsemble(tb, nodes), watchers}
}

func startSentinel(replicas, watchers int, down time.Duration, settings []string) (nodes, watching []*node, err error) {
	if nodes, err = startReplicated(replicas, settings); err != nil {
		return nil, nil, err
	}
	watching, err = startWatchers(watchers, nodes)
	for _, w := range watching {
		if err == nil {
			err = w.setDown(down)
		}
	}
	if err != nil {
		closeNodes(watching)
		closeNodes(nodes)
		return nil, nil, err
	}
	return nodes, watching, nil
}

// setDown sets how long a server may be silent before a Sentinel considers it dead. Until the
// Sentinels see all that is for ever: a busy machine may be silent for longer.
func (n *node) setDown(down time.Duration) error {
	return until(n.Addr()+" has its timeout", func() error {
		return n.do("SENTINEL", "SET", masterSet, "down-after-milliseconds", strconv.FormatInt(down.Milliseconds(), 10),
			"failover-timeout", strconv.FormatInt(3*down.Milliseconds(), 10)).Error()
	})
}

// URL names the Sentinels.
func (s *Sentinel) URL() string { return watchersURL(s.watchers).String() }

// Master returns the server that the Sentinels name, and a connection to it.
func (s *Sentinel) Master() (*Server, *Admin) {
	s.tb.Helper()
	n := s.master()
	return n.Server, s.admin(n)
}

func (s *Sentinel) master() *node {
	s.tb.Helper()
	return s.search("a master", func() (*node, error) { return s.elected(s.watchers[0]) })
}

// Replicas returns the servers that are not the master.
func (s *Sentinel) Replicas() []*Server {
	s.tb.Helper()
	master, all := s.master(), []*Server(nil)
	for _, n := range s.nodes {
		if n != master {
			all = append(all, n.Server)
		}
	}
	return all
}

// elected returns the master that one of the Sentinels names.
func (s *Sentinel) elected(by *node) (*node, error) {
	address, err := by.do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterSet).AsStrSlice()
	if err != nil || len(address) != 2 {
		return nil, fmt.Errorf("%s names no master: %w", by.Addr(), err)
	}
	n := byAddr(s.nodes, net.JoinHostPort(address[0], address[1]))
	if n == nil {
		return nil, fmt.Errorf("%s names the stranger %v", by.Addr(), address)
	}
	return n, nil
}

// Failover makes a Sentinel replace the master with a replica, and waits until all Sentinels name
// the new master. The old master stays alive, and learns of the failover some time later.
func (s *Sentinel) Failover() *Server {
	s.tb.Helper()
	old, watcher := s.master(), s.watchers[0]
	s.insist("a failover", func() error { return watcher.do("SENTINEL", "FAILOVER", masterSet).Error() }, func() error {
		n, err := s.elected(watcher)
		if n == old {
			err = fmt.Errorf("%s is still the master", old.Addr())
		}
		return err
	})
	return s.Successor(old.Server)
}

// Kill ends the master without warning, and returns it.
func (s *Sentinel) Kill() *Server { s.tb.Helper(); return s.kill(s.master()) }

// Pause suspends the process of the master, and returns it.
func (s *Sentinel) Pause() *Server { s.tb.Helper(); return s.pause(s.master()) }

// Successor waits until all Sentinels name a master other than of, and returns it.
func (s *Sentinel) Successor(of *Server) *Server {
	s.tb.Helper()
	found := of
	Eventually(s.tb, healPatience, "a failover", func() error {
		for _, w := range s.watchers {
			n, err := s.elected(w)
			if err != nil {
				return err
			}
			if n.Server == of {
				return fmt.Errorf("%s names %s", w.Addr(), n.Addr())
			}
			found = n.Server
		}
		return nil
	})
	return found
}

// rejoin makes killed nodes restart as replicas of the current master. As a master, such a node
// would be empty, and a Sentinel with outdated state could make the true master its replica.
func (s *Sentinel) rejoin() {
	s.tb.Helper()
	master := s.master()
	for _, n := range s.nodes {
		if n != master && n.process.ended() {
			n.process.leader = []string{"--replicaof", "127.0.0.1", strconv.Itoa(master.process.port)}
		}
	}
}

// Heal restarts killed nodes, resumes paused ones, and waits until there is one master, the others
// are its replicas, and the Sentinels see no fault.
func (s *Sentinel) Heal() {
	s.tb.Helper()
	s.rejoin()
	s.revive()
	Eventually(s.tb, healPatience, "all is well", func() error {
		if err := replicated(s.nodes); err != nil {
			return err
		}
		return watched(s.watchers, s.nodes)
	})
}
