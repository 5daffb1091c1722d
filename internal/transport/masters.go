package transport

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
	"github.com/latchkey-go/latchkey/internal/transport/retry"
)

// Master is a server that accepts writes: the only one, or one of a cluster.
type Master struct {
	// ID is equal for the same server with the same slots.
	ID string
	Peer
}

// Masters returns the servers that accept writes; together they have all keys. In a cluster it
// queries the nodes until one answers, with the limits of Call.
func (s *Sender) Masters(ctx context.Context, stop <-chan struct{}) ([]Master, error) {
	began, _ := s.now()
	for pause := retry.FirstPause; ; pause = min(2*pause, retry.LongPause) {
		err := outcome.ErrSilent
		if !s.Topology.Cluster || s.Learn(ctx) {
			var all []Master
			if all, err = s.Topology.Masters(s.Client); err == nil {
				return all, nil
			}
		}
		now, _ := s.now()
		if err = restBeforeRetry(ctx, stop, pause, s.Patience-now.Since(began), err); err != nil {
			return nil, err
		}
	}
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

// QueryMaster sends a query to a master until there is a definite answer, as Call does.
func (s *Sender) QueryMaster(ctx context.Context, stop <-chan struct{}, m Master, q Query) (rueidis.RedisResult, error) {
	began, _ := s.now()
	for pause := retry.FirstPause; ; pause = min(2*pause, retry.LongPause) {
		if ctx.Err() != nil {
			return rueidis.RedisResult{}, outcome.Unavailable(fault.ContextError(ctx))
		}
		result := s.queryNode(ctx, m.Peer, q)
		err := silentOr(ctx, result.Error())
		switch outcome.Classify(err) {
		case outcome.Answered:
			return result, nil
		case outcome.Refused:
			return result, err
		}
		now, _ := s.now()
		if err = restBeforeRetry(ctx, stop, pause, s.Patience-now.Since(began), outcome.Explained(err)); err != nil {
			return result, err
		}
	}
}
