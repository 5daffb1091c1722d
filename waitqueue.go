package latchkey

import (
	"cmp"
	"container/list"
	"context"
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// A wait queue stands in front of one key. The goroutines of a client that want it form
// one line, and only the front of the line talks to Redis: ten thousand local
// waiters cost the server what one costs. While a goroutine of this client holds
// the key, the front rests until that hold ends, since asking would be in vain.
//
// A lock that promises no order may later be handed to the front inside the
// client; holdReleased is the place for that.
type waitQueue struct {
	shard *queueShard
	key   string
	wake  chan struct{} // holds one signal for the front

	// Guarded by shard.mu.
	users       int       // goroutines in line or in front, and live holds
	busy        bool      // somebody is in front
	line        list.List // of *waiter
	held        int       // live holds of this client
	sub         *subscription
	ownMessages int // messages of our own releases that have yet to come back
	consecutive int // releases in a row after which this client took the key again
	yields      bool
	sides       atomic.Pointer[queueSides] // of a read/write lock
	retired     time.Time                  // since when nobody uses it, while the subscription lingers
	main        *waitQueue                 // whose side this is, or nil
	noLinger    bool                       // the key is used once, so that there is nothing to linger for
	asking      time.Time                  // since when the front waits for an answer, or zero
	last        error                      // what the last answer was, for as long as anybody uses the wait queue
}

// waitQueues finds the wait queue of a key. It is split so that locks of different names
// seldom meet.
type waitQueues struct {
	seed   maphash.Seed
	shards [16]queueShard
}

type queueShard struct {
	mu     sync.Mutex
	queues map[string]*waitQueue
	spare  []*waitQueue // for reuse: an uncontended lock should not allocate one
}

const (
	spareQueues = 64
	// consecutiveLimit is how often in a row a client may take a contended key again
	// before it lets others go first.
	consecutiveLimit = 16
	yieldFor         = 2 * time.Millisecond
)

func newWaitQueues() *waitQueues {
	g := &waitQueues{seed: maphash.MakeSeed()}
	for i := range g.shards {
		g.shards[i].queues = map[string]*waitQueue{}
	}
	return g
}

// use returns the wait queue of key and counts the caller as a user of it.
func (g *waitQueues) use(key string) *waitQueue {
	shard := &g.shards[maphash.String(g.seed, key)%uint64(len(g.shards))]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	gt := shard.queues[key]
	if gt == nil {
		gt = shard.fresh(key)
		shard.queues[key] = gt
	}
	gt.users++
	return gt
}

// fresh takes a wait queue from the spare ones or makes one.
func (s *queueShard) fresh(key string) *waitQueue {
	if n := len(s.spare); n > 0 {
		gt := s.spare[n-1]
		s.spare = s.spare[:n-1]
		gt.key = key
		return gt
	}
	return &waitQueue{shard: s, key: key, wake: make(chan struct{}, 1)}
}

// done ends one use. A wait queue that nobody uses goes, unless its subscription is to
// linger: then the notifier retires it.
func (g *waitQueue) done() {
	g.shard.mu.Lock()
	defer g.shard.mu.Unlock()
	g.users--
	if g.users > 0 {
		return
	}
	g.forget()
	if g.sub != nil {
		g.retired = time.Now()
		return
	}
	g.shard.drop(g)
}

// drop removes an unused wait queue. One that the notifier never knew serves another
// key. shard.mu is held.
func (s *queueShard) drop(g *waitQueue) {
	delete(s.queues, g.key)
	if g.sub == nil && len(s.spare) < spareQueues {
		g.drain()
		g.sides.Store(nil)
		g.ownMessages, g.consecutive, g.yields, g.noLinger = 0, 0, false, false
		s.spare = append(s.spare, g)
	}
}

// doNotLinger says that nobody will come back to this wait queue.
func (g *waitQueue) doNotLinger() {
	g.shard.mu.Lock()
	defer g.shard.mu.Unlock()
	g.noLinger = true
}

// awaitFront joins the line and returns when the caller is in front. An error means
// that ctx ended or the client was closed first.
func (g *waitQueue) awaitFront(ctx context.Context, stop <-chan struct{}) error {
	s := g.join()
	if s == nil {
		return nil
	}
	_, err := g.await(ctx, stop, s)
	return err
}

// waiter is a place in the line.
type waiter struct {
	elem    *list.Element
	inFront chan struct{} // closed when the front is reached
	called  chan struct{} // holds a call to try without leaving the line
}

// join takes a place in the line, or the front, for which it returns nil.
func (g *waitQueue) join() *waiter {
	g.shard.mu.Lock()
	defer g.shard.mu.Unlock()
	if !g.busy {
		g.busy = true
		return nil
	}
	s := &waiter{inFront: make(chan struct{})}
	if g.together() {
		s.called = make(chan struct{}, 1)
	}
	s.elem = g.line.PushBack(s)
	return s
}

// await returns when the place has become the front, or when it is called. After an
// error the place is left.
func (g *waitQueue) await(ctx context.Context, stop <-chan struct{}, s *waiter) (inFront bool, err error) {
	if s == nil {
		return true, nil
	}
	select {
	case <-s.inFront:
		return true, nil
	case <-s.called:
		return false, nil
	case <-stop:
		err = ErrClosed
	case <-ctx.Done():
		err = contextError(ctx)
	}
	g.leave(s)
	return false, err
}

// leave takes a waiter out. If it has come to the front in the meantime, the
// next one does.
func (g *waitQueue) leave(s *waiter) {
	g.shard.mu.Lock()
	defer g.shard.mu.Unlock()
	select {
	case <-s.inFront:
		g.next()
	default:
		g.line.Remove(s.elem)
	}
}

// leaveFront gives up the front to the next in line.
func (g *waitQueue) leaveFront() {
	g.shard.mu.Lock()
	defer g.shard.mu.Unlock()
	g.next()
}

// next moves the line up. shard.mu is held.
func (g *waitQueue) next() {
	first := g.line.Front()
	g.busy = first != nil
	if g.busy {
		close(g.line.Remove(first).(*waiter).inFront)
	}
}

// holdBegan counts a live hold of this client. The use of the wait queue that it is was
// counted before.
func (g *waitQueue) holdBegan() {
	g.shard.mu.Lock()
	defer g.shard.mu.Unlock()
	g.held++
	g.asking, g.last = time.Time{}, ErrNotAcquired
	g.drain()
}

// asks notes that the front asks the server. It counts from the first question that has
// not been answered, even if the one who asked it has left.
func (g *waitQueue) asks() {
	g.shard.mu.Lock()
	defer g.shard.mu.Unlock()
	if g.asking.IsZero() {
		g.asking = time.Now()
	}
}

// told notes what has come of the question: err is why the front has to go on waiting, or
// nil if somebody acquires.
func (g *waitQueue) told(err error) {
	g.shard.mu.Lock()
	defer g.shard.mu.Unlock()
	g.asking, g.last = time.Time{}, cmp.Or(err, ErrNotAcquired)
}

// waitError is the error of a wait that has ended with err: what is known to whoever is in
// front decides, or what the waiter was told last itself.
func (g *waitQueue) waitError(ctx context.Context, err, last error) error {
	g.shard.mu.Lock()
	defer g.shard.mu.Unlock()
	if g.last != nil {
		last = g.last
	}
	if err != nil && ctx.Err() != nil && !ofContext(err) && !isFinal(err) {
		last, err = err, contextError(ctx) // the answer came together with the end
	}
	return waitEnded(err, last, g.held > 0, !g.asking.IsZero() && time.Since(g.asking) > cutOff)
}

// forget drops what those knew who used the wait queue. shard.mu is held.
func (g *waitQueue) forget() {
	g.asking, g.last = time.Time{}, nil
	if s := g.sides.Load(); s != nil {
		s.read.forget()
		s.write.forget()
	}
}

// known returns the wait queue of a key, or nil if nobody uses it.
func (g *waitQueues) known(key string) *waitQueue {
	shard := &g.shards[maphash.String(g.seed, key)%uint64(len(g.shards))]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	return shard.queues[key]
}

// heldHere reports whether this client holds the key.
func (g *waitQueue) heldHere() bool {
	g.shard.mu.Lock()
	defer g.shard.mu.Unlock()
	return g.held > 0
}

// subscribe is called when somebody else turned out to hold the key. The front then
// relies on messages, for which the wait queue subscribes once.
func (g *waitQueue) subscribe(n *notifier, channel string) {
	if g.main != nil {
		g = g.main
	}
	g.shard.mu.Lock()
	defer g.shard.mu.Unlock()
	g.consecutive = 0
	if g.sub == nil && n != nil {
		g.sub = &subscription{channel: channel, queue: g}
		n.add(g.sub)
	}
}

// releaseBegins is called before a release is sent: its own message is not to wake
// the front, which holdReleased will do. It reports whether that message will be heard
// here at all.
func (g *waitQueue) releaseBegins() bool {
	g.shard.mu.Lock()
	defer g.shard.mu.Unlock()
	if !g.sub.live() {
		return false
	}
	g.ownMessages++
	return true
}

// holdReleased ends a hold of this client and wakes the front. told is how many subscribers received the message
// of the release: 0 if none was sent or nobody listens, -1 if it could not be published:
// if others than this client did, it must not take the key again and again. noEcho says that
// the message that releaseBegins expected was never published.
func (g *waitQueue) holdReleased(told int64, noEcho bool) {
	g.holdEnded(told, noEcho)
	g.signal()
	g.done()
}

// holdLeft ends a hold of this client when others still hold the lock: nobody is woken,
// and noEcho says that a message was expected all the same.
func (g *waitQueue) holdLeft(noEcho bool) {
	g.holdEnded(0, noEcho)
	g.done()
}

func (g *waitQueue) holdEnded(told int64, noEcho bool) {
	g.shard.mu.Lock()
	defer g.shard.mu.Unlock()
	if noEcho && g.ownMessages > 0 {
		g.ownMessages--
	}
	if g.sub.live() {
		told--
	}
	g.consecutive++
	if told <= 0 {
		g.consecutive = 0
	}
	if g.consecutive >= consecutiveLimit {
		g.consecutive, g.yields = 0, true
	}
	g.held--
}

// yieldPause returns for how long the front should let other processes go first.
func (g *waitQueue) yieldPause() time.Duration {
	g.shard.mu.Lock()
	defer g.shard.mu.Unlock()
	if !g.yields {
		return 0
	}
	g.yields = false
	return yieldFor/2 + rand.N(yieldFor)
}

// message is called for each message on the key's channel. It never blocks.
func (g *waitQueue) message() {
	g.shard.mu.Lock()
	own := g.ownMessages > 0
	if own {
		g.ownMessages--
	}
	g.shard.mu.Unlock()
	if !own {
		g.signal()
	}
}

// reconnected is called when the subscription begins or ends: what was published
// in between is lost, so the front has to look for itself.
func (g *waitQueue) reconnected() {
	g.shard.mu.Lock()
	g.ownMessages = 0
	g.shard.mu.Unlock()
	g.signal()
}

// signal wakes the front, or whoever comes to the front next. It never blocks.
func (g *waitQueue) signal() {
	nudge(g.wake)
	if s := g.sides.Load(); s != nil {
		s.write.signal()
		s.read.signal()
		s.read.callFirst(calledAtOnce)
	}
}

// drain forgets a signal that came before the state was looked at anyway.
func (g *waitQueue) drain() {
	select {
	case <-g.wake:
	default:
	}
}

// retire drops the wait queue if it has been unused for that long, and reports whether
// its subscription can go.
func (g *waitQueue) retire(linger time.Duration) bool {
	g.shard.mu.Lock()
	defer g.shard.mu.Unlock()
	if g.users > 0 || !g.noLinger && time.Since(g.retired) < linger {
		return false
	}
	g.shard.drop(g)
	return true
}
