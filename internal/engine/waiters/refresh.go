package waiters

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/engine/report"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport/nodes"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
	"github.com/latchkey-go/latchkey/internal/transport/retry"
)

// The client keeps its waiters for fair locks and for permits with ids alive on the server, many of
// a node with one script. It wakes those that lost their place or whose turn has come.

const (
	// refreshBatch is how many waiters one script refreshes.
	refreshBatch = 100
	// nodeRefreshes is how many of these scripts are in flight to one node at once.
	nodeRefreshes = 8
)

// run refreshes once per period while anybody waits. It does not wait for the answers: a silent
// node must not cost waiters on other nodes their places.
func (l *List) run() {
	for retry.Rest(l.open, nil, l.period) == nil {
		if !l.beginRound() {
			return
		}
	}
}

// beginRound begins to refresh the waiters on each node, unless the previous round there is still
// in flight. It returns false if nobody waits.
func (l *List) beginRound() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for node, batches := range l.batches(nil) {
		if !l.busy[node] {
			l.busy[node] = true
			l.tasks.Go(func() { l.refreshNode(node, batches) })
		}
	}
	l.active = len(l.byKey) > 0
	return l.active
}

// refreshNode refreshes the waiters on one node. After a failure it soon tries again, with those
// that wait then.
func (l *List) refreshNode(node *nodes.Node, batches []*Refreshing) {
	for {
		err := l.refreshAll(batches, nodeRefreshes)
		if err == nil || l.open.Err() != nil {
			break
		}
		l.client.Reporter.Log(report.NoticeRefresh, node.Address(), slog.Any("error", err))
		_ = retry.Rest(l.open, nil, min(l.period, retry.Jitter(retry.LongPause)))
		l.mu.Lock()
		batches = l.batches(node)[node]
		l.mu.Unlock()
	}
	l.mu.Lock()
	delete(l.busy, node)
	l.mu.Unlock()
}

// refreshAll sends batches, several at once because the server may be far away, and returns one of
// the errors.
func (l *List) refreshAll(batches []*Refreshing, flights int) error {
	failed := make(chan error, len(batches))
	async.ForEach(flights, batches, func(b *Refreshing) {
		if err := l.refresh(b); err != nil {
			failed <- err
		}
	})
	close(failed)
	return <-failed
}

// Refreshing is what one script refreshes.
type Refreshing struct {
	script.Call
	queue   Queue
	waiters []*Waiter
	groups  [][]*Waiter // the same, lock by lock
}

// batches collects the waiters on one node, or on all nodes if wanted is nil. l.mu is held.
func (l *List) batches(wanted *nodes.Node) map[*nodes.Node][]*Refreshing {
	all := map[*nodes.Node][]*Refreshing{}
	open := map[uint16]*Refreshing{}
	for key, line := range l.byKey {
		slot := l.client.Topology.SlotOf(key)
		node := l.client.Topology.Serving(slot)
		if wanted != nil && wanted != node {
			continue
		}
		for len(line) > 0 {
			b := open[slot]
			if b == nil || len(b.waiters) >= refreshBatch {
				b = l.NewRefreshing()
				all[node], open[slot] = append(all[node], b), b
			}
			some := line[:min(len(line), refreshBatch-len(b.waiters))]
			b.Add(slices.Clone(some))
			line = line[len(some):]
		}
	}
	return all
}

// NewRefreshing makes an empty batch.
func (l *List) NewRefreshing() *Refreshing {
	_, suffix := l.client.Inbox.Channels("")
	return &Refreshing{queue: l.Queue, Call: script.Call{Cmd: l.Queue.Refresh(), Args: []string{
		l.client.StaleMS, l.client.Publish, suffix, l.client.Inbox.Counted()}}}
}

// Add adds waiters of one lock.
func (b *Refreshing) Add(waiters []*Waiter) {
	lock := waiters[0].Ownership.Lock
	b.Keys = append(b.Keys, b.queue.Keys(lock)...)
	clients, _ := lock.Client.Inbox.Channels(lock.Names.Key)
	b.Args = append(b.Args, b.queue.Channel(lock), clients, strconv.Itoa(len(waiters)))
	for _, w := range waiters {
		b.Args = append(b.Args, b.queue.Entry(w.Ownership))
	}
	b.waiters = append(b.waiters, waiters...)
	b.groups = append(b.groups, waiters)
}

// split makes a batch for each lock.
func (l *List) split(b *Refreshing) []*Refreshing {
	each := make([]*Refreshing, len(b.groups))
	for i, waiters := range b.groups {
		each[i] = l.NewRefreshing()
		each[i].Add(waiters)
	}
	return each
}

// Replies of the scripts for one waiter: it has its place and must keep waiting, or nobody has set
// the permits of its semaphore.
const (
	InPlace = 1
	isUnset = 3
)

// refresh sends one batch, and wakes the waiters that must make an attempt of their own.
func (l *List) refresh(b *Refreshing) error {
	ctx, cancel := context.WithTimeout(l.open, max(l.period, minPatience))
	defer cancel()
	states, err := l.client.Sender.SendOnce(ctx, b.Call).AsIntSlice()
	switch {
	case script.Divisible(err):
		return l.refreshEach(b, err)
	case err != nil:
		return err
	case len(states) != len(b.waiters):
		return script.ErrReply
	}
	for i, w := range b.waiters {
		if states[i] != InPlace && (states[i] != isUnset || !w.awaitsSet) {
			w.Own.Signal()
		}
	}
	return nil
}

// refreshEach refreshes the locks of a batch one by one after the server refused the whole: one
// damaged key must not cost the other waiters their places. The waiters for the damaged lock make
// their own attempts, and get the error. In a slot that is half migrated the server refuses every
// batch of several locks.
func (l *List) refreshEach(b *Refreshing, refusal error) error {
	each := l.split(b)
	switch {
	case len(each) > 1:
		return l.refreshAll(each, 1)
	case outcome.Classify(refusal) != outcome.Refused:
		return refusal
	}
	for _, w := range b.waiters {
		w.Own.Signal()
	}
	return refusal
}

// minPatience is the shortest time for which a refresh waits for its answer.
const minPatience = 100 * time.Millisecond
