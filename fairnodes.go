package latchkey

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

const (
	// ownersAge is for how long a client relies on what it knows of a cluster.
	// Nothing depends on it but who has to wait for whom.
	ownersAge = 10 * time.Second
	// ownersPatience is how long to wait for the answer of one node.
	ownersPatience = time.Second
)

// nodes knows which node of a cluster serves which slot, so that one that is silent
// holds up nobody who waits elsewhere.
type nodes struct {
	client *Client
	owners atomic.Pointer[slotOwners] // nil if not known
	asking atomic.Bool
	asked  atomic.Int64 // when they answered, as a time.Duration on the monotonic clock
}

// slotOwners says who serves each slot.
type slotOwners struct {
	names []string
	of    [1 << 14]uint16
}

// of names the node that serves a slot: as long as that is not known, the same for all.
func (n *nodes) of(slot uint16) string {
	owners := n.owners.Load()
	if owners == nil {
		return ""
	}
	return owners.names[owners.of[slot]]
}

// keepKnown has the nodes asked, by one of these tasks, if it is time to.
func (n *nodes) keepKnown(ctx context.Context, tasks *sync.WaitGroup) {
	if n.due() {
		tasks.Go(func() { n.learn(ctx) })
	}
}

// due reports whether it is time to ask. Whoever is told so has to call learn.
func (n *nodes) due() bool {
	if !n.client.cluster {
		return false
	}
	age := n.client.clock().mono - time.Duration(n.asked.Load())
	return (n.owners.Load() == nil || age > ownersAge) && n.asking.CompareAndSwap(false, true)
}

// learn asks any node. If it does not answer, the next time it may be another one.
func (n *nodes) learn(ctx context.Context) {
	defer n.asking.Store(false)
	ctx, cancel := context.WithTimeout(ctx, ownersPatience)
	defer cancel()
	reply, err := n.client.caller.send(ctx, func(ctx context.Context) rueidis.RedisResult {
		return n.client.rueidis.Do(ctx, n.client.rueidis.B().ClusterSlots().Build())
	}).ToArray()
	if err != nil {
		return
	}
	if owners := readOwners(reply); owners != nil {
		n.owners.Store(owners)
		n.asked.Store(int64(n.client.clock().mono))
	}
}

// readOwners takes the reply to CLUSTER SLOTS apart: for each range of slots the first,
// the last, and its nodes, the master first. It returns nil for anything else.
func readOwners(ranges []rueidis.RedisMessage) *slotOwners {
	owners := &slotOwners{names: []string{""}}
	for _, r := range ranges {
		parts, err := r.ToArray()
		if err != nil || len(parts) < 3 {
			return nil
		}
		from, err1 := parts[0].AsInt64()
		to, err2 := parts[1].AsInt64()
		master, err3 := parts[2].ToArray()
		if err1 != nil || err2 != nil || err3 != nil || len(master) < 2 || from < 0 || to >= int64(len(owners.of)) {
			return nil
		}
		host, _ := master[0].ToString() // none, if the node does not know its own
		port, _ := master[1].AsInt64()
		number := owners.number(host + ":" + strconv.FormatInt(port, 10))
		for slot := from; slot <= to; slot++ {
			owners.of[slot] = number
		}
	}
	return owners
}

func (o *slotOwners) number(name string) uint16 {
	for i, known := range o.names {
		if known == name {
			return uint16(i)
		}
	}
	o.names = append(o.names, name)
	return uint16(len(o.names) - 1)
}
