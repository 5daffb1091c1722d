package line

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/engine/turns"
)

// fakeHold is something that a client holds.
type fakeHold struct {
	links Links
	all   *Table
	key   Key
	side  Side
}

func (f *fakeHold) Table() *Table  { return f.all }
func (f *fakeHold) LineKey() Key   { return f.key }
func (f *fakeHold) PassedIn() Side { return f.side }
func (f *fakeHold) KeepsOut() bool { return true }

// newFakeHold returns a hold that has not begun.
func newFakeHold(all *Table, key string) *fakeHold {
	f := &fakeHold{all: all, key: Key{Key: key}}
	f.links = LinksOf(f)
	return f
}

func TestLineLinks_without_a_wait_queue(t *testing.T) {
	all := NewTable()
	h := newFakeHold(all, "job")
	require.Equal(t, endlessPasses, h.links.HoldBegins())
	require.Nil(t, h.links.FirstInLine())
	require.Nil(t, h.links.TakeFirst())
	require.False(t, h.links.HasLine())
	require.Zero(t, h.links.OpenFor(time.Now()))
	h.links.LeftFree(0, false)
	h.links.IgnoreOwnRelease()
	require.False(t, h.links.echo)
	h.links.ReceiversSeen(0)
	require.Nil(t, all.Known(h.key))
	h.links.ReceiversSeen(1)
	require.NotNil(t, all.Known(h.key), "others want the key")
	all.Use(h.key).Done()
	require.NotNil(t, all.Known(h.key), "they still do")
	left, q := h.links.HoldEnds(false, nil)
	require.Nil(t, left)
	require.Nil(t, q)
	require.Nil(t, all.Known(h.key))
}

// A caller that finds a key held waits, and comes to the front when the hold is released or the
// release fails.
func TestLineLinks_use_the_wait_queue_of_the_first_waiter(t *testing.T) {
	for what, ends := range map[string]func(l *Links){
		"released":         func(l *Links) { l.HoldEnds(false, nil) },
		"failed, released": func(l *Links) { l.ReleaseFails(nil); l.HoldEnds(false, nil) },
	} {
		all := NewTable()
		h := newFakeHold(all, "job")
		h.links.HoldBegins()
		q, w, _ := all.enter(h.key, Only, nil, nil)
		require.Same(t, q, h.links.line)
		require.NotNil(t, w, what)
		ends(&h.links)
		at, err := w.await(context.Background(), nil)
		require.NoError(t, err)
		require.Equal(t, atFront, at)
		require.Nil(t, q.exit(nil))
		require.Nil(t, all.Known(h.key), what)
	}
}

// After a failed release, later callers do not wait for the hold.
func TestLineLinks_of_a_hold_whose_release_failed(t *testing.T) {
	all := NewTable()
	h := newFakeHold(all, "job")
	h.links.HoldBegins()
	_, taken := h.links.ReleaseFails(nil)
	require.True(t, taken)
	_, taken = h.links.ReleaseFails(nil)
	require.False(t, taken, "once")
	q, w, _ := all.enter(h.key, Only, nil, nil)
	require.Nil(t, w, "it is in front")
	require.Nil(t, q.exit(nil))
	h.links.HoldEnds(false, nil)
	require.Nil(t, all.Known(h.key))
}

// place is a place in the queue on the server.
type place struct{ given bool }

func (p *place) GiveUp() { p.given = true }

// The place with which a client wants a lock again goes to the next in line, or back to the caller.
func TestLineLinks_leave_a_place(t *testing.T) {
	all := NewTable()
	next := &place{}
	h := newFakeHold(all, "job")
	h.links.HoldBegins()
	left, _ := h.links.HoldEnds(false, next)
	require.Same(t, next, left, "nobody waits")

	h = newFakeHold(all, "job")
	h.links.HoldBegins()
	q, w, _ := all.enter(h.key, Only, nil, nil)
	left, taken := h.links.ReleaseFails(next)
	require.True(t, taken)
	require.Nil(t, left)
	at, err := w.await(context.Background(), nil)
	require.NoError(t, err)
	require.Equal(t, atFront, at)
	require.Same(t, next, q.takeLeft(true))
	require.Nil(t, q.exit(nil))
	h.links.HoldEnds(false, nil)
	require.False(t, next.given)
}

// Each key has its own holds, the newest first, and they end in any order.
func TestTable_what_is_held_by_key(t *testing.T) {
	all := NewTable()
	made := func(key string) *fakeHold { return newFakeHold(all, key) }
	a, b, a2, a3 := made("a"), made("b"), made("a"), made("a")
	for _, h := range []*fakeHold{a, b, a2, a3} {
		h.links.HoldBegins()
	}
	on := func(key string) (held []*fakeHold) {
		all.Find(key, func(h Held) bool {
			held = append(held, h.(*fakeHold))
			return false
		})
		return held
	}
	end := func(h *fakeHold) { h.links.HoldEnds(false, nil) }
	require.Len(t, all.Held(), 4)
	require.Equal(t, []*fakeHold{a3, a2, a}, on("a"), "the newest first")
	require.Equal(t, []*fakeHold{b}, on("b"))
	require.Empty(t, on("c"))
	end(b)
	require.Empty(t, on("b"))
	end(a2)
	require.Equal(t, []*fakeHold{a3, a}, on("a"))
	end(a3)
	require.Equal(t, []*fakeHold{a}, on("a"))
	a2.links.HoldBegins()
	end(a)
	require.Equal(t, []*fakeHold{a2}, on("a"))
	end(a2)
	require.Empty(t, all.Held())
}

// A client may have thousands of holds of one key, such as permits. They end in any order, and none
// takes longer than another.
func TestTable_what_is_held_of_one_key(t *testing.T) {
	all := NewTable()
	holds := make([]*fakeHold, 60_000)
	for i := range holds {
		holds[i] = newFakeHold(all, "a")
	}
	ended := func(order []*fakeHold) time.Duration {
		for _, h := range holds {
			h.links.HoldBegins()
		}
		began := time.Now()
		for _, h := range order {
			h.links.HoldEnds(false, nil)
		}
		require.Empty(t, all.Held())
		return time.Since(began)
	}
	order := slices.Clone(holds)
	slices.Reverse(order)
	newestFirst := ended(order)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	require.Less(t, ended(holds), 20*newestFirst+time.Second, "the oldest first")
	require.Less(t, ended(order), 20*newestFirst+time.Second, "in any order")
}

// A hold does without the line that only it uses, and uses the next one.
func TestLineLinks_of_a_hold_without_users_of_its_line(t *testing.T) {
	all := NewTable()
	h := newFakeHold(all, "job")
	all.Use(h.key)
	h.links.HoldBegins()
	all.Known(h.key).Done()
	require.Nil(t, h.links.line)
	require.Nil(t, all.Known(h.key))
	q, w, _ := all.enter(h.key, Only, nil, nil)
	require.NotNil(t, w, "the hold keeps it from the front")
	require.Same(t, q, h.links.line)
	require.Equal(t, leftLine, w.leave())
	q.Done()
	require.Same(t, q, all.Known(h.key), "somebody has waited")
}

// choosy is a call that wants nothing that could be passed.
type choosy struct{ Recipient }

func (choosy) Wants(Held) bool { return false }

// A hold is passed to the first in line if that one wants it, and counts for the turn of the
// client.
func TestLineLinks_take_the_first_in_line(t *testing.T) {
	all := NewTable()
	h := newFakeHold(all, "job")
	q := all.Use(h.key)
	h.links.HoldBegins()
	require.ErrorIs(t, q.answer.err, fault.ErrNotAcquired)
	_, w, _ := all.enter(h.key, Only, choosy{}, nil)
	require.Nil(t, h.links.TakeFirst())
	require.Equal(t, leftLine, w.leave())
	_, w, _ = all.enter(h.key, Only, greedy{}, nil)
	require.Same(t, w, h.links.TakeFirst())
	var want turns.Strangers
	want.WeHold()
	want.WeHold()
	require.Equal(t, want, q.strangers)
}

// While somebody is in front, because the release has failed, nobody in line receives the hold.
func TestLineLinks_with_somebody_in_front(t *testing.T) {
	all := NewTable()
	h := newFakeHold(all, "job")
	h.links.HoldBegins()
	h.links.ReleaseFails(nil)
	_, front, _ := all.enter(h.key, Only, greedy{}, nil)
	require.Nil(t, front)
	_, second, _ := all.enter(h.key, Only, greedy{}, nil)
	require.NotNil(t, second)
	require.True(t, h.links.HasLine())
	require.Nil(t, h.links.FirstInLine())
	require.Nil(t, h.links.TakeFirst())
}
