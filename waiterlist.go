package latchkey

// waiterList is a list of waiters, the first in line first. A waiter is in one list at most, and has its
// place in it in itself: a list of the standard library costs 48 bytes more for each.
type waiterList struct {
	first, last *waiter
	length      int
}

// inList is the place of a waiter in a list.
type inList struct{ before, after *waiter }

// add adds a waiter at the end.
func (l *waiterList) add(w *waiter) {
	w.before = l.last
	if l.last == nil {
		l.first = w
	} else {
		l.last.after = w
	}
	l.last = w
	l.length++
}

// remove takes a waiter that is in the list out of it.
func (l *waiterList) remove(w *waiter) {
	if w.before == nil {
		l.first = w.after
	} else {
		w.before.after = w.after
	}
	if w.after == nil {
		l.last = w.before
	} else {
		w.after.before = w.before
	}
	w.inList = inList{}
	l.length--
}
