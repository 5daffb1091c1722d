package transport

import (
	"context"
	"sync"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/transport/nodes"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// Load is the keys and arguments of one script. One node serves all its keys.
type Load struct{ Keys, Args []string }

// SendEach sends a script to a master once for each load, all in one round trip. It returns the
// results in the order of the loads. The server need not know the script.
func (s *Sender) SendEach(
	ctx context.Context, stop <-chan struct{}, m nodes.Master, cmd Command, loads []Load,
) ([]rueidis.RedisResult, error) {
	results := make(chan []rueidis.RedisResult, 1) // of the answered attempt
	_, err := s.QueryMaster(ctx, stop, m, func(ctx context.Context, _ rueidis.Client) rueidis.RedisResult {
		return s.sendEach(ctx, m.Peer, cmd, loads, results)
	})
	if err != nil {
		return nil, err
	}
	return <-results, nil
}

// SendEachOnce sends a script once for each load, and repeats nothing. Each node gets its part in
// one round trip, all nodes at the same time. The results are in the order of the loads. ctx must
// have a deadline.
func (s *Sender) SendEachOnce(ctx context.Context, cmd Command, loads []Load) []rueidis.RedisResult {
	if len(loads) == 1 {
		return []rueidis.RedisResult{s.SendOnce(ctx, Call{cmd, loads[0].Keys, loads[0].Args})}
	}
	parts := map[*nodes.Node][]int{} // indexes of loads
	for i, load := range loads {
		n := s.node(load.Keys[0])
		parts[n] = append(parts[n], i)
	}
	all := make([]rueidis.RedisResult, len(loads))
	var sending sync.WaitGroup
	for n, part := range parts {
		sending.Go(func() {
			its := make([]Load, len(part))
			for i, at := range part {
				its[i] = loads[at]
			}
			for i, result := range s.sendPart(ctx, n, cmd, its) {
				all[part[i]] = result
			}
		})
	}
	sending.Wait()
	return all
}

// sendPart sends a script once for each load to the node that serves them.
func (s *Sender) sendPart(ctx context.Context, n *nodes.Node, cmd Command, loads []Load) []rueidis.RedisResult {
	results := make(chan []rueidis.RedisResult, 1)
	p := nodes.Peer{Node: n, Client: s.Client}
	failed := s.queryNode(ctx, p, func(ctx context.Context, _ rueidis.Client) rueidis.RedisResult {
		return s.sendEach(ctx, p, cmd, loads, results)
	})
	if failed.Error() == nil {
		return <-results
	}
	all := make([]rueidis.RedisResult, len(loads))
	for i := range all {
		all[i] = failed
	}
	return all
}

// sendEach sends a script once for each load. If the server has answered all of them, it passes the
// results to the channel, unless that has some already. Otherwise it returns a result that is no
// answer.
func (s *Sender) sendEach(
	ctx context.Context, p nodes.Peer, cmd Command, loads []Load, results chan<- []rueidis.RedisResult,
) rueidis.RedisResult {
	all := cmd.pipeline(ctx, p, loads)
	for _, each := range all {
		p.Heed(each)
		if !outcome.Classify(each.Error()).Heard() {
			return each
		}
	}
	select {
	case results <- all:
	default:
	}
	return rueidis.RedisResult{}
}

// pipeline sends the first script as text if the server may not know it yet, and then those again
// that the server did not know.
func (c Command) pipeline(ctx context.Context, p nodes.Peer, loads []Load) []rueidis.RedisResult {
	first, client := c.firstTo(p.Node), p.Client
	commands := make([]rueidis.Completed, len(loads))
	for i, load := range loads {
		commands[i] = first.eval(client.B(), load.Keys, load.Args)
		first = c
	}
	all := client.DoMulti(ctx, commands...)
	var again []rueidis.Completed
	var unknown []int
	for i, result := range all {
		if outcome.HasCode(result.Error(), "NOSCRIPT") {
			unknown = append(unknown, i)
			again = append(again, c.inFull().eval(client.B(), loads[i].Keys, loads[i].Args))
		}
	}
	if len(again) > 0 {
		for i, result := range client.DoMulti(ctx, again...) {
			all[unknown[i]] = result
		}
	}
	return all
}
