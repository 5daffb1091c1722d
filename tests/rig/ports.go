package rig

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync/atomic"
)

// The rig assigns ports one after the other, below those that the system assigns to outgoing
// connections. So the port of a stopped server or of a cut link does not soon belong to another
// server, to which a client would then connect by mistake.
const (
	firstPort = 10000
	portCount = 10000
	// busOffset is the distance from the client port of a node to its cluster bus port. Servers
	// before 7.0 cannot use another distance.
	busOffset = 10000
)

// lastPort is the port that was assigned last. Every process begins at a random port.
var lastPort atomic.Int32

func init() { lastPort.Store(rand.Int32N(portCount)) }

// freePort finds a loopback port on which nobody listens.
func freePort() (int, error) {
	for range portCount {
		if port := firstPort + int(lastPort.Add(1))%portCount; listenable(port) {
			return port, nil
		}
	}
	return 0, errors.New("no free port")
}

// freePorts finds n free ports.
func freePorts(n int) (ports []int, err error) { return takePorts(n, freePort) }

// freeNodePorts finds ports for nodes of a cluster, whose bus ports are free as well.
func freeNodePorts(n int) (ports []int, err error) {
	return takePorts(n, func() (int, error) {
		for {
			if port, err := freePort(); err != nil || listenable(port+busOffset) {
				return port, err
			}
		}
	})
}

func takePorts(n int, take func() (int, error)) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		var err error
		if ports[i], err = take(); err != nil {
			return nil, err
		}
	}
	return ports, nil
}

func listenable(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}
