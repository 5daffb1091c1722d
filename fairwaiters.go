package latchkey

import (
	"container/list"
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"time"
)

const (
	// nearest is how many of the waiters of a client for one lock listen for their
	// turn. The server grants in the order of the line, so that no other can be next.
	nearest = 4
	// refreshBatch is how many waiters one script refreshes.
	refreshBatch = 100
	// nodeRefreshes is how many of these scripts are under way at once to a node, and
	// clusterRefreshes to all nodes together.
	nodeRefreshes    = 8
	clusterRefreshes = 100
)

// fairWaitList knows who waits for the fair locks of a client. Each waiter stands in the
// queue on the server; here they stand in the same order, lock by lock. A goroutine
// keeps time, and one for each node keeps the waiters there alive in the eyes of the
// server, many with one script, and wakes those who have lost their place or whose turn
// it is.
type fairWaitList struct {
	client *Client
	stale  string // the stale-waiter timeout in ms, as it is sent
	shift  string // what a Redisson process takes off deadlines, in ms
	period time.Duration
	open   context.Context // ends with close
	end    context.CancelFunc
	tasks  sync.WaitGroup

	mu     sync.Mutex
	byKey  map[string]*list.List // of *fairWaiter, by their tickets
	active bool
	busy   map[string]bool // nodes to which the last refresh is still under way
}

// fairWaiter is one waiter in the queue of a fair lock.
type fairWaiter struct {
	t     *ownership
	queue *waitQueue // of its own channel

	// Guarded by fairWaitList.mu.
	ticket uint64 // 0 before the server has given one
	elem   *list.Element
	near   bool
}

func newFairWaitList(c *Client) *fairWaitList {
	o := c.options
	open, end := context.WithCancel(context.Background())
	return &fairWaitList{
		client: c,
		stale:  c.staleMS,
		shift:  strconv.FormatInt(millis(o.RedissonFairWait), 10),
		period: max(min(o.StaleWaiterTimeout/3, o.PollCeiling), time.Millisecond),
		open:   open,
		end:    end,
		byKey:  map[string]*list.List{},
		busy:   map[string]bool{},
	}
}

// waitFairly waits for a lock that is granted in order. Nobody waits for another
// waiter of this client first, because the order is the server's.
func (p *primitive) waitFairly(ctx context.Context, r *request, t *ownership) (*Hold, error) {
	t = p.orFresh(t, r)
	pl := &fairWaiter{t: t, queue: p.client.waitQueues.use(p.waiterChannel(t.wire))}
	pl.queue.doNotLinger()
	t.fairWaiter = pl
	defer func() {
		t.fairWaiter = nil
		p.client.fairWaiters.remove(pl)
	}()
	return t.conclude(r, t.waitInFront(ctx, r, pl.queue))
}

// readTicket reads the reply to an attempt that has been given a place in the queue.
func (t *ownership) readTicket(a answer) (left time.Duration, err error) {
	reply, err := a.message.ToArray()
	if err != nil || len(reply) < 2 {
		return 0, errReply
	}
	pause, err1 := reply[0].AsInt64()
	ticket, err2 := reply[1].AsUint64()
	t.markQueued()
	t.fairWaiter.setTicket(ticket)
	if err := errors.Join(err1, err2); err != nil {
		return 0, errors.Join(errReply, err)
	}
	holder := ""
	if len(reply) > 2 {
		holder, _ = reply[2].ToString()
	}
	return fromMillis(pause), t.busyWith(holder, -1) // the pause may end sooner than the lease
}

// fairPause returns how long to rest: as long as the server said if this is one of
// the next, or has no place in the line yet, else until somebody calls.
func (t *ownership) fairPause(left time.Duration) time.Duration {
	l := t.client.fairWaiters
	l.mu.Lock()
	behind := t.fairWaiter.elem != nil && !t.fairWaiter.near
	l.mu.Unlock()
	if behind {
		return 4 * t.client.options.StaleWaiterTimeout
	}
	return until(left, t.client.pollPause())
}

// ticketText is what the server has to be told of the place.
func (pl *fairWaiter) ticketText() string {
	l := pl.t.client.fairWaiters
	l.mu.Lock()
	defer l.mu.Unlock()
	if pl.ticket == 0 {
		return ""
	}
	return strconv.FormatUint(pl.ticket, 10)
}

// setTicket notes that the server has given a place.
func (pl *fairWaiter) setTicket(ticket uint64) {
	l := pl.t.client.fairWaiters
	l.mu.Lock()
	defer l.mu.Unlock()
	if pl.elem == nil {
		l.insert(pl, ticket)
	}
}

// insert puts a place in its line. l.mu is held.
func (l *fairWaitList) insert(pl *fairWaiter, ticket uint64) {
	pl.ticket = ticket
	line := l.byKey[pl.t.lock.key]
	if line == nil {
		line = list.New()
		l.byKey[pl.t.lock.key] = line
	}
	before := line.Back()
	for before != nil && before.Value.(*fairWaiter).ticket > ticket {
		before = before.Prev()
	}
	if before == nil {
		pl.elem = line.PushFront(pl)
	} else {
		pl.elem = line.InsertAfter(pl, before)
	}
	l.listen(line)
	if !l.active {
		l.active = true
		l.tasks.Go(l.run)
	}
}

// listen lets the first of a line hear of their turn. l.mu is held.
func (l *fairWaitList) listen(line *list.List) {
	e := line.Front()
	for i := 0; i < nearest && e != nil; i++ {
		if pl := e.Value.(*fairWaiter); !pl.near {
			pl.near = true
			pl.queue.subscribe(l.client.notifier, pl.t.lock.waiterChannel(pl.t.wire))
		}
		e = e.Next()
	}
}

// remove ends the waiting, one way or the other.
func (l *fairWaitList) remove(pl *fairWaiter) {
	l.mu.Lock()
	if pl.elem != nil {
		line := l.byKey[pl.t.lock.key]
		line.Remove(pl.elem)
		pl.elem = nil
		if line.Len() == 0 {
			delete(l.byKey, pl.t.lock.key)
		}
		l.listen(line)
	}
	l.mu.Unlock()
	pl.queue.done()
}

// close ends the goroutines.
func (l *fairWaitList) close() {
	l.end()
	l.tasks.Wait()
}

// run refreshes once in a period for as long as anybody waits, and does not wait for the
// answers: a node that is silent must not cost those elsewhere their places.
func (l *fairWaitList) run() {
	for {
		if rest(l.open, nil, l.period) != nil {
			return
		}
		due, flights := l.due()
		if due == nil {
			return
		}
		for node, batches := range due {
			l.tasks.Go(func() { l.refreshNode(node, batches, flights) })
		}
	}
}

// due collects what is to be refreshed now, by node, and how many scripts may be under
// way to each. It ends the work if nobody waits. A node whose last refresh is still under
// way is left out, and the others are marked as busy.
func (l *fairWaitList) due() (due map[string][]*refreshing, flights int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	due = l.batches(func(string) bool { return true })
	if len(due) == 0 {
		l.active = false
		return nil, 0
	}
	flights = min(nodeRefreshes, max(1, clusterRefreshes/len(due)))
	for node := range due {
		if l.busy[node] {
			delete(due, node)
		} else {
			l.busy[node] = true
		}
	}
	return due, flights
}

// refreshNode refreshes the waiters on one node. After trouble it tries again soon.
func (l *fairWaitList) refreshNode(node string, batches []*refreshing, flights int) {
	for {
		err := l.refreshAll(batches, flights)
		if err == nil || l.open.Err() != nil {
			break
		}
		l.client.reporter.log(noticeRefresh, node, slog.Any("error", err))
		if rest(l.open, nil, min(l.period, jitter(longPause))) != nil {
			break
		}
		l.mu.Lock()
		batches = l.batches(func(n string) bool { return n == node })[node]
		l.mu.Unlock()
	}
	l.mu.Lock()
	delete(l.busy, node)
	l.mu.Unlock()
}

// refreshAll sends batches, several at once because the server may be far away, and
// returns one of the errors.
func (l *fairWaitList) refreshAll(batches []*refreshing, flights int) error {
	failed := make(chan error, len(batches))
	inParallel(flights, batches, func(b *refreshing) {
		if err := l.refresh(b); err != nil {
			failed <- err
		}
	})
	close(failed)
	return <-failed
}

// refreshing is what one script is to refresh.
type refreshing struct {
	call
	places []*fairWaiter
	groups [][]*fairWaiter // the same, lock by lock
}

// batches collects the waiters on the nodes that are wanted. l.mu is held.
func (l *fairWaitList) batches(wanted func(node string) bool) map[string][]*refreshing {
	all := map[string][]*refreshing{}
	open := map[uint16]*refreshing{}
	for key, line := range l.byKey {
		slot, node := uint16(0), ""
		if l.client.cluster {
			slot = keySlot(key)
			node = l.client.topology.of(slot)
		}
		for e := line.Front(); e != nil && wanted(node); {
			b := open[slot]
			if b == nil || len(b.places) >= refreshBatch {
				b = l.newRefreshing()
				all[node], open[slot] = append(all[node], b), b
			}
			e = b.fill(e)
		}
	}
	return all
}

// newRefreshing makes an empty batch.
func (l *fairWaitList) newRefreshing() *refreshing {
	return &refreshing{call: call{cmd: fairRefresh, args: []string{l.stale, l.client.publish}}}
}

// fill adds waiters of one lock, from e on, and returns the first that found no room.
func (b *refreshing) fill(e *list.Element) *list.Element {
	var places []*fairWaiter
	for ; e != nil && len(b.places)+len(places) < refreshBatch; e = e.Next() {
		places = append(places, e.Value.(*fairWaiter))
	}
	b.add(places)
	return e
}

// add adds waiters of one lock.
func (b *refreshing) add(places []*fairWaiter) {
	lock := places[0].t.lock
	b.keys = append(b.keys, lock.fairKeys()...)
	b.args = append(b.args, lock.waiterChannel(""), strconv.Itoa(len(places)))
	for _, pl := range places {
		b.args = append(b.args, pl.t.wire)
	}
	b.places = append(b.places, places...)
	b.groups = append(b.groups, places)
}

// split makes a batch for each lock.
func (l *fairWaitList) split(b *refreshing) []*refreshing {
	each := make([]*refreshing, len(b.groups))
	for i, places := range b.groups {
		each[i] = l.newRefreshing()
		each[i].add(places)
	}
	return each
}

// What fair_refresh.lua says of a waiter that has its place and has to wait on.
const inPlace = 1

// refresh sends one batch, and wakes those who should ask for themselves.
func (l *fairWaitList) refresh(b *refreshing) error {
	ctx, cancel := context.WithTimeout(l.open, max(l.period, minPatience))
	defer cancel()
	states, err := l.client.sender.sendOnce(ctx, b.cmd, b.keys, b.args).AsIntSlice()
	switch {
	case divisible(err):
		return l.refreshEach(b, err)
	case err != nil:
		return err
	case len(states) != len(b.places):
		return errReply
	}
	for i, pl := range b.places {
		if states[i] != inPlace {
			pl.queue.signal()
		}
	}
	return nil
}

// refreshEach refreshes the locks of a batch one by one, when the server refuses the
// whole: one damaged key must not cost the others their places. Those who wait for
// the damaged one ask for themselves, and are told. To those whose slot is half moved the
// server would tell nothing else.
func (l *fairWaitList) refreshEach(b *refreshing, refusal error) error {
	each := l.split(b)
	switch {
	case len(each) > 1:
		return l.refreshAll(each, 1)
	case classify(refusal) != refused:
		return refusal
	}
	for _, pl := range b.places {
		pl.queue.signal()
	}
	return refusal
}

// minPatience is what a refresh waits for its answer at least.
const minPatience = 100 * time.Millisecond
