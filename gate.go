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

// A gate stands in front of one key. The goroutines of a client that want it form
// one line, and only the front of the line talks to Redis: ten thousand local
// waiters cost the server what one costs. While a goroutine of this client holds
// the key, the front rests until that hold ends, since asking would be in vain.
//
// A lock that promises no order may later be handed to the front inside the
// client; released is the place for that.
type gate struct {
	shard *gateShard
	key   string
	wake  chan struct{} // holds one signal for the front

	// Guarded by shard.mu.
	users   int       // goroutines in line or in front, and live holds
	busy    bool      // somebody is in front
	line    list.List // of *spot
	held    int       // live holds of this client
	sub     *subscription
	echoes  int // messages of our own releases that have yet to come back
	streak  int // releases in a row after which this client took the key again
	modest  bool
	sides   atomic.Pointer[gateSides] // of a read/write lock
	retired time.Time                 // since when nobody uses it, while the subscription lingers
	main    *gate                     // whose side this is, or nil
	brief   bool                      // the key is used once, so that there is nothing to linger for
	asking  time.Time                 // since when the front waits for an answer, or zero
	last    error                     // what the last answer was, for as long as anybody uses the gate
}

// gates finds the gate of a key. It is split so that locks of different names
// seldom meet.
type gates struct {
	seed   maphash.Seed
	shards [16]gateShard
}

type gateShard struct {
	mu    sync.Mutex
	gates map[string]*gate
	spare []*gate // for reuse: an uncontended lock should not allocate one
}

const (
	spareGates = 64
	// streakLimit is how often in a row a client may take a contended key again
	// before it lets others go first.
	streakLimit = 16
	modestPause = 2 * time.Millisecond
)

func newGates() *gates {
	g := &gates{seed: maphash.MakeSeed()}
	for i := range g.shards {
		g.shards[i].gates = map[string]*gate{}
	}
	return g
}

// use returns the gate of key and counts the caller as a user of it.
func (g *gates) use(key string) *gate {
	shard := &g.shards[maphash.String(g.seed, key)%uint64(len(g.shards))]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	gt := shard.gates[key]
	if gt == nil {
		gt = shard.fresh(key)
		shard.gates[key] = gt
	}
	gt.users++
	return gt
}

// fresh takes a gate from the spare ones or makes one.
func (s *gateShard) fresh(key string) *gate {
	if n := len(s.spare); n > 0 {
		gt := s.spare[n-1]
		s.spare = s.spare[:n-1]
		gt.key = key
		return gt
	}
	return &gate{shard: s, key: key, wake: make(chan struct{}, 1)}
}

// done ends one use. A gate that nobody uses goes, unless its subscription is to
// linger: then the notifier retires it.
func (g *gate) done() {
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

// drop removes an unused gate. One that the notifier never knew serves another
// key. shard.mu is held.
func (s *gateShard) drop(g *gate) {
	delete(s.gates, g.key)
	if g.sub == nil && len(s.spare) < spareGates {
		g.drain()
		g.sides.Store(nil)
		g.echoes, g.streak, g.modest, g.brief = 0, 0, false, false
		s.spare = append(s.spare, g)
	}
}

// shortLived says that nobody will come back to this gate.
func (g *gate) shortLived() {
	g.shard.mu.Lock()
	defer g.shard.mu.Unlock()
	g.brief = true
}

// enter joins the line and returns when the caller is in front. An error means
// that ctx ended or the client was closed first.
func (g *gate) enter(ctx context.Context, stop <-chan struct{}) error {
	s := g.join()
	if s == nil {
		return nil
	}
	_, err := g.await(ctx, stop, s)
	return err
}

// spot is a place in the line.
type spot struct {
	elem    *list.Element
	inFront chan struct{} // closed when the front is reached
	called  chan struct{} // holds a call to try without leaving the line
}

// join takes a place in the line, or the front, for which it returns nil.
func (g *gate) join() *spot {
	g.shard.mu.Lock()
	defer g.shard.mu.Unlock()
	if !g.busy {
		g.busy = true
		return nil
	}
	s := &spot{inFront: make(chan struct{})}
	if g.together() {
		s.called = make(chan struct{}, 1)
	}
	s.elem = g.line.PushBack(s)
	return s
}

// await returns when the place has become the front, or when it is called. After an
// error the place is left.
func (g *gate) await(ctx context.Context, stop <-chan struct{}, s *spot) (inFront bool, err error) {
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
	g.leaveLine(s)
	return false, err
}

// leaveLine takes a waiter out. If it has come to the front in the meantime, the
// next one does.
func (g *gate) leaveLine(s *spot) {
	g.shard.mu.Lock()
	defer g.shard.mu.Unlock()
	select {
	case <-s.inFront:
		g.next()
	default:
		g.line.Remove(s.elem)
	}
}

// leave gives up the front to the next in line.
func (g *gate) leave() {
	g.shard.mu.Lock()
	defer g.shard.mu.Unlock()
	g.next()
}

// next moves the line up. shard.mu is held.
func (g *gate) next() {
	first := g.line.Front()
	g.busy = first != nil
	if g.busy {
		close(g.line.Remove(first).(*spot).inFront)
	}
}

// taken counts a live hold of this client. The use of the gate that it is was
// counted before.
func (g *gate) taken() {
	g.shard.mu.Lock()
	defer g.shard.mu.Unlock()
	g.held++
	g.asking, g.last = time.Time{}, ErrNotAcquired
	g.drain()
}

// asks notes that the front asks the server. It counts from the first question that has
// not been answered, even if the one who asked it has left.
func (g *gate) asks() {
	g.shard.mu.Lock()
	defer g.shard.mu.Unlock()
	if g.asking.IsZero() {
		g.asking = time.Now()
	}
}

// told notes what has come of the question: err is why the front has to go on waiting, or
// nil if somebody acquires.
func (g *gate) told(err error) {
	g.shard.mu.Lock()
	defer g.shard.mu.Unlock()
	g.asking, g.last = time.Time{}, cmp.Or(err, ErrNotAcquired)
}

// ended is the error of a wait that has ended with err: what is known to whoever is in
// front decides, or what the waiter was told last itself.
func (g *gate) ended(ctx context.Context, err, last error) error {
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

// forget drops what those knew who used the gate. shard.mu is held.
func (g *gate) forget() {
	g.asking, g.last = time.Time{}, nil
	if s := g.sides.Load(); s != nil {
		s.read.forget()
		s.write.forget()
	}
}

// known returns the gate of a key, or nil if nobody uses it.
func (g *gates) known(key string) *gate {
	shard := &g.shards[maphash.String(g.seed, key)%uint64(len(g.shards))]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	return shard.gates[key]
}

// heldHere reports whether this client holds the key.
func (g *gate) heldHere() bool {
	g.shard.mu.Lock()
	defer g.shard.mu.Unlock()
	return g.held > 0
}

// refused is called when somebody else turned out to hold the key. The front then
// relies on messages, for which the gate subscribes once.
func (g *gate) refused(n *notifier, channel string) {
	if g.main != nil {
		g = g.main
	}
	g.shard.mu.Lock()
	defer g.shard.mu.Unlock()
	g.streak = 0
	if g.sub == nil && n != nil {
		g.sub = &subscription{channel: channel, gate: g}
		n.add(g.sub)
	}
}

// releasing is called before a release is sent: its own message is not to wake
// the front, which released will do. It reports whether that message will be heard
// here at all.
func (g *gate) releasing() bool {
	g.shard.mu.Lock()
	defer g.shard.mu.Unlock()
	if !g.sub.live() {
		return false
	}
	g.echoes++
	return true
}

// released ends a hold of this client and wakes the front. told is how many
// subscribers heard of it, 0 if that is not known: if others than this client
// did, it must not take the key again and again. noEcho says that the message which
// releasing expected was never published.
func (g *gate) released(told int64, noEcho bool) {
	g.settleUp(told, noEcho)
	g.signal()
	g.done()
}

// left ends a hold of this client when others still hold the lock: nobody is woken,
// and noEcho says that a message was expected all the same.
func (g *gate) left(noEcho bool) {
	g.settleUp(0, noEcho)
	g.done()
}

func (g *gate) settleUp(told int64, noEcho bool) {
	g.shard.mu.Lock()
	defer g.shard.mu.Unlock()
	if noEcho && g.echoes > 0 {
		g.echoes--
	}
	if g.sub.live() {
		told--
	}
	g.streak++
	if told <= 0 {
		g.streak = 0
	}
	if g.streak >= streakLimit {
		g.streak, g.modest = 0, true
	}
	g.held--
}

// modesty returns for how long the front should let other processes go first.
func (g *gate) modesty() time.Duration {
	g.shard.mu.Lock()
	defer g.shard.mu.Unlock()
	if !g.modest {
		return 0
	}
	g.modest = false
	return modestPause/2 + rand.N(modestPause)
}

// message is called for each message on the key's channel. It never blocks.
func (g *gate) message() {
	g.shard.mu.Lock()
	own := g.echoes > 0
	if own {
		g.echoes--
	}
	g.shard.mu.Unlock()
	if !own {
		g.signal()
	}
}

// reconnected is called when the subscription begins or ends: what was published
// in between is lost, so the front has to look for itself.
func (g *gate) reconnected() {
	g.shard.mu.Lock()
	g.echoes = 0
	g.shard.mu.Unlock()
	g.signal()
}

// signal wakes the front, or whoever comes to the front next. It never blocks.
func (g *gate) signal() {
	nudge(g.wake)
	if s := g.sides.Load(); s != nil {
		s.write.signal()
		s.read.signal()
		s.read.call(calledAtOnce)
	}
}

// drain forgets a signal that came before the state was looked at anyway.
func (g *gate) drain() {
	select {
	case <-g.wake:
	default:
	}
}

// retire drops the gate if it has been unused for that long, and reports whether
// its subscription can go.
func (g *gate) retire(linger time.Duration) bool {
	g.shard.mu.Lock()
	defer g.shard.mu.Unlock()
	if g.users > 0 || !g.brief && time.Since(g.retired) < linger {
		return false
	}
	g.shard.drop(g)
	return true
}
