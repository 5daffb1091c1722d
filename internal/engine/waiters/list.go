// Package waiters has the waiters of a client that keep a place each in a queue on the server,
// which keeps their order.
package waiters

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
	"github.com/latchkey-go/latchkey/internal/transport/nodes"
)

// Nearest is how many of a client's waiters for one lock listen for their turn. The server grants
// in the order of the line, so no other waiter can be next.
const Nearest = 4

// List has the waiters of a client for its fair locks, or for its permits with ids: lock by
// lock, in the order of the queues on the server. One goroutine keeps time. Another for each node
// keeps the waiters there alive, many with one script, and wakes those that lost their place or
// whose turn has come.
type List struct {
	client *core.Parts
	Queue  Queue
	// shares says that waiters share the channel of their key, and have none of their own. Those
	// that joined before their client listened then try once more, to become grantable.
	shares       bool
	RedissonWait string // ms that a Redisson process subtracts from deadlines
	period       time.Duration
	open         context.Context // ends with Close
	end          context.CancelFunc
	tasks        sync.WaitGroup

	mu     sync.Mutex
	byKey  map[string][]*Waiter      // in the order of their tickets
	shared map[string]*sharedChannel // by key, if waiters have no channels of their own
	active bool
	busy   map[*nodes.Node]bool // nodes whose waiters are being refreshed
}

// Queue is what differs between the queues of fair locks and those for permits with ids.
type Queue interface {
	// AttemptsOf returns the protocol of the attempts of a waiter.
	AttemptsOf(w *Waiter) acquire.Attempts
	// Refresh is the script that keeps waiters alive. It takes the keys and the channel of each
	// lock, and the entries of owners.
	Refresh() transport.Command
	Keys(p *ownership.Lock) []string
	Channel(p *ownership.Lock) string
	Entry(o *ownership.Ownership) string
}

// New makes the list of the waiters in the queues of one kind. shares says that they share the
// channel of their key.
func New(c *core.Parts, q Queue, shares bool) *List {
	o := c.Config
	open, end := context.WithCancel(context.Background())
	return &List{
		client:       c,
		Queue:        q,
		shares:       shares,
		RedissonWait: script.MillisText(o.RedissonFairWait),
		period:       max(min(o.StaleWaiterTimeout/3, o.PollCeiling), time.Millisecond),
		open:         open,
		end:          end,
		byKey:        map[string][]*Waiter{},
		shared:       map[string]*sharedChannel{},
		busy:         map[*nodes.Node]bool{},
	}
}

// Wait waits in the queue on the server. The waiters of this client do not first line up behind
// each other, because the server keeps the order.
func (l *List) Wait(ctx context.Context, a *acquire.Acquisition) error {
	var mark line.Mark
	defer mark.End()
	return l.WaitFor(ctx, a, nil, &mark)
}

// WaitFor is Wait at the front of a line, or of none if that is nil. If the waiter gives up, the
// next one in line goes on with its place. mark counts the call.
func (l *List) WaitFor(ctx context.Context, a *acquire.Acquisition, front *line.FIFO, mark *line.Mark) (err error) {
	a.Start()
	o := a.Ownership
	own := line.Key{Kind: o.Spec.Kind, Key: o.Names.WaiterChannel(o.Wire)}
	w := &Waiter{List: l, Ownership: o, Own: l.client.Lines.Use(own), awaitsSet: a.AwaitSet}
	if front != nil {
		w.takePlace(front)
		defer func() { w.leaveLine(err != nil) }()
	}
	w.Own.DoNotLinger()
	o.OwnEntry(a.Since).WaitAlone(w, min(a.Lease, l.client.Config.StaleWaiterTimeout))
	a.Queued = l.Queue.AttemptsOf(w)
	defer l.remove(w)
	err = l.client.Waiting.InFront(ctx, w.Own, Attempter{a, w}, mark)
	if err == nil {
		l.hadPermits(o.Names.Key)
	}
	return err
}

// isBehind reports whether the waiter has a place in line and is not near the front.
func (l *List) isBehind(w *Waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return w.placed && !w.near
}

// attemptBegins notes that a waiter is about to make an attempt, and returns the line of which it
// is in front.
func (l *List) attemptBegins(w *Waiter) *line.FIFO {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.woken = false
	return w.line
}

// SetPermitPlace notes the place that the server has given to a waiter for permits. One that is not
// in the queue makes room for the next in its line, and keeps its ticket.
func (l *List) SetPermitPlace(w *Waiter, ticket uint64, aside bool) {
	l.SetPlace(w, ticket, true)
	l.mu.Lock()
	w.aside = aside
	l.mu.Unlock()
	if aside {
		w.leaveLine(false)
	}
}

// wake makes a waiter try. l.mu is held.
func (l *List) wake(w *Waiter) {
	w.woken = true
	w.Signal()
}

// setGrantable notes whether the client listens for grants to the waiter.
func (l *List) setGrantable(w *Waiter, yes bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.Grantable = yes
}

// SetPlace notes the place that the server has given, and whether owners of Redisson are involved.
func (l *List) SetPlace(w *Waiter, ticket uint64, strangers bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.strangers = strangers
	if !w.placed {
		l.insert(w, ticket)
	} else if w.near {
		l.listenTo(w)
	}
}

// insert puts a waiter into its line. l.mu is held.
func (l *List) insert(w *Waiter, ticket uint64) {
	w.Ticket, w.placed = ticket, true
	key := w.Ownership.Names.Key
	line := l.byKey[key]
	at := len(line)
	for at > 0 && line[at-1].Ticket > ticket {
		at--
	}
	l.byKey[key] = slices.Insert(line, at, w)
	l.listen(l.byKey[key])
	if !l.active {
		l.active = true
		l.tasks.Go(l.run)
	}
}

// listenTo subscribes a waiter near the front to the channel on which it may be told to try, in
// addition to the client's channel. l.mu is held.
func (l *List) listenTo(w *Waiter) {
	switch {
	case l.shares:
		l.listenShared(w)
	case w.strangers || !w.Grantable:
		w.Own.Subscribe(l.client.Notifier, w.Ownership.Names.WaiterChannel(w.Ownership.Wire))
	}
}

// listen makes the first waiters of a line listen for their turn. l.mu is held.
func (l *List) listen(line []*Waiter) {
	for _, w := range nearest(line) {
		if !w.near {
			w.near = true
			l.listenTo(w)
		}
	}
}

// nearest returns the first waiters of a line.
func nearest(line []*Waiter) []*Waiter { return line[:min(Nearest, len(line))] }

// remove takes a waiter out of its line, whether it acquired or gave up.
func (l *List) remove(w *Waiter) {
	l.mu.Lock()
	if w.placed {
		w.placed = false
		key := w.Ownership.Names.Key
		at := slices.Index(l.byKey[key], w)
		line := slices.Delete(l.byKey[key], at, at+1)
		l.byKey[key] = line
		if len(line) == 0 {
			delete(l.byKey, key)
		}
		l.listen(line)
		if w.woken && len(line) > 0 { // since its last attempt: there may be more
			l.wake(line[0])
		}
	}
	l.mu.Unlock()
	w.Own.Done()
}

// Close ends the goroutines.
func (l *List) Close() {
	l.end()
	l.tasks.Wait()
}
