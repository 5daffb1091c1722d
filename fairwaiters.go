package latchkey

import (
	"container/list"
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// nearest is how many of the waiters of a client for one lock listen for their
// turn. The server grants in the order of the line, so that no other can be next.
const nearest = 4

// fairWaitList knows who waits for the fair locks of a client, or for its fair semaphores. Each waiter stands in the
// queue on the server; here they stand in the same order, lock by lock. A goroutine
// keeps time, and one for each node keeps the waiters there alive in the eyes of the
// server, many with one script, and wakes those who have lost their place or whose turn
// it is.
type fairWaitList struct {
	client *Client
	queue  fairQueue
	// oneChannel says that waiters have no channels of their own. So all that came before their client listened
	// ask once more, to be granted what they wait for.
	oneChannel bool
	shift      string // what a Redisson process takes off deadlines, in ms
	period     time.Duration
	open       context.Context // ends with close
	end        context.CancelFunc
	tasks      sync.WaitGroup

	plain, fenced *spec // of its locks

	mu     sync.Mutex
	byKey  map[string]*list.List // of *fairWaiter, by their tickets
	active bool
}

// fairQueue is what tells the queues of fair locks from those of fair semaphores.
type fairQueue interface {
	// attempts is how the attempts of a waiter are made.
	attempts(w *fairWaiter) protocol
	// listen has a waiter that is one of the next listen where it may be told to ask, beside the channel of the
	// client. fairWaitList.mu is held.
	listen(w *fairWaiter)
	// refresh is the script that keeps waiters alive, with the keys of a lock, what it is told of the channels
	// of the lock, and the name of an owner in the queue.
	refresh() transport.Command
	keys(p *primitive) []string
	channel(p *primitive) string
	entry(o *ownership) string
}

// fairWaiter is one waiter in the queue of a fair lock. The server makes it the owner when its
// turn comes, and tells the client. It has a channel of its own as well, on which it is told to
// ask: by waiters of Redisson, and if the client does not listen.
type fairWaiter struct {
	list      *fairWaitList
	ownership *ownership
	queue     *waitQueue // of its own channel
	awaitsSet bool       // it waits also for somebody to set the permits

	// Guarded by fairWaitList.mu.
	ticket    uint64 // 0 before the server has given one
	elem      *list.Element
	near      bool
	grantable bool // the client listens
	strangers bool // one of Redisson holds the lock or stands before it
	called    bool // to ask, since it last did
}

// newFairWaitList makes the list of those in the queues of one kind.
func newFairWaitList(c *Client) *fairWaitList {
	o := c.options
	open, end := context.WithCancel(context.Background())
	return &fairWaitList{
		client: c,
		shift:  strconv.FormatInt(millis(o.RedissonFairWait), 10),
		period: max(min(o.StaleWaiterTimeout/3, o.PollCeiling), time.Millisecond),
		open:   open,
		end:    end,
		byKey:  map[string]*list.List{},
	}
}

// wait waits in the queue on the server. No waiter of this client waits for another one
// first, because the order is the server's.
func (l *fairWaitList) wait(ctx context.Context, a *acquisition) error {
	a.start()
	o := a.ownership
	w := &fairWaiter{list: l, ownership: o, queue: l.client.waitQueues.use(o.lock.keys().waiterChannel(o.wire)), awaitsSet: a.awaitSet}
	w.queue.doNotLinger()
	e := o.ownEntry(a.since)
	e.lease, e.waiter = min(a.lease, l.client.options.StaleWaiterTimeout), w
	a.queued = l.queue.attempts(w)
	defer l.remove(w)
	return l.client.waitInFront(ctx, w.queue, fairAttempter{a, l, w})
}

// fairAttempter makes the attempts of an acquisition that waits in the queue on the server.
type fairAttempter struct {
	*acquisition

	waiters *fairWaitList
	waiter  *fairWaiter
}

// attempt implements [attempter]. An owner that another client has made is none of ours, and the
// server would tell that client.
func (f fairAttempter) attempt(ctx context.Context, round int) (left time.Duration, err error) {
	f.waiters.asks(f.waiter)
	if !f.ownership.isGuest {
		f.waiters.setGrantable(f.waiter, f.waiters.client.handover.listens(f.ownership) && !f.permanent)
	}
	return f.acquisition.attempt(ctx, round)
}

// pause implements [attempter]. The first refusal has the client listen. It is as long as the
// server said if this is one of the next, or has no place in the line yet; the others rest until
// somebody calls.
func (f fairAttempter) pause(_ *waitQueue, _ int, left time.Duration) time.Duration {
	c := f.waiters.client
	f.reportNoExpiry(left)
	f.showWaiting()
	if !f.ownership.isGuest {
		c.handover.listen(f.ownership)
	}
	if f.waiters.isBehind(f.waiter) {
		return 4 * c.options.StaleWaiterTimeout
	}
	return pauseUntil(left, c.pollPause())
}

// isBehind reports whether others of this client are nearer to the front.
func (l *fairWaitList) isBehind(w *fairWaiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return w.elem != nil && !w.near
}

// ticketText is what the server has to be told of the place.
func (l *fairWaitList) ticketText(w *fairWaiter) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.ticket == 0 {
		return ""
	}
	return strconv.FormatUint(w.ticket, 10)
}

// grantText is for how many ms the server may make the waiter the owner, or "".
func (l *fairWaitList) grantText(w *fairWaiter) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !w.grantable {
		return ""
	}
	return l.client.leaseText(w.ownership.entry.lease)
}

// asks notes that a waiter is about to ask.
func (l *fairWaitList) asks(w *fairWaiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.called = false
}

// call has a waiter ask. l.mu is held.
func (l *fairWaitList) call(w *fairWaiter) {
	w.called = true
	w.signal()
}

// setGrantable notes whether the client listens for what the waiter is granted.
func (l *fairWaitList) setGrantable(w *fairWaiter, yes bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.grantable = yes
}

// setPlace notes that the server has given a place, and whether strangers are concerned.
func (l *fairWaitList) setPlace(w *fairWaiter, ticket uint64, strangers bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.strangers = strangers
	if w.elem == nil {
		l.insert(w, ticket)
	} else if w.near {
		l.queue.listen(w)
	}
}

// signal implements [waker].
func (w *fairWaiter) signal() { w.queue.signal() }

// reconnected implements [waker]. Those behind the first few cannot have missed anything.
func (w *fairWaiter) reconnected() {
	w.list.mu.Lock()
	near := w.near || w.elem == nil || w.list.oneChannel && !w.grantable
	w.list.mu.Unlock()
	if near {
		w.queue.signal()
	}
}

// insert puts a place in its line. l.mu is held.
func (l *fairWaitList) insert(w *fairWaiter, ticket uint64) {
	w.ticket = ticket
	line := l.byKey[w.ownership.lock.key]
	if line == nil {
		line = list.New()
		l.byKey[w.ownership.lock.key] = line
	}
	before := line.Back()
	for before != nil && before.Value.(*fairWaiter).ticket > ticket {
		before = before.Prev()
	}
	if before == nil {
		w.elem = line.PushFront(w)
	} else {
		w.elem = line.InsertAfter(w, before)
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
		if w := e.Value.(*fairWaiter); !w.near {
			w.near = true
			l.queue.listen(w)
		}
		e = e.Next()
	}
}

// remove ends the waiting, one way or the other.
func (l *fairWaitList) remove(w *fairWaiter) {
	l.mu.Lock()
	if w.elem != nil {
		line := l.byKey[w.ownership.lock.key]
		line.Remove(w.elem)
		w.elem = nil
		if line.Len() == 0 {
			delete(l.byKey, w.ownership.lock.key)
		}
		l.listen(line)
		if w.called && line.Len() > 0 { // since it asked: there may be more
			l.call(line.Front().Value.(*fairWaiter))
		}
	}
	l.mu.Unlock()
	w.queue.done()
}

// close ends the goroutines.
func (l *fairWaitList) close() {
	l.end()
	l.tasks.Wait()
}
