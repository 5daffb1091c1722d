package latchkey

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fakeHold is something that a client holds.
type fakeHold struct {
	links lineLinks
	key   lineKey
}

func (f *fakeHold) lineKey() lineKey   { return f.key }
func (f *fakeHold) passedIn() lineKind { return onlyLine }
func (f *fakeHold) keepsOut() bool     { return true }

// newFakeHold returns a hold that has not begun.
func newFakeHold(all *waitQueues, key string) *fakeHold {
	f := &fakeHold{key: lineKey{key: key}}
	f.links = all.linksOf(f)
	return f
}

func TestLineLinks_without_a_wait_queue(t *testing.T) {
	all := newWaitQueues()
	h := newFakeHold(all, "job")
	require.Equal(t, endlessPasses, h.links.holdBegins())
	require.Nil(t, h.links.firstInLine())
	require.Nil(t, h.links.takeFirst())
	require.False(t, h.links.hasLine())
	require.Zero(t, h.links.openFor(time.Now()))
	h.links.leftFree(0, false)
	require.False(t, h.links.releaseBegins())
	h.links.noteReceivers(0)
	require.Nil(t, all.known(h.key))
	h.links.noteReceivers(1)
	require.NotNil(t, all.known(h.key), "others want the key")
	left, q := h.links.holdEnds(false, nil)
	require.Nil(t, left)
	require.Nil(t, q)
	require.Nil(t, all.known(h.key))
}

// A caller that finds a key held waits, and comes to the front when the hold is released or the release fails.
func TestLineLinks_use_the_wait_queue_of_the_first_waiter(t *testing.T) {
	for what, ends := range map[string]func(l *lineLinks){
		"released":         func(l *lineLinks) { l.holdEnds(false, nil) },
		"failed, released": func(l *lineLinks) { l.releaseFails(nil); l.holdEnds(false, nil) },
	} {
		all := newWaitQueues()
		h := newFakeHold(all, "job")
		h.links.holdBegins()
		q, w, _ := all.enter(h.key, onlyLine, nil)
		require.Same(t, q, h.links.queue)
		require.NotNil(t, w, what)
		ends(&h.links)
		at, err := w.await(context.Background(), nil)
		require.NoError(t, err)
		require.Equal(t, atFront, at)
		require.Nil(t, q.exit(nil))
		require.Nil(t, all.known(h.key), what)
	}
}

// After a failed release, later callers do not wait for the hold.
func TestLineLinks_of_a_hold_whose_release_failed(t *testing.T) {
	all := newWaitQueues()
	h := newFakeHold(all, "job")
	h.links.holdBegins()
	_, taken := h.links.releaseFails(nil)
	require.True(t, taken)
	_, taken = h.links.releaseFails(nil)
	require.False(t, taken, "once")
	q, w, _ := all.enter(h.key, onlyLine, nil)
	require.Nil(t, w, "it is in front")
	require.Nil(t, q.exit(nil))
	h.links.holdEnds(false, nil)
	require.Nil(t, all.known(h.key))
}

// place is a place in the queue on the server.
type place struct{ given bool }

func (p *place) giveUp() { p.given = true }

// The place with which a client wants a lock again goes to the next in line, or back to the caller.
func TestLineLinks_leave_a_place(t *testing.T) {
	all := newWaitQueues()
	next := &place{}
	h := newFakeHold(all, "job")
	h.links.holdBegins()
	left, _ := h.links.holdEnds(false, next)
	require.Same(t, next, left, "nobody waits")

	h = newFakeHold(all, "job")
	h.links.holdBegins()
	q, w, _ := all.enter(h.key, onlyLine, nil)
	left, taken := h.links.releaseFails(next)
	require.True(t, taken)
	require.Nil(t, left)
	at, err := w.await(context.Background(), nil)
	require.NoError(t, err)
	require.Equal(t, atFront, at)
	require.Same(t, next, q.takeLeft(true))
	require.Nil(t, q.exit(nil))
	h.links.holdEnds(false, nil)
	require.False(t, next.given)
}

// Each key has its own holds, the newest first, and they end in any order.
func TestWaitQueues_what_is_held_by_key(t *testing.T) {
	all := newWaitQueues()
	made := func(key string) *fakeHold { return newFakeHold(all, key) }
	a, b, a2, a3 := made("a"), made("b"), made("a"), made("a")
	for _, h := range []*fakeHold{a, b, a2, a3} {
		h.links.holdBegins()
	}
	on := func(key string) (held []*fakeHold) {
		all.find(key, func(h lineHeld) bool {
			held = append(held, h.(*fakeHold))
			return false
		})
		return held
	}
	end := func(h *fakeHold) { h.links.holdEnds(false, nil) }
	require.Len(t, all.held(), 4)
	require.Equal(t, []*fakeHold{a3, a2, a}, on("a"), "the newest first")
	require.Equal(t, []*fakeHold{b}, on("b"))
	require.Empty(t, on("c"))
	end(b)
	require.Empty(t, on("b"))
	end(a2)
	require.Equal(t, []*fakeHold{a3, a}, on("a"))
	end(a3)
	require.Equal(t, []*fakeHold{a}, on("a"))
	a2.links.holdBegins()
	end(a)
	require.Equal(t, []*fakeHold{a2}, on("a"))
	end(a2)
	require.Empty(t, all.held())
}

// A client may have thousands of holds of one key, such as permits. They end in any order, and none takes longer than
// another.
func TestWaitQueues_what_is_held_of_one_key(t *testing.T) {
	all := newWaitQueues()
	holds := make([]*fakeHold, 60_000)
	for i := range holds {
		holds[i] = newFakeHold(all, "a")
	}
	ended := func(order []*fakeHold) time.Duration {
		for _, h := range holds {
			h.links.holdBegins()
		}
		began := time.Now()
		for _, h := range order {
			h.links.holdEnds(false, nil)
		}
		require.Empty(t, all.held())
		return time.Since(began)
	}
	order := slices.Clone(holds)
	slices.Reverse(order)
	newestFirst := ended(order)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	require.Less(t, ended(holds), 20*newestFirst+time.Second, "the oldest first")
	require.Less(t, ended(order), 20*newestFirst+time.Second, "in any order")
}
