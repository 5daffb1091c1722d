// Package sample has functions that lock one mutex under another in each of the ways that the
// analysis must find, and others that only seem to.
package sample

import (
	"errors"
	"slices"
	"sync"
)

type turn struct{ slots chan struct{} }

func (t *turn) lock() error {
	if t.slots == nil {
		return errors.New("no slots")
	}
	return nil
}

func (t *turn) tryLock() bool { return t.slots != nil }

func (t *turn) unlock() {}

type a struct{ mu sync.Mutex }
type b struct{ mu sync.RWMutex }
type c struct{ mu sync.Mutex }
type d struct{ mu sync.Mutex }
type e struct{ turn turn }
type f struct{ mu sync.Mutex }
type g struct {
	mu    sync.Mutex
	outer *g
}
type h struct {
	mu       sync.Mutex
	call     func()
	messages chan int
}

type locker interface{ locked(do func()) }

func (x *c) locked(do func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	do()
}

// a.mu → b.mu: in a callee that leaves it locked for its caller.
func deferred(x *a, y *b) {
	x.mu.Lock()
	defer x.mu.Unlock()
	y.open()
	y.mu.RUnlock()
}

func (y *b) open() { y.mu.RLock() }

// b.mu → c.mu, c.mu → d.mu: through an interface and a closure.
func closures(y *b, l locker, z *d) {
	y.mu.Lock()
	l.locked(func() {
		z.mu.Lock()
		z.mu.Unlock()
	})
	y.mu.Unlock()
}

func use(y *b, x *c, z *d) { closures(y, x, z) }

// d.mu → e.turn, but nothing under an e.turn that was not locked.
func conditional(z *d, x *e, y *a) error {
	z.mu.Lock()
	err := x.turn.lock()
	z.mu.Unlock()
	if err != nil {
		return err
	}
	x.turn.unlock()
	if x.turn.lock() != nil {
		y.mu.Lock()
		y.mu.Unlock()
		return nil
	}
	defer x.turn.unlock()
	return nil
}

// A try-lock does not wait for its mutex; e.turn → f.mu.
func tried(x *e, z *f) {
	z.mu.Lock()
	if x.turn.tryLock() {
		z.mu.Unlock()
		z.mu.Lock()
		x.turn.unlock()
	}
	z.mu.Unlock()
}

// g.mu → g.mu: the mutexes of two values.
func nested(x *g) {
	x.mu.Lock()
	x.outer.mu.Lock()
	x.outer.mu.Unlock()
	x.mu.Unlock()
}

// Nothing under h.mu: a goroutine starts with nothing locked,
func goroutine(x *h, y *a) {
	x.mu.Lock()
	defer x.mu.Unlock()
	go func() {
		y.mu.Lock()
		y.mu.Unlock()
	}()
}

// but f.mu → h.mu: by functions of other packages, and by goroutines that the function waits for.
func outside(z *f, x *h, all []int) {
	z.mu.Lock()
	defer z.mu.Unlock()
	slices.SortFunc(all, func(i, j int) int {
		x.mu.Lock()
		defer x.mu.Unlock()
		return i - j
	})
}

// a.mu → f.mu, a.mu → h.mu, and a wait under a.mu.
func waited(y *a, z *f, x *h) {
	y.mu.Lock()
	defer y.mu.Unlock()
	results := make(chan int)
	go func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		results <- 1
	}()
	var calls sync.WaitGroup
	calls.Go(func() {
		z.mu.Lock()
		z.mu.Unlock()
	})
	calls.Wait()
}

// Foreign code and a wait under h.mu.
func (x *h) foreign() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.call()
	<-x.messages
	select {
	case <-x.messages:
	default:
	}
}
