package rig

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// masterSet is the name that the Sentinels of the rig use for a master.
const masterSet = "latchkey"

// watchConfig returns a sentinel.conf. It names the other Sentinels and the replicas, so that no
// Sentinel has to discover anything.
func watchConfig(self int, ids []string, ports []int, nodes []*node) string {
	var text strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&text, format+"\n", args...) }
	line("sentinel myid %s", ids[self])
	line("sentinel monitor %s 127.0.0.1 %d %d", masterSet, nodes[0].process.port, len(ids)/2+1)
	line("sentinel down-after-milliseconds %s %d", masterSet, nobodyDies.Milliseconds())
	for _, replica := range nodes[1:] {
		line("sentinel known-replica %s 127.0.0.1 %d", masterSet, replica.process.port)
	}
	for i, id := range ids {
		if i != self {
			line("sentinel known-sentinel %s 127.0.0.1 %d %s", masterSet, ports[i], id)
		}
	}
	return text.String()
}

// startWatchers starts Sentinels for a master and its replicas, and waits until all of them see all
// nodes.
func startWatchers(count int, nodes []*node) (watchers []*node, err error) {
	for range startTries {
		if watchers, err = tryWatchers(count, nodes); err == nil {
			return watchers, nil
		}
		closeNodes(watchers)
	}
	return nil, err
}

func tryWatchers(count int, nodes []*node) (watchers []*node, err error) {
	ports, err := freePorts(count)
	if err != nil {
		return nil, err
	}
	ids := make([]string, count)
	for i := range ids {
		ids[i] = nodeID()
	}
	for i, port := range ports {
		w, err := startWatcher(port, watchConfig(i, ids, ports, nodes))
		if err != nil {
			return watchers, err
		}
		watchers = append(watchers, w)
	}
	return watchers, until("the Sentinels see all", func() error { return watched(watchers, nodes) })
}

func startWatcher(port int, config string) (*node, error) {
	p, err := newProcess(port, "--sentinel")
	if err != nil {
		return nil, err
	}
	p.config = "sentinel.conf"
	var w *node
	if err = p.write(p.config, config); err == nil {
		err = p.start()
	}
	if err == nil {
		w, err = newNode(p)
	}
	if err == nil {
		// Otherwise Sentinels would check roles every ten seconds, leave a former master unchanged
		// for eight seconds, and ping only once in the period after which they consider a server
		// dead. (A replica that was silent for five times that period cannot be promoted.) A server
		// without this command only takes longer.
		_ = w.do("SENTINEL", "DEBUG", "INFO-PERIOD", "500", "PUBLISH-PERIOD", "250", "PING-PERIOD", "400").Error()
		return w, nil
	}
	p.remove()
	return nil, err
}

// watched returns nil if all Sentinels name the same master and see no fault.
func watched(watchers, nodes []*node) error {
	for _, w := range watchers {
		if err := w.atEase(len(watchers), nodes); err != nil {
			return fmt.Errorf("sentinel %s: %w", w.Addr(), err)
		}
	}
	return nil
}

// atEase returns nil if a Sentinel sees a master, all of its replicas and all of the other
// Sentinels.
func (n *node) atEase(watchers int, nodes []*node) error {
	master, err := n.do("SENTINEL", "MASTER", masterSet).AsStrMap()
	if err != nil {
		return err
	}
	if master["flags"] != "master" || master["num-other-sentinels"] != strconv.Itoa(watchers-1) {
		return fmt.Errorf("the master is %s, and there are %s more Sentinels", master["flags"], master["num-other-sentinels"])
	}
	leader := byAddr(nodes, net.JoinHostPort(master["ip"], master["port"]))
	if leader == nil {
		return fmt.Errorf("the master is not known")
	}
	if fields, err := leader.replication(); err != nil || fields["role"] != "master" {
		return fmt.Errorf("%s is taken for the master, and is %s (%w)", leader.Addr(), fields["role"], err)
	}
	return n.seesReplicas(len(nodes) - 1)
}

func (n *node) seesReplicas(want int) error {
	list, err := n.do("SENTINEL", "REPLICAS", masterSet).ToArray()
	if err != nil {
		return err
	}
	for _, each := range list {
		replica, err := each.AsStrMap()
		if err != nil {
			return err
		}
		if replica["flags"] != "slave" || replica["master-link-status"] != "ok" {
			return fmt.Errorf("replica %s is %s, its link %s", replica["name"], replica["flags"], replica["master-link-status"])
		}
	}
	if len(list) != want {
		return fmt.Errorf("%d replicas", len(list))
	}
	return nil
}

func byAddr(nodes []*node, addr string) *node {
	for _, n := range nodes {
		if n.Addr() == addr {
			return n
		}
	}
	return nil
}

// watchersURL returns a URL that names all Sentinels.
func watchersURL(watchers []*node) *url.URL {
	query := url.Values{"master_set": {masterSet}}
	for _, w := range watchers[1:] {
		query.Add("addr", w.Addr())
	}
	return &url.URL{Scheme: "redis", Host: watchers[0].Addr(), RawQuery: query.Encode()}
}
