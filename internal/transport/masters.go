package transport

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/rueidis"
)

// Master is a server that takes commands: the only one, or one of a cluster.
type Master struct {
	// ID is equal for the same server that serves the same slots.
	ID string
	peer
}

// Masters returns the servers that take commands, all of which together have all keys. In a
// cluster the nodes are asked who they are, until one tells, as Call asks.
func (s *Sender) Masters(ctx context.Context, stop <-chan struct{}) ([]Master, error) {
	if !s.Topology.Cluster {
		return []Master{{peer: peer{s.Topology.common, s.Client}}}, nil
	}
	asked, _ := s.now()
	for pause := FirstPause; ; pause = min(2*pause, LongPause) {
		err := ErrSilent
		if s.Learn(ctx) {
			var all []Master
			if all, err = s.Topology.masters(s.Client.Nodes()); err == nil {
				return all, nil
			}
		}
		now, _ := s.now()
		if err = restBeforeRetry(ctx, stop, pause, s.Patience-now.Since(asked), err); err != nil {
			return nil, err
		}
	}
}

// masters are those that serve any slot, as far as is known.
func (t *Topology) masters(there map[string]rueidis.Client) (all []Master, err error) {
	owners, slots := t.owners.Load(), map[*Node][]uint16{}
	for slot, number := range owners.of {
		n := owners.nodes[number]
		slots[n] = append(slots[n], uint16(slot))
	}
	delete(slots, t.common) // slots that nobody serves
	for n, its := range slots {
		if there[n.address] == nil {
			return nil, fmt.Errorf("%w: nothing leads to %s", ErrSilent, n.address)
		}
		all = append(all, Master{n.address + rangesOf(its), peer{n, there[n.address]}})
	}
	slices.SortFunc(all, func(a, b Master) int { return cmp.Compare(a.address, b.address) })
	return all, nil
}

// rangesOf is which slots there are, in their order, as text.
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

// Continuity counts the connections to a master that were opened, and those that have broken. As long as
// it is equal, the same server has answered: behind Sentinel another may take its place.
type Continuity struct{ dials, breaks int64 }

// Continuity returns that of now, as far as the connections are seen.
func (m Master) Continuity() Continuity {
	return Continuity{m.connections.dials.Load(), m.connections.breaks.Load()}
}

// AskMaster puts a question to a master until there is a definite answer, as Call does.
func (s *Sender) AskMaster(ctx context.Context, stop <-chan struct{}, m Master, q Question) (rueidis.RedisResult, error) {
	asked, _ := s.now()
	for pause := FirstPause; ; pause = min(2*pause, LongPause) {
		if ctx.Err() != nil {
			return rueidis.RedisResult{}, Unavailable(ContextError(ctx))
		}
		result := s.askNode(ctx, m.peer, q)
		err := silentOr(ctx, result.Error())
		switch Classify(err) {
		case Answered:
			return result, nil
		case Refused:
			return result, err
		}
		now, _ := s.now()
		if err = restBeforeRetry(ctx, stop, pause, s.Patience-now.Since(asked), explained(err)); err != nil {
			return result, err
		}
	}
}

// SendEach sends a script to a master once for each list of keys, all in one round trip, and returns
// the results in their order. The server need not know the script.
func (s *Sender) SendEach(ctx context.Context, stop <-chan struct{}, m Master, cmd Command, keys [][]string, args []string) ([]rueidis.RedisResult, error) {
	results := make(chan []rueidis.RedisResult, 1) // of the attempt that is answered
	_, err := s.AskMaster(ctx, stop, m, func(ctx context.Context, client rueidis.Client) rueidis.RedisResult {
		all := m.sendEach(ctx, client, cmd, keys, args)
		for _, each := range all {
			if !Classify(each.Error()).Heard() {
				return each
			}
		}
		select {
		case results <- all:
		default:
		}
		return rueidis.RedisResult{}
	})
	if err != nil {
		return nil, err
	}
	return <-results, nil
}

// sendEach sends the script as text where the server may not know it yet.
func (m Master) sendEach(ctx context.Context, client rueidis.Client, cmd Command, keys [][]string, args []string) []rueidis.RedisResult {
	first := m.firstAsText(cmd)
	commands := make([]rueidis.Completed, len(keys))
	for i, each := range keys {
		commands[i] = first.eval(client.B(), each, args)
		first = cmd
	}
	all := client.DoMulti(ctx, commands...)
	for i, result := range all {
		if HasCode(result.Error(), "NOSCRIPT") {
			all[i] = client.Do(ctx, cmd.inFull().eval(client.B(), keys[i], args))
		}
	}
	return all
}
