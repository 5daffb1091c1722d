package rig

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync/atomic"
)

// Ports are given out one after the other, below those that the system gives to outgoing
// connections. So the port of a server that was stopped, or of a link that was cut, does
// not soon belong to another, to which a client would then come by mistake.
const (
	firstPort = 10000
	portCount = 10000
	// busOffset is how far the port of a node's cluster bus lies above that of its
	// clients, unless the node is told otherwise, which servers before 7.0 cannot be.
	busOffset = 10000
)

// lastPort is the one that was given out last. Every process begins somewhere else.
var lastPort atomic.Int32

func init() { lastPort.Store(rand.Int32N(portCount)) }

// freePort finds a loopback port that nobody listens at.
func freePort() (int, error) {
	for range portCount {
		if port := firstPort + int(lastPort.Add(1))%portCount; listenable(port) {
			return port, nil
		}
	}
	return 0, errors.New("no free port")
}

// freePorts finds several.
func freePorts(n int) (ports []int, err error) { return takePorts(n, freePort) }

// freeNodePorts finds ports for nodes of a cluster: those of their buses are free, too.
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
