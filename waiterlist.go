package latchkey

// waiterList is a list of waiters in the order of the line. A waiter is in one list at most, and
// contains its own links: a list of the standard library needs 48 more bytes for each.
type waiterList struct {
	first, last *waiter
	length      int
}

// inList has the links of a waiter in a list.
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

// remove removes a waiter that is in the list.
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
