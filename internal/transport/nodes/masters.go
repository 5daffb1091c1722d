package nodes

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// Master is a server that accepts writes: the only one, or one of a cluster.
type Master struct {
	// ID is equal for the same server with the same slots.
	ID string
	Peer
}

// Masters returns the nodes that serve any slot, as far as is known.
func (t *Topology) Masters(client rueidis.Client) (all []Master, err error) {
	if !t.Cluster {
		return []Master{{Peer: Peer{t.common, client}}}, nil
	}
	owners, slots, there := t.owners.Load(), map[*Node][]uint16{}, client.Nodes()
	for slot, number := range owners.of {
		n := owners.nodes[number]
		slots[n] = append(slots[n], uint16(slot))
	}
	delete(slots, t.common) // slots that no node serves
	for n, its := range slots {
		if there[n.address] == nil {
			return nil, fmt.Errorf("%w: no connection to %s", outcome.ErrSilent, n.address)
		}
		all = append(all, Master{n.address + rangesOf(its), Peer{n, there[n.address]}})
	}
	slices.SortFunc(all, func(a, b Master) int { return cmp.Compare(a.address, b.address) })
	return all, nil
}

// rangesOf returns sorted slots as text, in ranges.
func rangesOf(slots []uint16) string {
	var text []byte
	for i, slot := range slots {
		begins, ends := i == 0 || slots[i-1] != slot-1, i == len(slots)-1 || slots[i+1] != slot+1
		if begins {
			text = strconv.AppendUint(append(text, ' '), uint64(slot), 10)
		}
		if ends {
			text = strconv.AppendUint(append(text, '-'), uint64(slot), 10)
		}
	}
	return string(text)
}

// Continuity counts the connections to a master that were opened, and those that have broken. While
// it does not change, the same server has answered: behind Sentinel another may take its place.
type Continuity struct{ dials, breaks int64 }

// Continuity returns the current counts, for those connections that are seen.
func (m Master) Continuity() Continuity {
	return Continuity{m.connections.dials.Load(), m.connections.breaks.Load()}
}
