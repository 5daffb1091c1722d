package latchkey

import (
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// nearest is how many of a client's waiters for one lock listen for their turn. The server grants
// in the order of the line, so no other waiter can be next.
const nearest = 4

// fairWaitList has the waiters of a client for its fair locks, or for its permits with ids: lock by
// lock, in the order of the queues on the server. One goroutine keeps time. Another for each node
// keeps the waiters there alive, many with one script, and wakes those that lost their place or
// whose turn has come.
type fairWaitList struct {
	client *ownership.Engine
	queue  fairQueue
	// shares says that waiters share the channel of their key, and have none of their own. Those that joined
	// before their client listened then try once more, to become grantable.
	shares       bool
	redissonWait string // ms that a Redisson process subtracts from deadlines
	period       time.Duration
	open         context.Context // ends with close
	end          context.CancelFunc
	tasks        sync.WaitGroup

	mu     sync.Mutex
	byKey  map[string]*list.List     // of *fairWaiter, in the order of their tickets
	shared map[string]*sharedChannel // by key, if waiters have no channels of their own
	active bool
	busy   map[*transport.Node]bool // nodes whose waiters are being refreshed
}

// fairQueue is what differs between the queues of fair locks and those for permits with ids.
type fairQueue interface {
	// attemptsOf returns the protocol of the attempts of a waiter.
	attemptsOf(w *fairWaiter) acquire.Attempts
	// refresh is the script that keeps waiters alive. It takes the keys and the channel of each
	// lock, and the entries of owners.
	refresh() transport.Command
	keys(p *ownership.Lock) []string
	channel(p *ownership.Lock) string
	entry(o *ownership.Ownership) string
}

// newFairWaitList makes the list of the waiters in the queues of one kind. shares says that they share the channel of
// their key.
func newFairWaitList(c *ownership.Engine, q fairQueue, shares bool) *fairWaitList {
	o := c.Config
	open, end := context.WithCancel(context.Background())
	return &fairWaitList{
		client:       c,
		queue:        q,
		shares:       shares,
		redissonWait: script.MillisText(o.RedissonFairWait),
		period:       max(min(o.StaleWaiterTimeout/3, o.PollCeiling), time.Millisecond),
		open:         open,
		end:          end,
		byKey:        map[string]*list.List{},
		shared:       map[string]*sharedChannel{},
		busy:         map[*transport.Node]bool{},
	}
}

// wait waits in the queue on the server. The waiters of this client do not first line up behind
// each other, because the server keeps the order.
func (l *fairWaitList) wait(ctx context.Context, a *acquire.Acquisition) error {
	var mark line.Mark
	defer mark.End()
	return l.waitFor(ctx, a, nil, &mark)
}

// waitFor is wait at the front of a line, or of none if that is nil. If the waiter gives up, the next one in line goes
// on with its place. mark counts the call.
func (l *fairWaitList) waitFor(ctx context.Context, a *acquire.Acquisition, front *line.FIFO, mark *line.Mark) (err error) {
	a.Start()
	o := a.Ownership
	w := &fairWaiter{list: l, ownership: o, queue: l.client.Lines.Use(line.Key{Kind: o.Lock.Spec.Kind, Key: o.Lock.Names.WaiterChannel(o.Wire)}), awaitsSet: a.AwaitSet}
	if front != nil {
		w.takePlace(front)
		defer func() { w.leaveLine(err != nil) }()
	}
	w.queue.DoNotLinger()
	o.WaitAlone(w, a.Lease, a.Since)
	a.Queued = l.queue.attemptsOf(w)
	defer l.remove(w)
	return l.client.Waiting.InFront(ctx, w.queue, fairAttempter{a, l, w}, mark)
}

// isBehind reports whether the waiter has a place in line and is not near the front.
func (l *fairWaitList) isBehind(w *fairWaiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return w.elem != nil && !w.near
}

// attemptBegins notes that a waiter is about to make an attempt, and returns the line of which it is in front.
func (l *fairWaitList) attemptBegins(w *fairWaiter) *line.FIFO {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.woken = false
	return w.line
}

// setPermitPlace notes the place that the server has given to a waiter for permits. One that is not in the queue makes
// room for the next in its line, and keeps its ticket.
func (l *fairWaitList) setPermitPlace(w *fairWaiter, ticket uint64, aside bool) {
	l.setPlace(w, ticket, true)
	l.mu.Lock()
	w.aside = aside
	l.mu.Unlock()
	if aside {
		w.leaveLine(false)
	}
}

// wake makes a waiter try. l.mu is held.
func (l *fairWaitList) wake(w *fairWaiter) {
	w.woken = true
	w.Signal()
}

// setGrantable notes whether the client listens for grants to the waiter.
func (l *fairWaitList) setGrantable(w *fairWaiter, yes bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.grantable = yes
}

// setPlace notes the place that the server has given, and whether owners of Redisson are involved.
func (l *fairWaitList) setPlace(w *fairWaiter, ticket uint64, strangers bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.strangers = strangers
	if w.elem == nil {
		l.insert(w, ticket)
	} else if w.near {
		l.listenTo(w)
	}
}

// insert puts a waiter into its line. l.mu is held.
func (l *fairWaitList) insert(w *fairWaiter, ticket uint64) {
	w.ticket = ticket
	line := l.byKey[w.ownership.Lock.Names.Key]
	if line == nil {
		line = list.New()
		l.byKey[w.ownership.Lock.Names.Key] = line
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

// listenTo subscribes a waiter near the front to the channel on which it may be told to try, in addition to the
// client's channel. l.mu is held.
func (l *fairWaitList) listenTo(w *fairWaiter) {
	switch {
	case l.shares:
		l.listenShared(w)
	case w.strangers || !w.grantable:
		w.queue.Subscribe(l.client.Notifier, w.ownership.Lock.Names.WaiterChannel(w.ownership.Wire))
	}
}

// listen makes the first waiters of a line listen for their turn. l.mu is held.
func (l *fairWaitList) listen(line *list.List) {
	e := line.Front()
	for i := 0; i < nearest && e != nil; i++ {
		if w := e.Value.(*fairWaiter); !w.near {
			w.near = true
			l.listenTo(w)
		}
		e = e.Next()
	}
}

// remove takes a waiter out of its line, whether it acquired or gave up.
func (l *fairWaitList) remove(w *fairWaiter) {
	l.mu.Lock()
	if w.elem != nil {
		line := l.byKey[w.ownership.Lock.Names.Key]
		line.Remove(w.elem)
		w.elem = nil
		if line.Len() == 0 {
			delete(l.byKey, w.ownership.Lock.Names.Key)
		}
		l.listen(line)
		if w.woken && line.Len() > 0 { // since its last attempt: there may be more
			l.wake(line.Front().Value.(*fairWaiter))
		}
	}
	l.mu.Unlock()
	w.queue.Done()
}

// close ends the goroutines.
func (l *fairWaitList) close() {
	l.end()
	l.tasks.Wait()
}
