package semaphore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/engine/line"
)

// The front that receives permits leaves the front by itself. Until then nobody else comes there,
// who would take the signal that wakes it.
func TestSemLine_the_front_receives(t *testing.T) {
	l := newSemLines().Use(line.Key{})
	l.granted(3, time.Minute)
	woken := 0
	waiter := func(n int) *semWaiter {
		w := &semWaiter{count: n, moved: make(chan struct{}), wake: func() { woken++ }}
		l.waiters = append(l.waiters, w)
		return w
	}
	isInFront := func(w *semWaiter) bool {
		select {
		case <-w.moved:
			return !w.passed
		default:
			return false
		}
	}
	front, second, third, large := waiter(1), waiter(1), waiter(1), waiter(2)
	require.Equal(t, 0, l.pass(1, false))
	require.True(t, front.passed)
	require.Equal(t, 1, woken)
	require.False(t, isInFront(second))

	require.Equal(t, 0, l.pass(1, false))
	require.True(t, second.passed, "those behind it may receive permits meanwhile")
	require.Equal(t, 1, woken)
	_, passed := l.leave(second)
	require.True(t, passed)
	_, passed = l.leave(front)
	require.True(t, passed)
	require.True(t, isInFront(third))

	require.True(t, l.asks(third))
	require.Equal(t, 1, l.pass(1, false), "the next wants more")
	l.refused(third)
	require.Equal(t, 0, l.pass(3, false))
	require.True(t, third.passed && large.passed)
}

// While the front asks, those behind it that want more than it wait.
func TestSemLine_wants_more_than_the_front(t *testing.T) {
	l := newSemLines().Use(line.Key{})
	l.granted(3, time.Minute)
	large := &semWaiter{count: 3, moved: make(chan struct{})}
	l.waiters = []*semWaiter{{count: 1, asking: true}, large}
	require.Equal(t, 3, l.pass(3, false))
	require.False(t, large.passed)
}

// After its turn a client passes permits on a few times more if strangers have had more than it.
func TestSemLine_is_short_of_permits(t *testing.T) {
	l := newSemLines().Use(line.Key{})
	l.granted(2, 0)
	for range 2 * passesWhileShort {
		w := &semWaiter{count: 1, moved: make(chan struct{})}
		l.waiters = []*semWaiter{{passed: true}, w}
		require.Equal(t, 1, l.pass(1, false))
		require.Equal(t, 0, l.pass(1, true))
		require.True(t, w.passed)
	}
	require.Equal(t, 1, l.pass(1, true))
}
