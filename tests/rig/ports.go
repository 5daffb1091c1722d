package rig

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// The rig assigns ports one after the other, below those that the system assigns to outgoing
// connections. So the port of a stopped server or of a cut link does not soon belong to another
// server, to which a client would then connect by mistake. Processes that run side by side take
// their ports from different blocks. Otherwise two of them could find the same port free, and the
// one whose server starts later would use the server of the other.
const (
	firstPort = 10000
	portCount = 10000
	blockSize = 500
	// busOffset is the distance from the client port of a node to its cluster bus port. Servers
	// before 7.0 cannot use another distance.
	busOffset = 10000
)

// assigned is what this process has assigned of its block.
var assigned struct {
	sync.Mutex

	next, end int
	blocks    []int      // in the order in which they were taken
	locks     []*os.File // of the blocks, held for as long as the process lives
}

// freePort finds a loopback port on which nobody listens.
func freePort() (int, error) {
	assigned.Lock()
	defer assigned.Unlock()
	for range portCount {
		if assigned.next == assigned.end {
			assigned.next = firstPort + takeBlock()*blockSize
			assigned.end = assigned.next + blockSize
		}
		port := assigned.next
		assigned.next++
		if listenable(port) {
			return port, nil
		}
	}
	return 0, errors.New("no free port")
}

// takeBlock returns the number of a block that no other process uses. If there is none, it returns
// the block of this process that was taken first, or else any.
func takeBlock() int {
	const blocks = portCount / blockSize
	first := rand.IntN(blocks)
	for i := range blocks {
		if block := (first + i) % blocks; lockBlock(block) {
			assigned.blocks = append(assigned.blocks, block)
			return block
		}
	}
	if len(assigned.blocks) == 0 {
		return first
	}
	first = assigned.blocks[0]
	assigned.blocks = append(assigned.blocks[1:], first)
	return first
}

// lockBlock locks the file that stands for a block. It reports false if a process, this one or
// another, has it already.
func lockBlock(block int) bool {
	file, err := os.OpenFile(filepath.Join(os.TempDir(), fmt.Sprintf("latchkey-rig-ports-%d", block)), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return false
	}
	if syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		_ = file.Close()
		return false
	}
	assigned.locks = append(assigned.locks, file)
	return true
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
