package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey"
)

// playElection shows leaders that resign one after the other, and their successors.
func playElection(ctx context.Context, s *stage) (*proof, error) {
	s.explain(
		fmt.Sprintf("%d workers stand for election. A leader resigns after %v, and the next one leads.", s.workers, s.duration/20),
		"Each leader's term is larger than all terms before it.")
	e := &electorate{stage: s, name: s.prefix + "election", leaders: make(chan termLeader)}
	ctx, cancel := context.WithCancel(ctx)
	defer e.dismiss()
	defer cancel()
	if err := e.stand(ctx); err != nil {
		return nil, err
	}
	return e.follow(ctx)
}

// electorate has the workers that campaign.
type electorate struct {
	stage   *stage
	name    string
	clients []*latchkey.Client
	runners sync.WaitGroup
	gauge   gauge
	ended   atomic.Int64 // when the latest leader stopped, as Unix time in ns
	leaders chan termLeader
}

// termLeader is the leader in a term.
type termLeader struct {
	worker int
	term   int64
	after  time.Duration // since the previous leader stopped
}

// stand starts the workers, each with a client of its own.
func (e *electorate) stand(ctx context.Context) error {
	for range e.stage.workers {
		client, err := e.stage.connect(ctx)
		if err != nil {
			return err
		}
		e.clients = append(e.clients, client)
	}
	for i, client := range e.clients {
		e.runners.Go(func() {
			_ = client.NewElection(e.name).Run(ctx, fmt.Sprintf("worker %d", i+1), func(ctx context.Context, l *latchkey.Leadership) error {
				return e.lead(ctx, termLeader{i + 1, l.Term(), time.Since(time.Unix(0, e.ended.Load()))})
			})
		})
	}
	return nil
}

// lead runs for one term. The leader resigns when lead returns.
func (e *electorate) lead(ctx context.Context, l termLeader) error {
	e.gauge.enter()
	defer e.gauge.leave()
	select {
	case e.leaders <- l:
	case <-ctx.Done():
	}
	err := pause(ctx, e.stage.duration/20)
	e.ended.Store(time.Now().UnixNano())
	return err
}

// follow reports who leads, for three leaders in a row.
func (e *electorate) follow(ctx context.Context) (*proof, error) {
	var terms []int64
	for before := 0; len(terms) < min(3, e.stage.workers); {
		select {
		case l := <-e.leaders:
			if before == 0 {
				e.stage.tell("worker %d leads in term %d; %d others wait", l.worker, l.term, e.stage.workers-1)
			} else {
				e.stage.tell("worker %d resigns; worker %d leads in term %d, %.1f ms later",
					before, l.worker, l.term, float64(l.after)/float64(time.Millisecond))
			}
			before, terms = l.worker, append(terms, l.term)
		case <-time.After(e.stage.duration + patience):
			return &proof{text: fmt.Sprintf("%d leaders, and nobody leads now", len(terms))}, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	most := e.gauge.peak()
	return &proof{
		holds: most == 1 && slices.IsSorted(terms) && len(slices.Compact(terms)) == len(terms),
		text:  fmt.Sprintf("%d leaders in turn, at most %d at once, in terms %v", len(terms), most, terms),
	}, nil
}

// dismiss closes the clients and removes the key of the last term, and the record of a leader that
// was lost, which would stay otherwise.
func (e *electorate) dismiss() {
	e.runners.Wait()
	for _, client := range e.clients {
		closeClient(client)
	}
	ctx, cancel := context.WithTimeout(context.Background(), sweepTimeout)
	defer cancel()
	redis := e.stage.redis
	_ = redis.Do(ctx, redis.B().Del().Key("redisson_lock_token:{"+e.name+"}", "latchkey_leader:{"+e.name+"}").Build()).Error()
}
